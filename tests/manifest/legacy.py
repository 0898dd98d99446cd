"""Graphs as older releases wrote them, made with plain Lance calls.

Their manifest grew by a row for every version of a table, their history lay beside it in two tables, and their
branches were native Lance branches of the same name. The graph made here has this history::

    main  A1 ─ A2 ─ A3 ─ A4 ─ A5 (merges B3)
                └ dev  B3 ─ B4
                        └ dev/of-dev (forked at B3, nothing of its own)
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.lang.schema.identity import first_identities
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.manifest.stamp import STAMP
from omnigraph.storage import layout

SCHEMA = "node Person { name: String @key }\nnode City { name: String @key }\n"
PERSON, CITY = "node:Person", "node:City"
NOON = dt.datetime(2025, 1, 1, 12, 0, tzinfo=dt.UTC)
ACTORS = {"A1": "ada", "B3": "bo"}
HISTORIES = {
    "main": ["A5", "A4", "A3", "B3", "A2", "A1"],
    "dev": ["B4", "B3", "A2", "A1"],
    "dev.of-dev": ["B3", "A2", "A1"],
}
VERSIONS = {
    "main": {PERSON: 5, CITY: 1},
    "dev": {PERSON: 2, CITY: 3},
    "dev.of-dev": {PERSON: 2, CITY: 2},
}
"""Where the tables stand on each branch."""


def schema(stamp: int) -> pa.Schema:
    """The columns of a manifest with that stamp; the first kind had neither stamp nor key."""
    key = {"lance-schema:unenforced-primary-key": "true"} if stamp > 1 else None
    return pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False, metadata=key),
            pa.field("object_type", pa.string(), nullable=False),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.string())),
            pa.field("table_key", pa.string()),
            pa.field("table_version", pa.uint64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.uint64()),
        ],
        metadata={STAMP: str(stamp)} if stamp > 1 else None,
    )


class LegacyGraph:
    """A graph of an older release, in the making."""

    def __init__(self, root: Path, stamp: int) -> None:
        self.root = root
        self.schema = schema(stamp)
        self._manifest = str(root / layout.MANIFEST)
        self._commits: list[dict[str, Any]] = []
        declared = compile_schema(SCHEMA)
        root.mkdir(parents=True, exist_ok=True)
        (root / layout.SCHEMA_SOURCE).write_text(SCHEMA)
        (root / layout.SCHEMA_IR).write_text(first_identities(declared, domain="legacy").dumps())
        for table_key in (PERSON, CITY):
            table = pa.table({"id": pa.array([], pa.string())})
            lance.write_dataset(table, str(root / layout.table_location(table_key)))

    def start(self) -> None:
        rows = [*map(registration, (PERSON, CITY)), version(PERSON, 1), version(CITY, 1)]
        lance.write_dataset(pa.Table.from_pylist(rows, schema=self.schema), self._manifest)

    def append(self, row: dict[str, Any], branch: str | None = None) -> None:
        """Publish as older releases did: one more row."""
        uri = self._manifest if branch is None else f"{self._manifest}/tree/{branch}"
        lance.write_dataset(pa.Table.from_pylist([row], schema=self.schema), uri, mode="append")

    def fork(self, name: str, parent: str | None, version: int) -> None:
        lance.dataset(self._manifest).create_branch(name, (parent, version))

    def commit(self, id_: str, at: int, parent: str | None, branch: str | None = None, merged: str = "") -> None:
        """Note a commit at a manifest version, in the table beside the manifest."""
        self._commits.append(
            {
                "graph_commit_id": id_,
                "manifest_branch": branch,
                "manifest_version": at,
                "parent_commit_id": parent,
                "merged_parent_commit_id": merged or None,
                "created_at": NOON + dt.timedelta(minutes=len(self._commits)),
            }
        )

    def finish(self) -> None:
        """Write the history."""
        commits = pa.schema(
            {
                "graph_commit_id": pa.string(),
                "manifest_branch": pa.string(),
                "manifest_version": pa.uint64(),
                "parent_commit_id": pa.string(),
                "merged_parent_commit_id": pa.string(),
                "created_at": pa.timestamp("us", tz="UTC"),
            }
        )
        rows = pa.Table.from_pylist(self._commits, schema=commits)
        lance.write_dataset(rows, str(self.root / layout.COMMITS))
        actors = [{"graph_commit_id": id_, "actor_id": actor} for id_, actor in ACTORS.items()]
        lance.write_dataset(pa.Table.from_pylist(actors), str(self.root / layout.LEGACY_ACTORS))


def registration(table_key: str) -> dict[str, Any]:
    return {
        "object_id": f"table:{table_key}",
        "object_type": "table",
        "location": layout.table_location(table_key),
        "table_key": table_key,
    }


def version(table_key: str, at: int, branch: str | None = None) -> dict[str, Any]:
    return {
        "object_id": f"version:{table_key}@{branch}@{at}",
        "object_type": "table_version",
        "table_key": table_key,
        "table_version": at,
        "table_branch": branch,
        "row_count": 10 * at,
    }


def write_graph(root: Path, stamp: int) -> Path:
    """The graph drawn above. Up to stamp 2 there may be branches of interrupted runs."""
    graph = LegacyGraph(root, stamp)
    graph.start()
    graph.commit("A1", 1, None)
    graph.append(version(PERSON, 2))
    graph.commit("A2", 2, "A1")
    graph.fork("dev", None, 2)
    graph.append(version(CITY, 2, "dev"), "dev")
    graph.commit("B3", 3, "A2", "dev")
    graph.fork("dev.of-dev", "dev", 3)
    graph.append(version(CITY, 3, "dev"), "dev")
    graph.commit("B4", 4, "B3", "dev")
    for at, merged in ((3, ""), (4, ""), (5, "B3")):
        graph.append(version(PERSON, at))
        graph.commit(f"A{at}", at, f"A{at - 1}", merged=merged)
    if stamp < 3:
        graph.fork("__run__1", None, 2)
        graph.fork("__run__2", None, 5)
    graph.finish()
    return root


def write_long_graph(root: Path, commits: int) -> Path:
    """A graph of the third kind with one branch and a long history."""
    graph = LegacyGraph(root, 3)
    graph.start()
    graph.commit("A1", 1, None)
    for at in range(2, commits + 1):
        graph.append(version(PERSON, at))
        graph.commit(f"A{at}", at, f"A{at - 1}")
    graph.finish()
    return root
