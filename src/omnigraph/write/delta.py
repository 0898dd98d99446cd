"""The change a write makes, table by table, in memory: rows to insert or replace, ids to delete."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True, slots=True)
class TableDelta:
    """The change of one table.

    ``upserts`` are whole rows with unique ids; with ``replaces`` they become the table's whole content. ``strict``
    means that none of their ids may exist yet, ``fresh`` that none can, because they were just generated.
    """

    table_key: str
    upserts: pa.Table
    deletes: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    replaces: bool = False
    strict: bool = False
    fresh: bool = False

    @property
    def ids(self) -> pa.Array:
        return one_chunk(self.upserts["id"])

    @property
    def replaced(self) -> pa.Array:
        """The ids of committed rows that the change replaces or deletes; ids known to be new are left out."""
        new = self.fresh or self.strict
        return self.deletes if new else pa.concat_arrays([self.ids, self.deletes])

    @property
    def is_empty(self) -> bool:
        return not self.replaces and not self.upserts.num_rows and not len(self.deletes)


def one_chunk(values: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A column as one array."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def last_per_id(rows: pa.Table) -> pa.Table:
    """The last row of each id, in the order they came."""
    ids = one_chunk(rows["id"])
    if pc.count_distinct(ids).as_py() == len(ids):
        return rows
    codes = ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first_from_behind = np.unique(codes[::-1], return_index=True)
    kept = np.sort(len(codes) - 1 - first_from_behind)
    return rows.take(pa.array(kept))


def without(rows: pa.Table, ids: pa.Array, column: str = "id") -> pa.Table:
    """The rows whose value in a column is not among ``ids``."""
    if not len(ids) or not rows.num_rows:
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[column], value_set=ids)))
