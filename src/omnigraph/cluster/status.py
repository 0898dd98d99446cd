"""Status: what the ledger says, and whether the catalog still has what the ledger names. No lock is taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnigraph.cluster.changes.sweep import pending_problems
from omnigraph.cluster.configuration.config import root_of
from omnigraph.cluster.state.approvals import Approval, read_approvals
from omnigraph.cluster.state.catalog import has_payload, read_payload
from omnigraph.cluster.state.ledger import Ledgered, ResourceStatus, Status, require_ledger
from omnigraph.cluster.state.lock import Holder, read_lock
from omnigraph.cluster.state.places import place_at
from omnigraph.cluster.state.sidecars import read_sidecars
from omnigraph.errors import ClusterProblem


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """How it stands with a cluster."""

    root: str
    ledgered: Ledgered
    lock: Holder | None
    approvals: Sequence[Approval]
    """Those that were not used yet."""
    problems: Sequence[ClusterProblem]

    def statuses(self) -> dict[str, ResourceStatus]:
        """How it stands with each resource that is there or is to be; what the catalog has lost has drifted."""
        state = self.ledgered.state
        found = {name: ResourceStatus(Status.APPLIED) for name in state.resources} | dict(state.statuses)
        for each in self.problems:
            if each.path in found and each.code.startswith("catalog_"):
                found[each.path] = ResourceStatus(Status.DRIFTED, (each.code,), each.message)
        return dict(sorted(found.items()))

    def as_json(self) -> dict[str, Any]:
        state = self.ledgered.state
        return {
            "root": self.root,
            "state_revision": state.revision,
            "state_cas": self.ledgered.cas,
            "config_digest": state.config_digest,
            "resources": {name: each.as_json() for name, each in sorted(state.resources.items())},
            "resource_statuses": {name: each.as_json() for name, each in self.statuses().items()},
            "lock": None if self.lock is None else self.lock.as_json(),
            "approvals": [each.as_json() for each in self.approvals],
            "diagnostics": [each.as_json() for each in self.problems],
        }


def read_status(folder: Path) -> ClusterStatus:
    """Read the ledger of a configuration's cluster, and check the catalog against it."""
    place = place_at(root_of(folder))
    ledgered = require_ledger(place)
    approvals, problems = read_approvals(place)
    used = ledgered.state.approvals
    waiting = [each for each in approvals if each.consumed_at is None and each.approval_id not in used]
    for address, known in ledgered.state.resources.items():
        found = read_payload(place, address, known.digest) if has_payload(address) else b""
        if isinstance(found, ClusterProblem):
            problems.append(found)
    problems += pending_problems(read_sidecars(place))
    return ClusterStatus(place.root, ledgered, read_lock(place), waiting, tuple(problems))
