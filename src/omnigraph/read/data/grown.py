"""Columns that follow their table: what is known stays, and the rows of new pieces are read and added.

Only pieces of the version that a query reads can be read. Where a column has positions of other pieces, of another
branch for instance, it holds anything, because no row of the version is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.read.data.layout import Files, Placement, Stretch
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Column
from omnigraph.records import dataclass
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
        return len(self.column) >= placement.size and not placement.unknown(self.known)

    def followed(self, placement: Placement, read: ReadPieces) -> GrownColumn:
        """The column with the rows of a version that it does not have yet."""
        missing = placement.unknown(self.known)
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
    return _assembled(pa.nulls(0, kind), placement.between(low, high), read, low, high)


def _assembled(before: pa.Array, missing: Sequence[Stretch], read: ReadPieces, low: int, high: int) -> pa.Array:
    """The column between two positions: as it was before, with the rows of the missing stretches."""
    chunks = read(missing) if missing else pa.chunked_array([], before.type)
    if pa.types.is_large_string(before.type):
        chunks = chunks.cast(before.type)
    if sum(stretch.piece.rows for stretch in missing) != len(chunks):
        raise RuntimeError(f"{len(chunks)} rows were read where the pieces have others")
    rows, begin = dict[int, pa.ChunkedArray](), 0
    for number, stretch in enumerate(missing):
        rows[number] = chunks.slice(begin, stretch.piece.rows)
        begin += stretch.piece.rows
    whole = {stretch: rows[n] for n, stretch in enumerate(missing) if not stretch.is_scattered}
    parts = list(_parts(before, whole, chunks.type, low, high))
    scattered = {stretch: rows[n] for n, stretch in enumerate(missing) if stretch.is_scattered}
    if not scattered:
        return Column.of(pa.chunked_array(parts, chunks.type)).arrow
    index = np.arange(high - low)
    begin = high - low
    for stretch, some in scattered.items():
        at = stretch.positions
        inside = np.flatnonzero((at >= low) & (at < high))
        index[at[inside] - low] = begin + inside
        begin += len(at)
        parts += some.chunks
    return Column.of(pa.chunked_array(parts, chunks.type).take(to_arrow(index))).arrow


def _parts(
    before: pa.Array, missing: Mapping[Stretch, pa.ChunkedArray], kind: pa.DataType, low: int, high: int
) -> Iterator[pa.Array]:
    """What was there before, with the rows of stretches that lie one behind the other."""
    cursor = low
    for stretch in sorted(missing, key=lambda one: one.start):
        yield from _between(before, cursor, stretch.start, kind)
        yield from missing[stretch].chunks
        cursor = stretch.stop
    yield from _between(before, cursor, high, kind)


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
