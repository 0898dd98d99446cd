"""The processes of a torture run: writers that are killed, and the tags by which their writes are known.

A write is known by its tag. It adds k nodes, k - 1 edges between them and one entry, over three tables, all with
the tag; so a half write shows in any single snapshot. Later writes may change or remove whole tags.
"""

from __future__ import annotations

import json
import os
import random
import sys
import warnings
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import ConflictError

SCHEMA = """
node Item { name: String @key  tag: String @index  size: I64  stamp: I64 }
node Entry { tag: String @key  size: I64 }
edge Next: Item -> Item { tag: String }
"""
BRANCHES = ("main", "left", "right")
KILLED_AT = sorted(failpoints.WRITE_NAMES | {n for n in failpoints.NAMES if n.startswith("publish.")})

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


@dataclass(frozen=True)
class Step:
    """One write of one writer, as its log has it: before it starts, and again when it was acknowledged."""

    kind: str
    tag: str
    branch: str
    size: int = 0
    stamp: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "tag": self.tag,
            "branch": self.branch,
            "size": self.size,
            "stamp": self.stamp,
        }


class Log:
    """What a writer meant to do and what it was told is done, on disk before anybody relies on it."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a")

    def note(self, what: str, step: Step, commit: str | None = None) -> None:
        self._file.write(json.dumps({"what": what, "commit": commit} | step.as_json()) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())


class Writer:
    """Writes random things to random branches until it is killed. Every writer has tags of its own."""

    def __init__(self, store: Store, name: str, seed: int, log: Log) -> None:
        self._graph: Graph = omnigraph.open(store.uri, actor=name, storage_options=store.options)
        self._name = name
        self._chance = random.Random(seed)
        self._log = log
        self._number = 0
        self._alive: dict[str, list[tuple[str, int]]] = {branch: [] for branch in BRANCHES}

    def step(self) -> None:
        """One write: mostly new tags, sometimes a change or the end of an old one."""
        branch = self._chance.choice(BRANCHES)
        kind = self._chance.choices(["mutation", "load", "update", "delete"], [4, 4, 2, 1])[0]
        known = self._alive[branch]
        self._number += 1
        if kind in ("update", "delete") and known:
            tag, size = self._chance.choice(known)
            step = Step(kind, tag, branch, size, self._number)
        else:
            kind = "load" if kind in ("load", "delete") else "mutation"
            size = 2 if kind == "mutation" else self._chance.randint(1, 6)
            step = Step(kind, f"{self._name}-{self._number}", branch, size)
        self._log.note("begin", step)
        try:
            commit = self._write(step)
        except ConflictError:
            self._log.note("refused", step)
            return
        self._log.note("done", step, commit)
        if kind == "delete":
            known.remove((step.tag, step.size))
        elif kind != "update":
            known.append((step.tag, step.size))

    def _write(self, step: Step) -> str:
        if step.kind == "load":
            commit = self._graph.load(_records(step), mode="append", branch=step.branch).commit
            return commit.graph_commit_id
        statements: dict[str, tuple[str, dict[str, object]]] = {
            "mutation": (INSERT, {"a": f"{step.tag}/0", "b": f"{step.tag}/1", "tag": step.tag}),
            "update": (UPDATE, {"tag": step.tag, "stamp": step.stamp}),
            "delete": (DELETE, {"tag": step.tag}),
        }
        text, params = statements[step.kind]
        published = self._graph.mutate(text, params, branch=step.branch).commit
        assert published is not None
        return published.graph_commit_id


def _records(step: Step) -> list[dict[str, Any]]:
    names = [f"{step.tag}/{number}" for number in range(step.size)]
    items = [
        {"type": "Item", "data": {"name": name, "tag": step.tag, "size": step.size, "stamp": 0}} for name in names
    ]
    edges = [
        {"edge": "Next", "from": one, "to": other, "data": {"tag": step.tag}} for one, other in pairwise(names)
    ]
    return [*items, *edges, {"type": "Entry", "data": {"tag": step.tag, "size": step.size}}]


def main() -> None:
    """`python -m tests.torture.writers STORE NAME SEED LOG [FAILPOINT HITS]`: the last two say where to die."""
    store, name, seed, log = Store(**json.loads(sys.argv[1])), sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
    warnings.simplefilter("ignore", RuntimeWarning)
    if len(sys.argv) > 5:
        _die_at(sys.argv[5], int(sys.argv[6]))
    writer = Writer(store, name, seed, Log(log))
    while True:
        writer.step()


def _die_at(failpoint: str, hits: int) -> None:
    """Die when a failpoint is reached for the so-manieth time, for the rest of this process's life."""
    left = [hits]

    def count() -> None:
        left[0] -= 1
        if left[0] <= 0:
            failpoints.die()

    failpoints._armed[failpoint] = count


if __name__ == "__main__":
    main()
