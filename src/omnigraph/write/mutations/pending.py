"""The changes of a running mutation, in memory: later statements see the rows that earlier ones wrote."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ResourceLimit
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta, last_per_id, one_chunk, without
from omnigraph.write.mutations.predicates import Where, matching


@dataclass(slots=True)
class _PendingTable:
    """The rows written to one table and the ids deleted from it. ``fresh``: all ids were just generated."""

    written: list[pa.Table] = field(default_factory=list)
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    fresh: bool = True


class PendingChanges:
    """The changes that one mutation has made so far to its base; ``limit`` bounds the bytes they take."""

    def __init__(self, base: Base, limit: int) -> None:
        self.base = base
        self._limit = limit
        self._tables: dict[str, _PendingTable] = {}
        self._bytes = 0

    def write(self, table_key: str, rows: pa.Table, *, fresh: bool) -> None:
        """Add whole rows; they replace pending and committed rows of the same id."""
        self._bytes += rows.nbytes
        if self._bytes > self._limit:
            raise ResourceLimit("bytes changed by one mutation", self._limit, self._bytes)
        table = self._tables.setdefault(table_key, _PendingTable())
        table.written.append(rows)
        table.fresh = table.fresh and fresh

    def delete(self, table_key: str, ids: pa.Array) -> int:
        """Mark committed rows as deleted; the number of rows that were not marked before."""
        table = self._tables.setdefault(table_key, _PendingTable())
        new = ids.filter(pc.invert(pc.is_in(ids, value_set=table.deleted)))
        table.deleted = pa.concat_arrays([table.deleted, new])
        return len(new)

    def matching(self, table_key: str, where: Where) -> pa.Table:
        """The rows a statement sees: pending ones, and committed ones that no pending row replaces."""
        pending = self._pending(table_key)
        committed = self._committed(table_key, where)
        if pending is None:
            return committed
        committed = without(committed, one_chunk(pending["id"]))
        return pa.concat_tables([committed, matching(pending, where)])

    def _committed(self, table_key: str, where: Where) -> pa.Table:
        """The committed rows that a statement sees. What Lance cannot check is checked on the columns it needs,
        before whole rows are read."""
        kept = self.base.kept(table_key)
        if kept is not None:
            return matching(kept, where).select(self.base.schema(table_key).names)
        if not where.conditions:
            return self.base.whole_rows(table_key, where.sql or "true", self._limit)
        found = where.holding(self.base.scan(table_key, where.columns, where.sql))
        return self.base.whole_rows_of(table_key, one_chunk(found["id"]), self._limit)

    def ids_of(self, table_key: str, where: Where) -> pa.Array:
        """The ids of the committed rows that a statement deletes."""
        kept = self.base.kept(table_key)
        if kept is not None:
            return one_chunk(matching(kept, where)["id"])
        return one_chunk(where.holding(self.base.scan(table_key, where.columns, where.sql))["id"])

    def _pending(self, table_key: str) -> pa.Table | None:
        table = self._tables.get(table_key)
        if table is None or not table.written:
            return None
        if len(table.written) > 1:
            table.written = [last_per_id(pa.concat_tables(table.written))]
        return table.written[0]

    def delta(self) -> dict[str, TableDelta]:
        """The complete change: the last row written of each id, and all deleted ids."""
        changes: dict[str, TableDelta] = {}
        for table_key, table in self._tables.items():
            pending = self._pending(table_key)
            rows = self.base.schema(table_key).empty_table() if pending is None else last_per_id(pending)
            change = TableDelta(table_key, rows, table.deleted, fresh=table.fresh and pending is not None)
            if not change.is_empty:
                changes[table_key] = change
        return changes
