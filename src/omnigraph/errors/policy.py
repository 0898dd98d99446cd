"""What a policy refuses, and configuration that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.requests import RequestError


class PolicyDenied(RequestError):
    """Something that no rule of the graph's policy allows. It says what was asked for, never what the data is."""

    def __init__(
        self,
        actor: str,
        action: str,
        branch: str | None = None,
        target_branch: str | None = None,
        type: str | None = None,  # noqa: A002  what it is called
        reason: str = "no rule allows it",
    ) -> None:
        super().__init__(actor, action, branch, target_branch, type, reason)
        self.actor = actor
        self.action = action
        self.branch = branch
        self.target_branch = target_branch
        self.type = type
        self.reason = reason

    def __str__(self) -> str:
        return f"denied by the policy of the graph: {self.reason}"

    def as_json(self) -> dict[str, Any]:
        asked = {
            "actor": self.actor,
            "action": self.action,
            "branch": self.branch,
            "target_branch": self.target_branch,
            "type": self.type,
        }
        return {"error": str(self), "policy": {**asked, "reason": self.reason}}


class ActorRequired(RequestError):
    """A graph with a policy that is used without saying who does it."""

    def __init__(self, action: str) -> None:
        super().__init__(action)
        self.action = action

    def __str__(self) -> str:
        return (
            f"the graph has a policy, which has to know who wants to {self.action};"
            " open it with actor=, or use as_actor(NAME)"
        )


class PolicyInvalid(RequestError):
    """A policy, or a file of its tests, with mistakes: all of them, each with its place."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        super().__init__(source, tuple(problems))
        self.source = source
        self.problems = tuple(problems)

    def __str__(self) -> str:
        return f"{self.source} cannot be used: {'; '.join(self.problems)}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "source": self.source, "problems": list(self.problems)}


class ConfigInvalid(RequestError):
    """A file of the operator's configuration that cannot be used."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(source, reason)
        self.source = source
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"
