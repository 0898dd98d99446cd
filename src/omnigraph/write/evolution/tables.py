"""What a change of the schema does to each table: its columns are matched by their stable ids, not their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from omnigraph.formats.columns import column, in_type, table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType, Property
from omnigraph.storage.stage.columns import Column, Compute, ComputedColumn, EmptyColumn, KeptColumn
from omnigraph.write.evolution.fills import Fill, Target, check_fill, fill_values, filled


@dataclass(frozen=True, slots=True)
class TableChange:
    """A table before and after. ``columns`` are those that it gets, None if its columns stay as they are."""

    before: EntityType
    after: EntityType
    columns: tuple[Column, ...] | None

    @property
    def is_renamed(self) -> bool:
        return self.before.table_key != self.after.table_key

    @property
    def drops_columns(self) -> bool:
        """Does a property go?"""
        kept = {prop.id for prop in self.after.properties.values()}
        return any(prop.id not in kept for prop in self.before.properties.values())


@dataclass(frozen=True, slots=True)
class Tables:
    """All tables: those that both schemas have, those that are new, those that go."""

    kept: tuple[TableChange, ...]
    added: tuple[EntityType, ...]
    dropped: tuple[EntityType, ...]
    filled: frozenset[Target] = frozenset()
    """The fills that were needed."""


def compare_tables(old: Catalog, new: Catalog, fills: Mapping[Target, Fill]) -> Tables:
    """Match the tables of two schemas by the stable ids of their types."""
    before = {entity.id: entity for entity in _entities(old)}
    kept: list[TableChange] = []
    added: list[EntityType] = []
    used: set[Target] = set()
    for entity in _entities(new):
        known = before.pop(entity.id, None)
        if known is None:
            added.append(entity)
        else:
            kept.append(TableChange(known, entity, _columns(known, entity, fills, used)))
    return Tables(tuple(kept), tuple(added), tuple(before.values()), frozenset(used))


def _entities(catalog: Catalog) -> list[EntityType]:
    return [*catalog.nodes.values(), *catalog.edges.values()]


def _columns(
    old: EntityType, new: EntityType, fills: Mapping[Target, Fill], used: set[Target]
) -> tuple[Column, ...] | None:
    schema = table_schema(new)
    own = [name for name in schema.names if name not in new.properties]
    columns: list[Column] = [KeptColumn(name, schema.field(name)) for name in own]
    by_id = {prop.id: prop for prop in old.properties.values()}
    for prop in new.properties.values():
        target = (new.name, prop.name)
        before, fill = by_id.get(prop.id), fills.get(target)
        needs_fill = not prop.type.nullable and (before is None or before.type.nullable)
        if fill is not None and (needs_fill or before is None):
            check_fill(fill, old, prop)
            used.add(target)
        else:
            fill = None
        columns.append(_column(before, prop, fill))
    if columns == [KeptColumn(field.name, field) for field in table_schema(old)]:
        return None
    return tuple(columns)


def _column(before: Property | None, after: Property, fill: Fill | None) -> Column:
    field = column(after.name, after.type)
    if before is None:
        if fill is None:
            return EmptyColumn(field)
        return ComputedColumn(field, fill.needs, partial(fill_values, fill, after))
    stored = column(before.name, before.type).type
    if stored == field.type and fill is None:
        return KeptColumn(before.name, field)
    needs = (before.name,) if fill is None else (before.name, *fill.needs)
    compute: Compute = partial(_recomputed, before, after, fill)
    return ComputedColumn(field, needs, compute)


def _recomputed(before: Property, after: Property, fill: Fill | None, rows: pa.RecordBatch) -> pa.Array:
    values = in_type(rows[before.name], column(after.name, after.type).type)
    return values if fill is None else filled(values, fill_values(fill, after, rows))
