"""What a request wants to do, in the words of a policy: the one place where a request becomes a question to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.manifest.state import MAIN


class Action(StrEnum):
    """What a policy allows or denies."""

    READ = "read"
    EXPORT = "export"
    CHANGE = "change"
    SCHEMA_APPLY = "schema_apply"
    BRANCH_CREATE = "branch_create"
    BRANCH_DELETE = "branch_delete"
    BRANCH_MERGE = "branch_merge"
    INVOKE_QUERY = "invoke_query"
    GRAPH_LIST = "graph_list"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as a policy sees it. ``at`` is an older state, which stands in the place of a branch."""

    actor: str | None
    action: Action
    graph: str | None = None
    branch: str | None = None
    target_branch: str | None = None
    at: str | int | None = None
    type_names: Sequence[str] = ()


Permit = Callable[[Asked], None]
"""Returns if a request may be done, and raises an error of ours if not. It runs in a thread."""


def asked(action: Action, actor: str | None, values: Mapping[str, Any]) -> Asked:
    """What a request with these values asks for. Names of branches are trimmed, as the graph does."""
    graph = values.get("graph")
    match action:
        case Action.GRAPH_LIST:
            return Asked(actor, action)
        case Action.INVOKE_QUERY:
            return Asked(actor, action, graph)
        case Action.BRANCH_CREATE:
            return Asked(actor, action, graph, _branch(values, "from"), _branch(values, "name"))
        case Action.BRANCH_MERGE:
            return Asked(actor, action, graph, _branch(values, "source"), _branch(values, "target"))
        case Action.BRANCH_DELETE | Action.SCHEMA_APPLY:
            return Asked(actor, action, graph, target_branch=_branch(values, "branch"))
        case Action.READ | Action.EXPORT | Action.CHANGE:
            at = values.get("snapshot") or values.get("commit")
            return Asked(
                actor,
                action,
                graph,
                None if at is not None and "branch" not in values else _branch(values, "branch"),
                at=at,
                type_names=_types(values),
            )


def _branch(values: Mapping[str, Any], name: str) -> str:
    found: str = values.get(name, MAIN)
    return found.strip()


def _types(values: Mapping[str, Any]) -> Sequence[str]:
    """The types that a request names; those of a query are for the engine to see."""
    found = values.get("type_names") or values.get("type") or ()
    return (found,) if isinstance(found, str) else tuple(found)
