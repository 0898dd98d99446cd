"""One table as a plan of its indexes sees it, through a handle of its own."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

from lance import LanceDataset

from omnigraph.storage.stage.indexes import (
    ExistingIndex,
    IndexSpec,
    SegmentBuild,
    chosen_fragments,
    existing_indexes,
    fragment_rows,
    plan_catch_up,
    plan_index,
)
from omnigraph.storage.unavailable import translated


class IndexedTable:
    """A version of a table: its rows, its indexes, and what they lack. Nothing is read before it is asked for."""

    def __init__(self, handle: LanceDataset, shared_with: str | None) -> None:
        self._handle = handle
        self.shared_with = shared_with

    @cached_property
    def rows(self) -> int:
        """How many rows the table has."""
        with translated(self._handle.uri):
            return sum(fragment_rows(self._handle).values())

    @cached_property
    def indexes(self) -> tuple[ExistingIndex, ...]:
        """The indexes of the table."""
        return tuple(existing_indexes(self._handle))

    def filled(self, column: str, fragments: Collection[int] | None = None) -> int:
        """How many rows, of all or of some fragments, have a value in a column. This scans the column."""
        some = None if fragments is None else chosen_fragments(self._handle, fragments)
        with translated(self._handle.uri):
            scanner = self._handle.scanner(
                columns=[], filter=f"`{column}` is not null", fragments=some, with_row_id=True
            )
            return int(scanner.count_rows())

    def whole(self, spec: IndexSpec) -> list[SegmentBuild]:
        """The segments of an index over all rows."""
        return plan_index(self._handle, spec)

    def catching_up(self, spec: IndexSpec, index: ExistingIndex) -> list[SegmentBuild]:
        """The segments with which an index answers for all rows."""
        return plan_catch_up(self._handle, spec, index.segments)
