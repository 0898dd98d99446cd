"""What changed in one table between two of its versions, on any branches, at the cost of the change.

Lance tells by row ids which rows were inserted, updated and deleted along one native branch. Two branches give the
same row ids to different new rows, so everything here is put together by the entities' own ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.columns import Columns
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.storage.unavailable import translated

_LOOKED_UP: Final = 32_768
"""How many rows are fetched by one look-up of row ids."""
_SCANNED: Final = 65_536
"""So many rows, if they are a good part of their table, are found by reading all of it once instead."""
_GOOD_PART: Final = 4
"""A good part of a table is one in so many of its rows."""
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


@dataclass(frozen=True, slots=True)
class Stretch:
    """Two versions of a table on one native branch, of which the later one descends from the earlier."""

    start: TableRef
    end: TableRef


@dataclass(frozen=True, slots=True)
class TouchedRows:
    """The rows that were written along a stretch, by row id: those its start still has, and those its end has."""

    before: pa.Array
    after: pa.Array

    def __len__(self) -> int:
        return len(self.before) + len(self.after)


Touched = Callable[[Stretch], TouchedRows]
"""Finds the rows that were written along a stretch, all of them or those of interest."""


class RowDeltas:
    """Finds all rows that were written along stretches, and remembers them: row ids, and nothing of the rows."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._found: dict[Stretch, TouchedRows] = {}

    def __call__(self, stretch: Stretch) -> TouchedRows:
        if stretch not in self._found:
            delta = self.tables.delta(stretch.end, stretch.start.version)
            before = pa.concat_arrays([delta.updated, delta.deleted])
            self._found[stretch] = TouchedRows(before, pa.concat_arrays([delta.updated, delta.inserted]))
        return self._found[stretch]


def changes_between(
    tables: Tables, before: TableRef, after: TableRef, columns: Columns, touched: Touched
) -> RowChanges:
    """The rows that differ between two versions of a table, with some columns; `id` is one of them.

    Rows that both sides of a fork have changed alike are among them; they are equal before and after.
    """
    shared = common_version(tables, before, after)
    old = changes_since(tables, shared, before, columns, touched)
    new = changes_since(tables, shared, after, columns, touched)
    # What only one side has changed is, on the other side, still as it was in the version they share.
    return RowChanges(
        _together([old.after, _without(new.before, old.ids)]),
        _together([new.after, _without(old.before, new.ids)]),
    )


def stretches_between(tables: Tables, before: TableRef, after: TableRef) -> list[Stretch]:
    """The stretches that lead from two versions of a table back to the newest one that both descend from."""
    shared = common_version(tables, before, after)
    return [*_stretches(tables, shared, before), *_stretches(tables, shared, after)]


def changes_since(
    tables: Tables, since: TableRef, ref: TableRef, columns: Columns, touched: Touched
) -> RowChanges:
    """The rows that differ between a version and a later one that descends from it."""
    changes: RowChanges | None = None
    for stretch in _stretches(tables, since, ref):
        rows = touched(stretch)
        found = RowChanges(
            rows_of(tables, stretch.start, rows.before, columns),
            rows_of(tables, stretch.end, rows.after, columns),
        )
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
        here = tables.left_from(here)


def _stretches(tables: Tables, since: TableRef, ref: TableRef) -> list[Stretch]:
    """The stretches of native branches that lead from a version to a later one, the oldest first."""
    found: list[Stretch] = []
    for here in _path(tables, ref):
        if here.branch == since.branch:
            if since.version < here.version:
                found.append(Stretch(since, here))
            return found[::-1]
        point = tables.left_from(here)
        assert point is not None, f"{here.branch} of {here.location} was forked from nothing"  # noqa: S101
        if point.version < here.version:
            found.append(Stretch(replace(here, version=point.version, checksum=None), here))
    raise AssertionError(f"{ref.location} does not lead back to {since.branch}")


def rows_of(tables: Tables, ref: TableRef, row_ids: pa.Array, columns: Columns) -> pa.Table:
    """Rows by their row ids, with columns that the version may know by other names."""
    names = columns.at(tables.open(ref), ref.location)
    rows = rows_by_row_ids(tables, ref, row_ids, list(dict.fromkeys(names.values())))
    return columns.translated(rows, names)


def rows_by_row_ids(
    tables: Tables, ref: TableRef, row_ids: pa.Array, columns: Sequence[str], *, with_row_ids: bool = False
) -> pa.Table:
    """Rows by their row ids, in no certain order, blobs with their bytes. At most once the table is read."""
    handle = tables.verified(ref)
    wanted = [*columns, ROW_ID] if with_row_ids else list(columns)
    known = np.sort(row_ids.to_numpy(zero_copy_only=False))
    with translated(tables.shown(ref.location)):
        parts = [handle.scanner(wanted, blob_handling="all_binary", limit=0).to_table()]
        if len(known) >= max(_SCANNED, handle.count_rows() // _GOOD_PART):
            scanner = handle.scanner(list(columns), with_row_id=True, blob_handling="all_binary")
            for batch in scanner.to_reader():
                mask = pa.array(_is_among(batch[ROW_ID].to_numpy(), known))
                parts.append(pa.Table.from_batches([batch]).filter(mask).select(wanted))
        else:
            for start in range(0, len(known), _LOOKED_UP):
                listed = ", ".join(map(str, known[start : start + _LOOKED_UP].tolist()))
                scanner = handle.scanner(wanted, filter=f"{ROW_ID} in ({listed})", blob_handling="all_binary")
                parts.append(scanner.to_table())
    return pa.concat_tables(parts)


def _is_among(values: npt.NDArray[np.uint64], known: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Which values are in a sorted array that is not empty."""
    at = np.minimum(np.searchsorted(known, values), len(known) - 1)
    found: npt.NDArray[np.bool_] = known[at] == values
    return found


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


def _empty(tables: Tables, ref: TableRef, columns: Columns) -> pa.Table:
    return rows_of(tables, ref, pa.array([], pa.uint64()), columns)
