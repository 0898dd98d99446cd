"""The changes of one table, window by window of ids, so that a commit of any size is read in bounded memory.

Lance tells which rows were touched by row ids alone. If they are few, they are compared at once. Otherwise only
their ids are read and sorted, and the rows of a window are read when a page comes to it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.history.diff import ChangeFilter, Op, TableDiff, diff_table, with_ops
from omnigraph.history.tables import (
    ROW_ID,
    RowDeltas,
    Stretch,
    Touched,
    TouchedRows,
    rows_by_row_ids,
    stretches_between,
)
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import TableRef, Tables

WINDOW: Final = 16_384
"""How many ids are compared at once."""


@dataclass(frozen=True, slots=True)
class Window:
    """Some changes of a table, with the place of each, and the place where the next window begins."""

    changes: TableDiff
    places: npt.NDArray[np.int64]
    end: int


class TableWindows:
    """The changes of one table between two states. Their places are below ``size``, in the order of ids."""

    def __init__(
        self,
        tables: Tables,
        states: tuple[Snapshot, Snapshot],
        table_key: str,
        ops: Collection[Op] | None,
        window: int = WINDOW,
    ) -> None:
        self._tables, self._states, self._table_key, self._ops = tables, states, table_key, ops
        self._window = window
        before, after = (state.tables[table_key].ref for state in states)
        deltas = RowDeltas(tables)
        stretches = stretches_between(tables, before, after)
        self._ids: _TouchedIds | None = None
        self._latest: tuple[int, Window] | None = None
        if sum(len(deltas(stretch)) for stretch in stretches) <= 2 * window:
            found = self._compared(deltas)
            self.size = len(found.ids)
            self._latest = (0, Window(found, np.arange(self.size), self.size))
        else:
            self._ids = _TouchedIds(tables, stretches, deltas)
            self.size = len(self._ids.ids)

    def at(self, place: int) -> Window:
        """The changes from a place to the end of its window."""
        number = 0 if self._ids is None else place // self._window
        latest = self._latest
        if latest is None or latest[0] != number:
            latest = (number, self._read(number * self._window))
            self._latest = latest
        window = latest[1]
        first = int(np.searchsorted(window.places, place))
        rest = window.changes.slice(first, len(window.changes.ids) - first)
        return Window(rest, window.places[first:], window.end)

    def all(self) -> Iterator[TableDiff]:
        """The changes of one window after another."""
        place = 0
        while place < self.size:
            window = self.at(place)
            yield window.changes
            place = window.end

    def _read(self, begin: int) -> Window:
        assert self._ids is not None  # noqa: S101  a table with few changes has its only window
        end = min(begin + self._window, self.size)
        found = self._compared(self._ids.between(begin, end))
        places = pc.index_in(found.ids, value_set=self._ids.ids.slice(begin, end - begin))
        return Window(found, begin + places.to_numpy(zero_copy_only=False).astype(np.int64), end)

    def _compared(self, touched: Touched) -> TableDiff:
        return with_ops(diff_table(self._tables, *self._states, self._table_key, touched), self._ops)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Row ids in the order of the entities' ids, with the places of those."""

    places: npt.NDArray[np.int64]
    row_ids: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, found: pa.Table, ids: pa.Array) -> _Rows:
        places = pc.index_in(found["id"].combine_chunks(), value_set=ids).to_numpy(zero_copy_only=False)
        order = np.argsort(places, kind="stable")
        return cls(places[order].astype(np.int64), found[ROW_ID].to_numpy()[order])

    def between(self, begin: int, end: int) -> pa.Array:
        first, last = np.searchsorted(self.places, [begin, end])
        return pa.array(self.row_ids[first:last], pa.uint64())


class _TouchedIds:
    """The ids of all rows that may have changed, sorted, and for each stretch the rows that have them."""

    def __init__(self, tables: Tables, stretches: list[Stretch], deltas: RowDeltas) -> None:
        def read(ref: TableRef, row_ids: pa.Array) -> pa.Table:
            return rows_by_row_ids(tables, ref, row_ids, ["id"], with_row_ids=True)

        found = {
            stretch: (read(stretch.start, deltas(stretch).before), read(stretch.end, deltas(stretch).after))
            for stretch in stretches
        }
        chunks = [chunk for pair in found.values() for rows in pair for chunk in rows["id"].chunks]
        unsorted = pc.unique(pa.chunked_array(chunks, pa.string()))
        self.ids = unsorted.take(pc.sort_indices(unsorted))
        self._rows = {
            stretch: (_Rows.of(before, self.ids), _Rows.of(after, self.ids))
            for stretch, (before, after) in found.items()
        }

    def between(self, begin: int, end: int) -> Touched:
        """Finds the rows whose ids have places from one up to another."""

        def find(stretch: Stretch) -> TouchedRows:
            before, after = self._rows[stretch]
            return TouchedRows(before.between(begin, end), after.between(begin, end))

        return find


class HeldWindows:
    """The last table that a page was cut in, so that the next page does not look for its changes again."""

    def __init__(self, window: int = WINDOW) -> None:
        self._window = window
        self._held: tuple[tuple[TableRef, TableRef, ChangeFilter], TableWindows] | None = None

    def of(
        self, tables: Tables, states: tuple[Snapshot, Snapshot], table_key: str, wanted: ChangeFilter
    ) -> TableWindows:
        """The changes of one table that the commit has touched."""
        before, after = (state.tables[table_key].ref for state in states)
        key, held = (before, after, wanted), self._held
        if held is not None and held[0] == key:
            return held[1]
        found = TableWindows(tables, states, table_key, wanted.ops, self._window)
        self._held = (key, found)
        return found

    def drop(self) -> None:
        """Let go of it."""
        self._held = None
