"""Large tables in pieces: rows whose values lie in one range of a column, of which few enough fit into memory.

Rows with the same value are always in the same piece, so what holds of values in each piece holds of the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.tables import TableRef, Tables

ROWS_PER_PIECE: Final = 1_000_000
_SAMPLES_PER_PIECE: Final = 64


@dataclass(frozen=True, slots=True)
class Piece:
    """A range of values, from ``low`` on and below ``high``; None is no bound."""

    low: Any = None
    high: Any = None

    def of(self, rows: pa.Table, column: str) -> pa.Table:
        """The rows whose values lie in the range."""
        values = rows[column]
        mask = None
        if self.low is not None:
            mask = pc.greater_equal(values, pa.scalar(self.low, values.type))
        if self.high is not None:
            below = pc.less(values, pa.scalar(self.high, values.type))
            mask = below if mask is None else pc.and_(mask, below)
        return rows if mask is None else rows.filter(mask)


def pieces_of(tables: Tables, ref: TableRef, column: str, rows_per_piece: int) -> list[Piece]:
    """Ranges of a column with about equally many rows, at most so many if values do not repeat."""
    rows = tables.count(ref)
    count = -(-rows // rows_per_piece)
    if count <= 1:
        return [Piece()]
    step = max(1, rows // (count * _SAMPLES_PER_PIECE))
    sampled: list[pa.Array] = []
    for batch in tables.pass_through(ref, [column]):
        values = batch.column(0).drop_null()
        sampled.append(values.take(pa.array(range(0, len(values), step), pa.int64())))
    ordered = pa.chunked_array(sampled, tables.open(ref).schema.field(column).type).sort()
    if not len(ordered):
        return [Piece()]
    chosen = pc.unique(ordered.take([number * len(ordered) // count for number in range(1, count)])).to_pylist()
    bounds = [None, *chosen, None]
    return [Piece(low, high) for low, high in pairwise(bounds)]


def rows_of(tables: Tables, ref: TableRef, columns: Sequence[str], piece: Piece, by: str) -> pa.Table:
    """Columns of the rows whose values of the column ``by`` lie in a piece."""
    return pa.concat_tables(_parts(tables, ref, columns, piece, by))


def parts_of(tables: Tables, ref: TableRef, columns: Sequence[str], rows: int) -> Iterator[pa.Table]:
    """Columns of all rows, in parts of at least so many rows, but for the last."""
    waiting: list[pa.RecordBatch] = []
    for batch in tables.pass_through(ref, columns):
        waiting.append(batch)
        if sum(part.num_rows for part in waiting) >= rows:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _parts(tables: Tables, ref: TableRef, columns: Sequence[str], piece: Piece, by: str) -> Iterator[pa.Table]:
    reader = tables.pass_through(ref, sorted({*columns, by}))
    yield reader.schema.empty_table().select(list(columns))
    for batch in reader:
        yield piece.of(pa.Table.from_batches([batch]), by).select(list(columns))
