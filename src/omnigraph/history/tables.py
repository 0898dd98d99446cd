"""What changed in one table between two of its versions, on any branches, at the cost of the change.

Lance tells by row ids which rows were inserted, updated and deleted along one native branch. Two branches give the
same row ids to different new rows, so everything here is put together by the entities' own ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables import TableRef, Tables
from omnigraph.storage.unavailable import translated

_LOOKED_UP: Final = 4_096
"""How many rows are fetched by one look-up of row ids."""
_SCANNED: Final = 65_536
"""From so many rows on, their table is read once instead."""
ROW_ID: Final = "_rowid"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """Rows of a table as they were and as they are, each id at most once in either.

    A row that is only in ``after`` was inserted, one that is only in ``before`` was deleted. One that is in both
    was written in between, and may still be equal.
    """

    before: pa.Table
    after: pa.Table

    @property
    def reverse(self) -> RowChanges:
        """The changes that undo these."""
        return RowChanges(self.after, self.before)

    @property
    def ids(self) -> pa.Array:
        """The ids of all rows that may differ, sorted."""
        both = pa.chunked_array([*self.before["id"].chunks, *self.after["id"].chunks], pa.string())
        found = pc.unique(both)
        return found.take(pc.sort_indices(found))


def changes_between(tables: Tables, before: TableRef, after: TableRef, columns: Sequence[str]) -> RowChanges:
    """The rows that differ between two versions of a table, with the columns named; `id` is one of them.

    Rows that both sides of a fork have changed alike are among them; they are equal before and after.
    """
    shared = common_version(tables, before, after)
    old = changes_since(tables, shared, before, columns)
    new = changes_since(tables, shared, after, columns)
    # What only one side has changed is, on the other side, still as it was in the version they share.
    return RowChanges(
        _together([old.after, _without(new.before, old.ids)]),
        _together([new.after, _without(old.before, new.ids)]),
    )


def changes_since(tables: Tables, since: TableRef, ref: TableRef, columns: Sequence[str]) -> RowChanges:
    """The rows that differ between a version and a later one that descends from it."""
    changes: RowChanges | None = None
    for start, end in _segments(tables, since, ref):
        found = _changed(tables, start, end, columns)
        changes = found if changes is None else followed(changes, found)
    if changes is None:
        none = _empty(tables, ref, columns)
        return RowChanges(none, none)
    return changes


def common_version(tables: Tables, left: TableRef, right: TableRef) -> TableRef:
    """The newest version that two versions of a table both descend from."""
    ours = {ref.branch: ref.version for ref in _path(tables, left)}
    for ref in _path(tables, right):
        if ref.branch in ours:
            return replace(ref, version=min(ref.version, ours[ref.branch]), checksum=None)
    raise AssertionError(f"{left.location} has branches that descend from nothing")


def _path(tables: Tables, ref: TableRef) -> Iterator[TableRef]:
    """A version, the one that its native branch was forked from, and so on to the trunk."""
    here: TableRef | None = ref
    while here is not None:
        yield here
        here = None if here.branch is None else tables.fork_point(here.location, here.branch)


def _segments(tables: Tables, since: TableRef, ref: TableRef) -> list[tuple[TableRef, TableRef]]:
    """The stretches of native branches that lead from a version to a later one, the oldest first."""
    segments: list[tuple[TableRef, TableRef]] = []
    for here in _path(tables, ref):
        if here.branch == since.branch:
            if since.version < here.version:
                segments.append((since, here))
            return segments[::-1]
        point = tables.fork_point(here.location, here.branch or "")
        assert point is not None, f"{here.branch} of {here.location} was forked from nothing"  # noqa: S101
        if point.version < here.version:
            segments.append((replace(here, version=point.version, checksum=None), here))
    raise AssertionError(f"{ref.location} does not lead back to {since.branch}")


def _changed(tables: Tables, start: TableRef, end: TableRef, columns: Sequence[str]) -> RowChanges:
    """What happened along one native branch."""
    delta = tables.delta(end, start.version)
    updated, inserted = delta.updated[ROW_ID].chunks, delta.inserted[ROW_ID].chunks
    return RowChanges(
        _rows(tables, start, _joined([*updated, *delta.deleted_row_ids.chunks]), columns),
        _rows(tables, end, _joined([*updated, *inserted]), columns),
    )


def _joined(chunks: Sequence[pa.Array]) -> pa.Array:
    return pa.concat_arrays([pa.array([], pa.uint64()), *(chunk.cast(pa.uint64()) for chunk in chunks)])


def _rows(tables: Tables, ref: TableRef, row_ids: pa.Array, columns: Sequence[str]) -> pa.Table:
    """Rows by their row ids, blobs with their bytes."""
    handle = tables.verified(ref)
    with translated(tables.shown(ref.location)):
        schema = handle.scanner(columns=list(columns), blob_handling="all_binary", limit=0).to_table().schema
        if len(row_ids) >= _SCANNED:
            scanner = handle.scanner(columns=list(columns), with_row_id=True, blob_handling="all_binary")
            found = scanner.to_table()
            return found.filter(pc.is_in(found[ROW_ID], value_set=row_ids)).select(list(columns))
        parts = []
        for start in range(0, len(row_ids), _LOOKED_UP):
            wanted = ", ".join(map(str, row_ids.slice(start, _LOOKED_UP).to_pylist()))
            scanner = handle.scanner(
                columns=list(columns), filter=f"{ROW_ID} in ({wanted})", blob_handling="all_binary"
            )
            parts.append(scanner.to_table())
    return pa.concat_tables(parts) if parts else schema.empty_table()


def followed(earlier: RowChanges, later: RowChanges) -> RowChanges:
    """Two changes, one after the other, as one."""
    return RowChanges(
        _together([earlier.before, _without(later.before, earlier.ids)]),
        _together([_without(earlier.after, later.ids), later.after]),
    )


def _without(rows: pa.Table, ids: pa.Array) -> pa.Table:
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))


def _together(parts: Sequence[pa.Table]) -> pa.Table:
    return pa.concat_tables([part.cast(parts[0].schema) for part in parts])


def _empty(tables: Tables, ref: TableRef, columns: Sequence[str]) -> pa.Table:
    return _rows(tables, ref, _joined([]), columns)
