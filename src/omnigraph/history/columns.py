"""The columns of a table by the names and types of one schema, for reading versions that were made under another.

A property that was renamed keeps the number by which the files of its table know it. One that was widened got
another number; the numbers that the compared states have are known, and otherwise its name is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.formats.columns import can_be_in_type, column, in_type, table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType, NodeType
from omnigraph.lang.schema.widening import is_of_one_kind, wider_of
from omnigraph.lang.values import ValueType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import Tables


@dataclass(frozen=True, slots=True)
class Numbers:
    """The numbers that the columns of one table have in some states: by wanted column, and all of them."""

    wanted: Mapping[str, frozenset[int]]
    every: frozenset[int]


NO_NUMBERS: Final = Numbers({}, frozenset())


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns to read, and for each the numbers and the names that it has in some states.

    Numbers are those of one table, and say nothing about a table at another location.
    """

    schema: pa.Schema
    numbers: Mapping[str, Numbers]
    names: Mapping[str, tuple[str, ...]]
    blobs: frozenset[str]

    def at(self, handle: LanceDataset, location: str) -> dict[str, str]:
        """What the columns are called in one version of the table; those that it does not have are left out.

        A column whose number is not known is found by its name, unless the number there is known as that of
        another column, or its values are of another kind.
        """
        numbers = self.numbers.get(location, NO_NUMBERS)
        here = {field.id(): field.name() for field in handle.lance_schema.fields()}
        free = {name for number, name in here.items() if number not in numbers.every}
        found: dict[str, str] = {}
        for wanted in self.schema.names:
            numbered = [here[number] for number in numbers.wanted.get(wanted, ()) if number in here]
            named = [name for name in self.names[wanted] if name in free and self._fits(handle, name, wanted)]
            if numbered or named:
                found[wanted] = (numbered or named)[0]
        return found

    def _fits(self, handle: LanceDataset, name: str, wanted: str) -> bool:
        stored = handle.schema.field(name).type
        return _is_blob(stored) if wanted in self.blobs else can_be_in_type(stored, self.schema.field(wanted).type)

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


def columns_of(tables: Tables, catalog: Catalog, entity: EntityType, states: Iterable[Snapshot]) -> Columns:
    """The columns of a type as one schema has it, with what each of some states calls them.

    A property that has a wider type in another of the states is read in that one.
    """
    numbers: dict[str, dict[str, set[int]]] = {}
    every: dict[str, set[int]] = {}
    names: dict[str, list[str]] = {}
    types = {prop.name: prop.type for prop in entity.properties.values()}
    for state in states:
        there = same_type(state.catalog, catalog, entity)
        if there is None or there.table_key not in state.tables:
            continue
        pin = state.tables[there.table_key]
        handle = tables.open(pin.ref)
        ids = {field.name(): field.id() for field in handle.lance_schema.fields()}
        every.setdefault(pin.location, set()).update(ids.values())
        for wanted, name in _called(entity, there, catalog.ir.dropped_by_either(state.catalog.ir)).items():
            names.setdefault(wanted, []).append(name)
            if name in ids and _holds(handle, name, there):
                numbers.setdefault(pin.location, {}).setdefault(wanted, set()).add(ids[name])
            if wanted in types:
                types[wanted] = wider_of(types[wanted], there.properties[name].type)
    known = {}
    for location, used in every.items():
        wanted_here = {name: frozenset(ids) for name, ids in numbers.get(location, {}).items()}
        known[location] = Numbers(wanted_here, frozenset(used))
    return _columns(entity, types, known, names)


def _holds(handle: LanceDataset, name: str, entity: EntityType) -> bool:
    """Is a column of a table the property of that name? In a state that is about to get its schema, it may still
    be another one, which goes."""
    prop, stored = entity.properties.get(name), handle.schema.field(name).type
    if prop is None or prop.type.is_blob:
        return prop is None or _is_blob(stored)
    return can_be_in_type(stored, column(name, prop.type).type)


def _is_blob(stored: pa.DataType) -> bool:
    """Is it one of the forms in which Lance has stored blobs?"""
    is_own = isinstance(stored, pa.BaseExtensionType)
    return bool(is_own or pa.types.is_struct(stored) or pa.types.is_large_binary(stored))


def columns_at(entity: EntityType, there: EntityType, dropped: frozenset[int]) -> tuple[Columns, dict[str, str]]:
    """The columns of a type as one schema has it, and what another schema calls those that it has.

    ``dropped`` has the ids of properties that either schema has and the other one has dropped.
    """
    names = _called(entity, there, dropped)
    types = {prop.name: prop.type for prop in entity.properties.values()}
    for name in types.keys() & names.keys():
        types[name] = wider_of(types[name], there.properties[names[name]].type)
    return _columns(entity, types, {}, {}), names


def _columns(
    entity: EntityType,
    types: Mapping[str, ValueType],
    numbers: Mapping[str, Numbers],
    names: Mapping[str, list[str]],
) -> Columns:
    schema = _read_schema(entity, types)
    return Columns(
        schema,
        numbers,
        {name: tuple(dict.fromkeys(names.get(name, [name]))) for name in schema.names},
        frozenset(prop.name for prop in entity.properties.values() if prop.type.is_blob),
    )


def same_type(there: Catalog, here: Catalog, entity: EntityType) -> EntityType | None:
    """A type of one schema in another one, whatever it is called there.

    If two branches have added it by themselves, it is the one of the same name. That is another type if either
    schema has dropped the type that the other one has, or calls it something else.
    """
    found = there.by_id.get(entity.id)
    if found is None:
        found = (there.nodes if isinstance(entity, NodeType) else there.edges).get(entity.name)
        if found is None or found.id in here.by_id:
            return None
        if {entity.id, found.id} & here.ir.dropped_by_either(there.ir):
            return None
    return found if type(found) is type(entity) else None


def _called(entity: EntityType, there: EntityType, dropped: frozenset[int]) -> dict[str, str]:
    """The names that the columns of a type have under another schema.

    Properties are matched by their ids, and those that two branches have added by themselves by their names, if
    their values are of one kind.
    """
    by_id = {prop.id: prop.name for prop in there.properties.values()}
    known = {prop.id for prop in entity.properties.values()} | dropped
    alone = {prop.name: prop for prop in there.properties.values() if prop.id not in known}
    names = {name: name for name in entity.columns if name not in entity.properties}
    for prop in entity.properties.values():
        if prop.id in by_id:
            names[prop.name] = by_id[prop.id]
        elif prop.id in dropped or prop.name not in alone:
            continue
        elif is_of_one_kind(prop.type, alone[prop.name].type):
            names[prop.name] = prop.name
    return names


def _read_schema(entity: EntityType, types: Mapping[str, ValueType]) -> pa.Schema:
    """The columns as they are read: all may be null, and blobs are bytes."""
    fields = []
    for field in table_schema(entity):
        read = types.get(field.name)
        stored = field.type if read is None else column(field.name, read).type
        fields.append(pa.field(field.name, pa.large_binary() if read is not None and read.is_blob else stored))
    return pa.schema(fields)
