"""The history of a graph: the archive of older commits, and the walk from a head through all its ancestors."""

from __future__ import annotations

import datetime as dt
from bisect import insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from omnigraph.manifest.state import MAIN, Commit
from omnigraph.storage import layout
from omnigraph.storage.tables import TableRef, Tables

ARCHIVE_SCHEMA: Final = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("branch", pa.string(), nullable=False),
        pa.field("manifest_version", pa.uint64(), nullable=False),
        pa.field("parents", pa.list_(pa.string()), nullable=False),
        pa.field("created_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("actor_id", pa.string()),
        pa.field("message", pa.string()),
    ]
)

_FIRST_PAGE: Final = 256
"""How many commits the first page of the archive has; each further page has twice as many."""


class Archive:
    """The commits that no longer fit into the manifest. A commit may be stored twice; readers see it once."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def append(self, commits: Iterable[Commit]) -> None:
        """Add commits; adding them again after a crash does no harm."""
        rows = pa.Table.from_pylist([_row(commit) for commit in commits], schema=ARCHIVE_SCHEMA)
        self._tables.append_to_log(layout.COMMITS, rows)

    def replace(self, commits: Sequence[Commit]) -> None:
        """Replace the whole archive, as the migration from older formats does."""
        from omnigraph.storage.stage.changes import stage_overwrite

        ref = self._newest() or self._tables.create(layout.COMMITS, ARCHIVE_SCHEMA)
        rows = pa.Table.from_pylist([_row(commit) for commit in commits], schema=ARCHIVE_SCHEMA)
        self._tables.commit_staged(stage_overwrite(self._tables.open(ref), ref.location, None, rows, "archive"))

    def find(self, graph_commit_id: str) -> Commit | None:
        """One archived commit."""
        return next(iter(self.read(f"graph_commit_id = '{graph_commit_id}'").values()), None)

    def read(self, where: str | None = None) -> dict[str, Commit]:
        """Archived commits by id."""
        ref = self._newest()
        if ref is None:
            return {}
        return self._decoded(self._tables.scan(ref, where=where).read_all())

    def pages(self) -> Iterator[dict[str, Commit]]:
        """All archived commits, those that were archived last first, in pages that grow."""
        ref = self._newest()
        left, size = (0, 0) if ref is None else (self._tables.count(ref), _FIRST_PAGE)
        while ref is not None and left > 0:
            start = max(left - size, 0)
            yield self._decoded(self._tables.rows_from(ref, start, left - start))
            left, size = start, size * 2

    def _decoded(self, rows: pa.Table) -> dict[str, Commit]:
        if "parents" not in rows.schema.names:
            actors = self._legacy_actors()
            return {row["graph_commit_id"]: _from_legacy(row, actors) for row in rows.to_pylist()}
        return {row["graph_commit_id"]: _from_row(row) for row in rows.to_pylist()}

    def _newest(self) -> TableRef | None:
        version = self._tables.newest(layout.COMMITS)
        return None if version is None else TableRef(layout.COMMITS, None, version)

    def _legacy_actors(self) -> dict[str, str]:
        """Older releases kept actors in a table of their own."""
        version = self._tables.newest(layout.LEGACY_ACTORS)
        if version is None:
            return {}
        rows = self._tables.scan(TableRef(layout.LEGACY_ACTORS, None, version)).read_all()
        return {row["graph_commit_id"]: row["actor_id"] for row in rows.to_pylist()}


class Ancestry:
    """Commits by id. Those that are not known are loaded when they are first asked for, the cheapest place first.

    ``places`` is read one by one, and only as far as it takes to find what is missing.
    """

    def __init__(self, known: Mapping[str, Commit], places: Iterator[Mapping[str, Commit]]) -> None:
        self._known = dict(known)
        self._places = places

    def find(self, graph_commit_id: str) -> Commit | None:
        """One commit; None if no place has it."""
        while graph_commit_id not in self._known:
            place = next(self._places, None)
            if place is None:
                return None
            self._known = {**place, **self._known}
        return self._known[graph_commit_id]

    def parents(self, commit: Commit) -> list[Commit]:
        """The parents of a commit, the first one first. One that no place has ends its path, and is left out."""
        found = map(self.find, commit.parents)
        return [parent for parent in found if parent is not None]


def history(head: Commit | None, ancestry: Ancestry) -> Iterator[Commit]:
    """A head and all its ancestors, newest first, merged ones included."""
    waiting = [] if head is None else [head]
    seen = {commit.graph_commit_id for commit in waiting}
    while waiting:
        commit = waiting.pop()
        yield commit
        for parent in ancestry.parents(commit):
            if parent.graph_commit_id not in seen:
                seen.add(parent.graph_commit_id)
                insort(waiting, parent, key=age)


def age(commit: Commit) -> tuple[dt.datetime, int, str]:
    """What commits are ordered by, the oldest first."""
    return commit.created_at, commit.manifest_version, commit.graph_commit_id


def _row(commit: Commit) -> dict[str, Any]:
    return commit.as_json() | {"created_at": commit.created_at}


def _from_row(row: Mapping[str, Any]) -> Commit:
    return Commit(
        row["graph_commit_id"],
        row["branch"],
        row["manifest_version"],
        tuple(row["parents"]),
        row["created_at"],
        row["kind"],
        row["actor_id"],
        row["message"],
    )


def _from_legacy(row: Mapping[str, Any], actors: Mapping[str, str]) -> Commit:
    """A commit as releases up to internal schema 3 stored it."""
    parents = (row.get("parent_commit_id"), row.get("merged_parent_commit_id"))
    return Commit(
        graph_commit_id=row["graph_commit_id"],
        branch=row.get("manifest_branch") or MAIN,
        manifest_version=row["manifest_version"],
        parents=tuple(parent for parent in parents if parent),
        created_at=row["created_at"],
        kind="legacy",
        actor_id=actors.get(row["graph_commit_id"]),
    )
