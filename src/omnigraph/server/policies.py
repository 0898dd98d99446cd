"""The policies of a server: one for all of its graphs, and others for single ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import PolicyInvalid, RequestError
from omnigraph.policy.actions import ON_SERVER
from omnigraph.policy.policy import Note, Policy, read_policy

FILE: Final = "policy.yaml"


@dataclass(frozen=True, slots=True)
class ServerPolicies:
    """The policy of each graph, and the one about the server itself; without one, nothing about it is allowed.

    In a cluster that only has a policy about itself, graphs have none: every caller may do all with them.
    """

    graphs: Mapping[str, Policy]
    server: Policy | None

    def become(self, other: ServerPolicies) -> None:
        """Decide by other policies from now on, for everything that asks these ones."""
        for name, policy in self.graphs.items():
            if name in other.graphs:
                policy.become(other.graphs[name])
        if self.server is not None and other.server is not None:
            self.server.become(other.server)


def read_policies(place: Path, names: Collection[str], note: Note) -> ServerPolicies:
    """The policies for graphs of these names.

    A file is about all of them. In a folder `policy.yaml` is, and `NAME/policy.yaml` takes its place for a graph.
    PolicyInvalid or RequestError if a file has a mistake, a graph has no policy, or a policy no graph.
    """
    if not place.is_dir():
        return ServerPolicies({name: read_policy(place, note) for name in names}, read_policy(place, note))
    unknown = sorted({path.parent.name for path in place.glob(f"*/{FILE}")} - set(names))
    if unknown:
        known = ", ".join(sorted(names))
        raise RequestError(f"{place / unknown[0] / FILE} is about no graph of this server; it serves {known}")
    general = place / FILE
    server = read_policy(general, note) if general.exists() else None
    graphs: dict[str, Policy] = {}
    for name in names:
        own = place / name / FILE
        if not own.exists() and server is None:
            raise RequestError(f"graph '{name}' has no policy; write {own}, or {general} for all graphs")
        graphs[name] = _about_a_graph(read_policy(own, note)) if own.exists() else read_policy(general, note)
    return ServerPolicies(graphs, server)


def _about_a_graph(policy: Policy) -> Policy:
    """The policy of a single graph; PolicyInvalid if it has rules about the server."""
    wrong = [
        f"rule '{rule.id}': {action} is about the server; it belongs in the {FILE} of all graphs"
        for rule in policy.file.rules
        for action in rule.actions
        if action in ON_SERVER
    ]
    if wrong:
        raise PolicyInvalid(policy.source, wrong)
    return policy
