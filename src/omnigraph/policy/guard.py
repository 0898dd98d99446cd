"""The guard of an open graph: asks the policy before anything is read or written, and notes what it said."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from omnigraph.errors import ActorRequired, PolicyDenied
from omnigraph.policy.actions import ON_BRANCH, ON_TYPES, TO_BRANCH, Action
from omnigraph.policy.policy import Decision, Policy, Question, trimmed

_WRITERS: Final = {
    "mutation": Action.CHANGE,
    "load": Action.CHANGE,
    "embed": Action.CHANGE,
    "revert": Action.CHANGE,
    "cherry_pick": Action.CHANGE,
    "reset": Action.CHANGE,
    "merge": Action.BRANCH_MERGE,
}
"""What each writer that changes rows does. The others change files, indexes or the schema, and no row."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A policy, and which actions stand for others: those who may invoke a stored query may do what it does. None
    stands for an action that needs no rule."""

    policy: Policy
    instead: Mapping[Action, Action | None] = field(default_factory=dict)

    def require(
        self,
        actor: str | None,
        action: Action,
        branch: str | None = None,
        target_branch: str | None = None,
        types: Collection[str] | None = None,
    ) -> None:
        """Raise PolicyDenied unless the actor may do it, to each of the types if there are some.

        Without a branch it is enough that there is a branch on which the actor may do it.
        """
        needed = self.instead.get(action, action)
        if needed is None:
            return
        action = needed
        if actor is None:
            raise ActorRequired(action)
        where, towards = trimmed(branch), trimmed(target_branch)
        if where is None and towards is None and action in ON_BRANCH | TO_BRANCH:
            decision = self.policy.possible(actor, action)
            if not decision.allowed:
                self.policy.note(decision)
                raise denied(decision)
            return
        asked = [None] if types is None or action not in ON_TYPES else sorted(types)
        for each in asked:
            decision = self.policy.decide(Question(actor, action, where, towards, each))
            self.policy.note(decision)
            if not decision.allowed:
                raise denied(decision)

    def require_changes(self, writer: str, actor: str | None, branch: str, tables: Collection[str]) -> None:
        """Raise PolicyDenied unless the actor of a write may change the rows of all tables that it changes."""
        action = _WRITERS.get(writer)
        if action is Action.BRANCH_MERGE:
            self.require(actor, action, None, branch, tables)
        elif action is not None:
            self.require(actor, action, branch, None, tables)


def denied(decision: Decision) -> PolicyDenied:
    """The error of a decision against a request."""
    asked = decision.question
    return PolicyDenied(
        asked.actor, asked.action.value, asked.branch, asked.target_branch, asked.type, decision.message
    )
