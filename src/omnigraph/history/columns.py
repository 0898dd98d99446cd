"""The columns of a table by the names and types of one schema, for reading versions that were made under another.

A property that was renamed keeps the number by which the files of its table know it. One that was widened got
another number; the numbers that the compared states have are known, and otherwise its name is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
from lance import LanceDataset

from omnigraph.formats.columns import in_type, table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType, NodeType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import Tables


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns to read, and for each the numbers and the names that it has in some states."""

    schema: pa.Schema
    numbers: Mapping[str, frozenset[int]]
    names: Mapping[str, tuple[str, ...]]
    blobs: frozenset[str]

    def at(self, handle: LanceDataset) -> dict[str, str]:
        """What the columns are called in one version of the table; those that it does not have are left out."""
        here = {field.id(): field.name() for field in handle.lance_schema.fields()}
        known = set(here.values())
        found: dict[str, str] = {}
        for wanted in self.schema.names:
            numbered = [here[number] for number in self.numbers[wanted] if number in here]
            named = [name for name in self.names[wanted] if name in known]
            if numbered or named:
                found[wanted] = (numbered or named)[0]
        return found

    def translated(self, rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
        """Rows of such a version with the columns by their own names and types, null where there was none."""
        columns = []
        for field in self.schema:
            if field.name not in names:
                columns.append(pa.nulls(rows.num_rows, field.type))
            elif field.name in self.blobs:
                columns.append(rows[names[field.name]])
            else:
                columns.append(in_type(rows[names[field.name]], field.type))
        return pa.table(columns, names=self.schema.names)


def columns_of(tables: Tables, entity: EntityType, states: Iterable[Snapshot]) -> Columns:
    """The columns of a type as one schema has it, with what each of some states calls them."""
    numbers: dict[str, set[int]] = {}
    names: dict[str, list[str]] = {}
    for state in states:
        there = same_type(state.catalog, entity)
        if there is None or there.table_key not in state.tables:
            continue
        handle = tables.open(state.tables[there.table_key].ref)
        ids = {field.name(): field.id() for field in handle.lance_schema.fields()}
        for wanted, name in called(entity, there).items():
            names.setdefault(wanted, []).append(name)
            if name in ids:
                numbers.setdefault(wanted, set()).add(ids[name])
    return _columns(entity, numbers, names)


def columns_at(entity: EntityType, there: EntityType) -> tuple[Columns, dict[str, str]]:
    """The columns of a type as one schema has it, and what another schema calls those that it has."""
    return _columns(entity, {}, {}), called(entity, there)


def _columns(entity: EntityType, numbers: Mapping[str, set[int]], names: Mapping[str, list[str]]) -> Columns:
    schema = _read_schema(entity)
    return Columns(
        schema,
        {name: frozenset(numbers.get(name, ())) for name in schema.names},
        {name: tuple(dict.fromkeys(names.get(name, [name]))) for name in schema.names},
        frozenset(prop.name for prop in entity.properties.values() if prop.type.is_blob),
    )


def same_type(catalog: Catalog, entity: EntityType) -> EntityType | None:
    """The same type in another schema, whatever it is called there; or else, if two branches have added it by
    themselves, the one of the same name."""
    here = catalog.by_id.get(entity.id)
    if here is None:
        here = (catalog.nodes if isinstance(entity, NodeType) else catalog.edges).get(entity.name)
    return here if type(here) is type(entity) else None


def called(entity: EntityType, there: EntityType) -> dict[str, str]:
    """The names that the columns of a type have under another schema.

    Properties are matched by their ids, and those that two branches have added by themselves by their names.
    """
    by_id = {prop.id: prop.name for prop in there.properties.values()}
    known = {prop.id for prop in entity.properties.values()}
    alone = {prop.name for prop in there.properties.values() if prop.id not in known}
    names = {name: name for name in entity.columns if name not in entity.properties}
    for prop in entity.properties.values():
        if prop.id in by_id:
            names[prop.name] = by_id[prop.id]
        elif prop.name in alone:
            names[prop.name] = prop.name
    return names


def _read_schema(entity: EntityType) -> pa.Schema:
    """The columns as they are read: all may be null, and blobs are bytes."""
    fields = []
    for field in table_schema(entity):
        prop = entity.properties.get(field.name)
        is_blob = prop is not None and prop.type.is_blob
        fields.append(pa.field(field.name, pa.large_binary() if is_blob else field.type))
    return pa.schema(fields)
