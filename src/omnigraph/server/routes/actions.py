"""What a request wants to do, in the words of a policy: the one place where a request becomes a question to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.manifest.state import MAIN
from omnigraph.policy.actions import ON_BRANCH, TO_BRANCH, Action
from omnigraph.server.answers.calls import JSON
from omnigraph.server.routes.route import Route


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a policy sees it before its body is read. Without a branch it is about any of them."""

    actor: str
    action: Action
    branch: str | None = None
    target_branch: str | None = None


def asked(route: Route, actor: str, values: Mapping[str, Any]) -> Asked:
    """What a request with these values asks for, as far as it is known without the body. Which types it is about,
    which branch an older state is of, and what the body says is for the engine to see."""
    action = route.action
    assert action is not None  # noqa: S101  others are not asked about
    if route.takes == JSON or "snapshot" in values or "commit" in values or "tag" in values:
        return Asked(actor, action)
    branch = str(values.get("branch", MAIN))
    if action in TO_BRANCH:
        return Asked(actor, action, target_branch=branch)
    return Asked(actor, action, branch if action in ON_BRANCH else None)
