"""The history of a graph: the archive of older commits, and the walk from a head through all its ancestors."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from omnigraph.manifest.state import MAIN, Commit
from omnigraph.storage import layout
from omnigraph.storage.staging import stage_overwrite
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
        rows = self._tables.scan(ref, where=where).read_all()
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


def history(
    head: Commit | None, known: Mapping[str, Commit], more: Iterable[Callable[[], Mapping[str, Commit]]]
) -> Iterator[Commit]:
    """A head and all its ancestors, newest first, merged ones included.

    ``more`` are functions that load further commits, the cheapest first; each is called only when the walk meets a
    parent that is not yet known. A parent that none of them has ends its path.
    """
    places = iter(more)
    seen: set[str] = set()
    while True:
        for commit in _reachable(head, known):
            if commit.graph_commit_id not in seen:
                seen.add(commit.graph_commit_id)
                yield commit
            if not all(parent in known for parent in commit.parents) and (place := next(places, None)):
                known = {**place(), **known}
                break
        else:
            return


def _reachable(head: Commit | None, known: Mapping[str, Commit]) -> Iterator[Commit]:
    waiting = [] if head is None else [head]
    seen = {commit.graph_commit_id for commit in waiting}
    while waiting:
        waiting.sort(key=_age)
        commit = waiting.pop()
        yield commit
        for parent in commit.parents:
            found = known.get(parent)
            if found is not None and parent not in seen:
                seen.add(parent)
                waiting.append(found)


def _age(commit: Commit) -> tuple[dt.datetime, int, str]:
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
