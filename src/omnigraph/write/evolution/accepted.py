"""A branch as it will be once it has accepted another schema, to check changes of rows before that happens."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.state import TablePin
from omnigraph.storage.stage.columns import KeptColumn
from omnigraph.write.base import Base, distinct
from omnigraph.write.evolution.rules import rows_after
from omnigraph.write.evolution.tables import TableChange, Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedBase(Base):
    """A branch with another schema, whose tables still have the columns of the present one.

    ``before`` is the branch as it is, ``changes`` are those of its tables, by their new keys.
    """

    before: Base
    changes: Mapping[str, TableChange]

    def scan(self, table_key: str, columns: Sequence[str], where: str | None = None) -> pa.Table:
        """Committed rows. A filter can name only columns that stay as they are."""
        if where is not None or self.is_empty(table_key) or self._stay(table_key, columns):
            return Base.scan(self, table_key, columns, where)
        rows = pa.concat_tables(rows_after(self.changes[table_key], self.before, columns))
        return rows.select(list(columns))

    def rows_with(self, table_key: str, wanted: Mapping[str, pa.Array], columns: Sequence[str]) -> pa.Table:
        """Committed rows that have, in each column of ``wanted``, one of the values given for it.

        Columns that are renamed or computed are read whole, and no probe is made.
        """
        needed = sorted({*wanted, *columns})
        if self.is_empty(table_key) or self._stay(table_key, needed):
            return Base.rows_with(self, table_key, wanted, columns)
        rows = self.whole_columns(table_key, needed)
        for name, values in wanted.items():
            rows = rows.filter(pc.is_in(rows[name], value_set=distinct(values)))
        return rows.select(list(columns))

    def _stay(self, table_key: str, names: Collection[str]) -> bool:
        """Are these columns in the table already, under the same names?"""
        changed = {column.field.name: column for column in self.changes[table_key].columns or ()}
        return all(
            isinstance(column, KeptColumn) and column.name == name
            for name, column in changed.items()
            if name in names
        )


def accepted(base: Base, target: Catalog, tables: Tables) -> AcceptedBase:
    """A branch as if it had accepted a schema. Tables that it does not have yet are empty."""
    pins = {change.after.table_key: base.pin(change.before.table_key) for change in tables.kept}
    pins |= {entity.table_key: TablePin(entity.table_key, "", 0) for entity in tables.added}
    snapshot = replace(base.snapshot, catalog=target, tables=pins)
    changes = {change.after.table_key: change for change in tables.kept}
    return AcceptedBase(base.repository, base.branch, snapshot, base.probe_limit, before=base, changes=changes)
