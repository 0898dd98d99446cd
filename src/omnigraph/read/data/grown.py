"""Columns that follow their table: what is known stays, and the rows of new pieces are read and added.

Only pieces of the version that a query reads can be read. Where a column has positions of other pieces, of another
branch for instance, it holds anything, because no row of the version is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.read.data.layout import Files, Placement, Stretch
from omnigraph.read.values.columns import Column
from omnigraph.settings import ReadSettings

ReadPieces = Callable[[Sequence[Stretch]], pa.ChunkedArray]
"""Reads the column of some pieces, one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class GrownColumn:
    """A column by position, and the pieces whose rows it has."""

    column: Column
    known: frozenset[Files]

    @property
    def nbytes(self) -> int:
        return self.column.nbytes

    def suits(self, placement: Placement) -> bool:
        """Has it all rows of a version?"""
        return len(self.column) >= placement.size and self.known.issuperset(placement.by_files)

    def followed(self, placement: Placement, read: ReadPieces) -> GrownColumn:
        """The column with the rows of a version that it does not have yet."""
        missing = [stretch for stretch in placement.stretches if stretch.piece.files not in self.known]
        first = min((stretch.start for stretch in missing), default=placement.size)
        known = self.known.union(placement.by_files)
        if first >= len(self.column):
            rows = _assembled(self.column.arrow, missing, read, len(self.column), placement.size)
            return GrownColumn(self.column.followed_by(rows), known)
        size = max(placement.size, len(self.column))
        rows = _assembled(self.column.arrow, missing, read, 0, size)
        return GrownColumn(Column(rows, self.column.settings), known)


def first_read(kind: pa.DataType, placement: Placement, read: ReadPieces, settings: ReadSettings) -> GrownColumn:
    """The column of a version, of which nothing was known."""
    rows = _assembled(pa.nulls(0, kind), placement.stretches, read, 0, placement.size)
    return GrownColumn(Column(rows, settings), frozenset(placement.by_files))


def rows_between(kind: pa.DataType, placement: Placement, read: ReadPieces, low: int, high: int) -> pa.Array:
    """The rows of a version between two positions at which stretches begin or end."""
    inside = [stretch for stretch in placement.stretches if low <= stretch.start and stretch.stop <= high]
    return _assembled(pa.nulls(0, kind), inside, read, low, high)


def _assembled(before: pa.Array, missing: Sequence[Stretch], read: ReadPieces, low: int, high: int) -> pa.Array:
    """The column between two positions: as it was before, with the rows of the missing stretches."""
    chunks = read(missing) if missing else pa.chunked_array([], before.type)
    if pa.types.is_large_string(before.type):
        chunks = chunks.cast(before.type)
    parts = list(_parts(before, missing, chunks, low, high))
    return Column.of(pa.chunked_array(parts, chunks.type)).arrow


def _parts(
    before: pa.Array, missing: Sequence[Stretch], chunks: pa.ChunkedArray, low: int, high: int
) -> Iterator[pa.Array]:
    begins, begin = dict[int, int](), 0
    for stretch in missing:
        begins[stretch.start] = begin
        begin += stretch.piece.rows
    if begin != len(chunks):
        raise RuntimeError(f"{len(chunks)} rows were read where the pieces have {begin}")
    cursor = low
    for stretch in sorted(missing, key=lambda one: one.start):
        yield from _between(before, cursor, stretch.start, chunks.type)
        yield from chunks.slice(begins[stretch.start], stretch.piece.rows).chunks
        cursor = stretch.stop
    yield from _between(before, cursor, high, chunks.type)


def _between(before: pa.Array, low: int, high: int, kind: pa.DataType) -> Iterator[pa.Array]:
    """What was there before, and something in the place of what was not."""
    if low < min(high, len(before)):
        yield before.slice(low, min(high, len(before)) - low)
    low = max(low, len(before))
    if low < high:
        yield _anything(kind, high - low)


def _anything(kind: pa.DataType, count: int) -> pa.Array:
    """So many values without a null, where that is possible: columns without nulls are faster."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.repeat(pa.scalar("", kind), count)
    if pa.types.is_primitive(kind):
        return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(bytes(count * kind.bit_width // 8 + 1))])
    return pa.nulls(count, kind)
