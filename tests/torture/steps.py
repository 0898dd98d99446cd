"""What the writers of a torture run do, and the logs in which they say so.

A write is known by its tag. It adds k nodes, k - 1 edges between them and one entry, over three tables, all with
the tag; so a half write shows in any single snapshot. Later writes may change or remove whole tags.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from omnigraph import Commit, Graph, MaintenancePolicy

SCHEMA = """
node Item { name: String @key  tag: String @index  size: I64  stamp: I64 }
node Entry { tag: String @key  size: I64 }
edge Next: Item -> Item { tag: String }
"""
EXTRA = ("extra", "other")
"""The names of a property of items that comes and goes and never has a value: at most one of them is there."""

BRANCHES = ("main", "left", "right", "undone")
"""The branches that are always there. `left` is merged into `main`, `main` into `right`, and short-lived branches
into their parents. On `undone`, which is merged into no branch, commits are reverted and repeated, so that only
there a tag may vanish or come back."""

UNDONE = "undone"
MERGED = {"main": ["left"], "right": ["main"], UNDONE: ["main", "left", "right"]}
"""Which of the branches that are always there are merged into which."""

KEPT = 45
"""How many commits of each branch a cleanup keeps."""

GRACE = 20.0
"""For how many seconds a cleanup lets states and files alone that somebody may be using. No process of a run is
stopped for so long."""

SHORT = "short-"
"""How the names of branches begin that come and go. No name is used twice."""

INSERT = """
query add($a: String, $b: String, $tag: String) {
  insert Item { name: $a, tag: $tag, size: 2, stamp: 0 }
  insert Item { name: $b, tag: $tag, size: 2, stamp: 0 }
  insert Next { from: $a, to: $b, tag: $tag }
  insert Entry { tag: $tag, size: 2 }
}
"""
UPDATE = "query touch($tag: String, $stamp: I64) { update Item set { stamp: $stamp } where tag = $tag }"
DELETE = "query drop($tag: String) { delete Item where tag = $tag  delete Entry where tag = $tag }"

Kind = Literal[
    "mutation",
    "load",
    "spark load",
    "update",
    "delete",
    "create branch",
    "delete branch",
    "indices",
    "optimize",
    "cleanup",
    "maintain",
    "doctor",
    "merge",
    "revert",
    "cherry-pick",
    "reset",
    "schema",
    "schema of all",
]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing a writer does: to a tag, or without one to a branch as a whole.

    ``parent`` is the branch that a new one is forked from, or that is merged. ``of`` is the commit that is undone,
    repeated or gone back to.
    """

    kind: Kind
    branch: str
    tag: str = ""
    size: int = 0
    stamp: int = 0
    parent: str = "main"
    of: str = ""


