"""The policy at the door of a server: what is denied is denied before the body of a request is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import PolicyDenied, QueryNotFound
from omnigraph.manifest.state import MAIN
from omnigraph.policy.actions import ON_SERVER, Action
from omnigraph.policy.guard import denied
from omnigraph.policy.policy import Policy, Question, trimmed
from omnigraph.server.routes.actions import Asked


class Permits:
    """Asks a policy about requests. What it lets in is asked about again by the graph, which knows all of it and
    notes the decision."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def require(self, asked: Asked, values: Mapping[str, Any]) -> None:
        """Raise PolicyDenied unless the actor may do what is asked.

        A stored query that the actor may not invoke is not there. The list of them is for those who may read, too.
        """
        try:
            self._require(asked)
        except PolicyDenied:
            if asked.action is not Action.INVOKE_QUERY:
                raise
            if "query" in values:
                raise QueryNotFound(values["query"]) from None
            self._require(Asked(asked.actor, Action.READ, MAIN))

    def _require(self, asked: Asked) -> None:
        branch, target = trimmed(asked.branch), trimmed(asked.target_branch)
        if branch is None and target is None and asked.action not in ON_SERVER:
            decision = self._policy.possible(asked.actor, asked.action)
        else:
            decision = self._policy.decide(Question(asked.actor, asked.action, branch, target))
        if not decision.allowed or asked.action in ON_SERVER:
            self._policy.note(decision)
        if not decision.allowed:
            raise denied(decision)
