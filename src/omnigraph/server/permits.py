"""The policy at the door of a server: what is denied is denied before the body of a request is read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import PolicyDenied, QueryNotFound
from omnigraph.manifest.state import MAIN
from omnigraph.policy.actions import ON_SERVER, Action
from omnigraph.policy.guard import denied
from omnigraph.policy.policy import Decision, Policy, Question, described, trimmed
from omnigraph.server.policies import ServerPolicies
from omnigraph.server.routes.actions import Asked


class Permits:
    """Asks the policies about requests: a graph's about that graph, the server's about the server itself. What
    they let in is asked about again by the graph, which knows all of it and notes the decision."""

    def __init__(self, policies: ServerPolicies) -> None:
        self._policies = policies

    def require(self, asked: Asked, values: Mapping[str, Any]) -> None:
        """Raise PolicyDenied unless the actor may do what is asked.

        A stored query that the actor may not invoke is not there. The list of them is for those who may read, too.
        """
        is_server = asked.action in ON_SERVER
        if not is_server and not self._policies.graphs:
            return
        policy = self._policies.server if is_server else self._policies.graphs[values["graph"]]
        try:
            _require(policy, asked)
        except PolicyDenied:
            if asked.action is not Action.INVOKE_QUERY:
                raise
            if "query" in values:
                raise QueryNotFound(values["query"]) from None
            _require(policy, Asked(asked.actor, Action.READ, MAIN))


def _require(policy: Policy | None, asked: Asked) -> None:
    branch, target = trimmed(asked.branch), trimmed(asked.target_branch)
    question = Question(asked.actor, asked.action, branch, target)
    if policy is None:
        raise denied(Decision(question, False, None, f"no rule allows {described(question)}"))
    if branch is None and target is None and asked.action not in ON_SERVER:
        decision = policy.possible(asked.actor, asked.action)
    else:
        decision = policy.decide(question)
    if not decision.allowed or asked.action in ON_SERVER:
        policy.note(decision)
    if not decision.allowed:
        raise denied(decision)