class Log:
    """What a writer meant to do and what it was told about it, on disk before anybody relies on it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def note(self, what: str, step: Step | None = None, **more: Any) -> None:
        self._file.write(json.dumps({"what": what} | more | ({} if step is None else asdict(step))) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """All complete lines of a log, whose writer may have died in the middle of the last one."""
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


def perform(graph: Graph, step: Step) -> str | None:
    """Do it; the commit it made, if it made one."""
    return _ACTIONS[step.kind](graph, step)


def _mutate(graph: Graph, step: Step) -> str:
    statements: dict[str, tuple[str, dict[str, object]]] = {
        "mutation": (INSERT, {"a": f"{step.tag}/0", "b": f"{step.tag}/1", "tag": step.tag}),
        "update": (UPDATE, {"tag": step.tag, "stamp": step.stamp}),
        "delete": (DELETE, {"tag": step.tag}),
    }
    text, params = statements[step.kind]
    published = graph.mutate(text, params, branch=step.branch).commit
    assert published is not None, f"{step} changed nothing"
    return published.graph_commit_id


def _load(graph: Graph, step: Step) -> str:
    loaded = graph.load(_records(step), mode="append", branch=step.branch).commit
    assert loaded is not None, f"{step} loaded nothing"
    return loaded.graph_commit_id


def _load_on_spark(graph: Graph, step: Step) -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write("\n".join(map(json.dumps, _records(step))))
        file.flush()
        loaded = graph.load(Path(file.name), mode="append", branch=step.branch, engine="spark").commit
    assert loaded is not None, f"{step} loaded nothing"
    return loaded.graph_commit_id


def _create_branch(graph: Graph, step: Step) -> None:
    graph.create_branch(step.branch, step.parent)


def _delete_branch(graph: Graph, step: Step) -> None:
    graph.delete_branch(step.branch)


def _build_indices(graph: Graph, step: Step) -> str | None:
    return _id(graph.ensure_indices(branch=step.branch).commit)


def _optimize(graph: Graph, step: Step) -> str | None:
    return _id(graph.optimize(branch=step.branch).commit)


def _clean_up(graph: Graph, step: Step) -> None:
    graph.cleanup(keep=KEPT, grace=dt.timedelta(seconds=GRACE), confirm=True)


def _maintain(graph: Graph, step: Step) -> None:
    graph.maintain(MaintenancePolicy(keep=KEPT, grace=dt.timedelta(seconds=GRACE)))


def _examine(graph: Graph, step: Step) -> None:
    """The doctor finds no damage, whatever others do meanwhile."""
    report = graph.doctor(quick=True)
    assert report.is_healthy, report.findings


def _merge(graph: Graph, step: Step) -> str | None:
    return _id(graph.merge(step.parent, step.branch).commit)


def _revert(graph: Graph, step: Step) -> str | None:
    return _id(graph.revert(step.of, step.branch).commit)


def _cherry_pick(graph: Graph, step: Step) -> str | None:
    return _id(graph.cherry_pick(step.of, step.branch).commit)


def _reset(graph: Graph, step: Step) -> str | None:
    return _id(graph.reset(step.of, step.branch).commit)


def _change_schema(graph: Graph, step: Step) -> str | None:
    return _id(graph.apply_schema(_next_schema(graph, step), branch=step.branch).commit)


def _change_all(graph: Graph, step: Step) -> None:
    graph.apply_schema_to_all(_next_schema(graph, step))


def _next_schema(graph: Graph, step: Step) -> str:
    """A schema with another name for the property that comes and goes, with it, or without it."""
    known = graph.snapshot(step.branch).catalog.nodes["Item"].properties
    here = next((name for name in EXTRA if name in known), None)
    choices = {
        None: [f"{EXTRA[0]}: I64?"],
        EXTRA[0]: ["", f"{EXTRA[1]}: I64? @rename_from({EXTRA[0]})"],
        EXTRA[1]: ["", f"{EXTRA[0]}: I64? @rename_from({EXTRA[1]})"],
    }[here]
    return SCHEMA.replace("stamp: I64", f"stamp: I64  {choices[step.stamp % len(choices)]}")


def _id(commit: Commit | None) -> str | None:
    return None if commit is None else commit.graph_commit_id


_ACTIONS: dict[Kind, Callable[[Graph, Step], str | None]] = {
    "mutation": _mutate,
    "load": _load,
    "spark load": _load_on_spark,
    "update": _mutate,
    "delete": _mutate,
    "create branch": _create_branch,
    "delete branch": _delete_branch,
    "indices": _build_indices,
    "optimize": _optimize,
    "cleanup": _clean_up,
    "maintain": _maintain,
    "doctor": _examine,
    "merge": _merge,
    "revert": _revert,
    "cherry-pick": _cherry_pick,
    "reset": _reset,
    "schema": _change_schema,
    "schema of all": _change_all,
}


def _records(step: Step) -> list[dict[str, Any]]:
    names = [f"{step.tag}/{number}" for number in range(step.size)]
    items = [
        {"type": "Item", "data": {"name": name, "tag": step.tag, "size": step.size, "stamp": 0}} for name in names
    ]
    edges = [
        {"edge": "Next", "from": one, "to": other, "data": {"tag": step.tag}} for one, other in pairwise(names)
    ]
    return [*items, *edges, {"type": "Entry", "data": {"tag": step.tag, "size": step.size}}]
