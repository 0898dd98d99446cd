"""A model of a graph whose schema changes: types, properties and rows by numbers.

A value that was written stays as it was written; how it is read depends on the type that its property has by then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

Value = Any
Row = Mapping[int | str, Value]
"""The values of an entity by the numbers of its properties; an edge also has `src` and `dst`."""

VALUES: dict[str, list[Value]] = {
    "String": ["", "x", "ab ovo"],
    "Bool": [True, False],
    "I32": [0, -7, 2**31 - 1],
    "I64": [1, -(2**40), 2**40],
    "U32": [3, 2**32 - 1],
    "U64": [4, 2**41],
    "F32": [0.5, -2.0],
    "F64": [0.25, 1e10],
    "Date": ["1970-01-01", "2024-02-29"],
    "DateTime": ["2024-02-29T12:00:00.000Z", "1969-12-31T23:59:59.999Z"],
    "enum": ["good", "bad"],
    "[String]": [[], ["a"], ["a", "b"]],
    "[I32]": [[], [1, 2]],
    "[I64]": [[2**40]],
    "[F32]": [[0.5]],
    "[F64]": [[0.25, 1e10]],
    "[Date]": [[], ["2024-02-29"]],
    "[DateTime]": [["2024-02-29T12:00:00.000Z"]],
    "Vector(2)": [[0.0, 1.0], [1.0, 0.0]],
    "Blob": ["base64:", "base64:AAEC"],
}
"""Kinds of properties, with values that fit into them. `enum` is one with some values and later more."""

WIDER: dict[str, list[str]] = {
    "I32": ["I64", "F64"],
    "U32": ["I64", "U64", "F64"],
    "F32": ["F64"],
    "Date": ["DateTime"],
    "enum": ["String"],
    "[I32]": ["[I64]", "[F64]"],
    "[F32]": ["[F64]"],
    "[Date]": ["[DateTime]"],
}
INDEXED = ("String", "I32", "I64", "Date", "enum", "Vector(2)")
RANGED = ("I32", "I64", "F64")
MEMBERS = ("good", "bad", "odd", "new")


def family(kind: str) -> str:
    """Kinds of one family can be read as one another, or are told apart by names only."""
    scalar = kind.strip("[]")
    listed = "[]" if kind.startswith("[") else ""
    if scalar in ("I32", "I64", "U32", "U64", "F32", "F64"):
        return f"number{listed}"
    return {"Date": "time", "DateTime": "time", "enum": "String"}.get(scalar, scalar) + listed


def in_kind(value: Value, kind: str) -> Value:
    """A value as it is read from a property of some kind."""
    if isinstance(value, list):
        return [in_kind(item, kind.strip("[]")) for item in value]
    if kind == "DateTime" and value is not None and len(value) == len("1970-01-01"):
        return f"{value}T00:00:00.000Z"
    return float(value) if kind == "F64" and value is not None else value


def comparable(value: Value) -> Value:
    """A value in the widest type that it may be read in."""
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return in_kind(value, "DateTime") if _is_day(value) else value


def _is_day(value: Value) -> bool:
    return isinstance(value, str) and len(value) == len("1970-01-01") and value[4] == value[7] == "-"


@dataclass(frozen=True)
class Prop:
    """A property; ``rules`` are the names of constraints on it alone."""

    number: int
    name: str
    kind: str
    nullable: bool = True
    members: tuple[str, ...] = ()
    rules: frozenset[str] = frozenset()

    def text(self, before: str | None) -> str:
        kind = f"enum({', '.join(self.members)})" if self.kind == "enum" else self.kind
        key = " @key" if "key" in self.rules else ""
        renamed = f" @rename_from({before})" if before not in (None, self.name) else ""
        return f"{self.name}: {kind}{'?' if self.nullable else ''}{key}{renamed}"

    def rule_texts(self) -> Iterator[str]:
        if "range" in self.rules:
            yield f"@range({self.name}, -1099511627776..1099511627776)"
        for rule in sorted(self.rules & {"unique", "index"}):
            yield f"@{rule}({self.name})"


@dataclass(frozen=True)
class Type:
    """A node type, or an edge type with the numbers of the node types at its ends."""

    number: int
    name: str
    props: tuple[Prop, ...]
    ends: tuple[int, int] | None = None
    description: str = ""

    @property
    def is_node(self) -> bool:
        return self.ends is None

    @property
    def table_key(self) -> str:
        return f"{'node' if self.is_node else 'edge'}:{self.name}"

    @property
    def key(self) -> Prop:
        return next(prop for prop in self.props if "key" in prop.rules)

    @property
    def by_number(self) -> dict[int, Prop]:
        return {prop.number: prop for prop in self.props}

    def with_prop(self, prop: Prop) -> Type:
        """With a property that is new, or another form of one that it has."""
        others = [one for one in self.props if one.number != prop.number]
        return replace(self, props=tuple(sorted([*others, prop], key=lambda one: one.number)))


@dataclass(frozen=True)
class World:
    """One state: its schema and its rows, by type and id."""

    types: tuple[Type, ...] = ()
    rows: Mapping[int, Mapping[str, Row]] = field(default_factory=dict)

    @property
    def by_number(self) -> dict[int, Type]:
        return {one.number: one for one in self.types}

    @property
    def nodes(self) -> list[Type]:
        return [one for one in self.types if one.is_node]

    def of(self, number: int) -> Mapping[str, Row]:
        return self.rows.get(number, {})

    def with_type(self, changed: Type) -> World:
        others = [one for one in self.types if one.number != changed.number]
        return replace(self, types=tuple(sorted([*others, changed], key=lambda one: one.number)))

    def with_rows(self, number: int, rows: Mapping[str, Row | None]) -> World:
        """With some rows of a type; None removes one."""
        kept = {**self.of(number), **rows}
        return replace(self, rows={**self.rows, number: {i: row for i, row in kept.items() if row is not None}})

    def without(self, gone: set[int]) -> World:
        """Without some types."""
        types = tuple(one for one in self.types if one.number not in gone)
        return World(types, {number: rows for number, rows in self.rows.items() if number not in gone})

    def schema(self, before: World) -> str:
        """The text that leads to this schema from the one before."""
        parts = []
        for one in self.types:
            old = before.by_number.get(one.number)
            names = {} if old is None else {number: prop.name for number, prop in old.by_number.items()}
            head = f"node {one.name}" if one.ends is None else f"edge {one.name}: {self._end(one, 0)} -> "
            head += "" if one.ends is None else self._end(one, 1)
            if old is not None and old.name != one.name:
                head += f' @rename_from("{old.name}")'
            if one.description:
                head += f' @description("{one.description}")'
            lines = [prop.text(names.get(prop.number)) for prop in one.props]
            lines += [rule for prop in one.props for rule in prop.rule_texts()]
            parts.append(f"{head} {{\n  " + "\n  ".join(lines) + "\n}" if lines else head)
        return "\n".join(parts) + "\n"

    def _end(self, edge: Type, side: int) -> str:
        assert edge.ends is not None
        return self.by_number[edge.ends[side]].name

    def content(self) -> dict[str, dict[str, dict[str, Value]]]:
        """What a reader sees: entities by type and id, with their values by name."""
        found = {}
        for one in self.types:
            found[one.table_key] = {i: self._seen(one, row) for i, row in sorted(self.of(one.number).items())}
        return found

    @staticmethod
    def _seen(one: Type, row: Row) -> dict[str, Value]:
        seen = {prop.name: in_kind(row.get(prop.number), prop.kind) for prop in one.props}
        return seen if one.is_node else {**seen, "src": row["src"], "dst": row["dst"]}


Difference = tuple[str, str, str, tuple[str, ...], Value, Value]
"""An operation, a table, an id, what has changed, and the values before and after."""


def difference(before: World, after: World) -> list[Difference]:
    """What changed, by the names of the later schema."""
    found: list[Difference] = []
    for one in after.types:
        old, new = before.of(one.number), after.of(one.number)
        there = before.by_number.get(one.number, one)
        for entity_id in sorted({*old, *new}):
            was, now = _image(one, there, old.get(entity_id)), _image(one, one, new.get(entity_id))
            if was == now:
                continue
            op = "insert" if was is None else "delete" if now is None else "update"
            changed = tuple(sorted(name for name in was if was[name] != now[name])) if was and now else ()
            found.append((op, one.table_key, entity_id, changed, was, now))
    return sorted(found, key=lambda each: (each[1].startswith("edge:"), each[1], each[2]))


def _image(one: Type, there: Type, row: Row | None) -> dict[str, Value] | None:
    """A row of a state, which has the type as it is ``there``, with the properties that the type has here."""
    if row is None:
        return None
    known = {number: row.get(number) for number in there.by_number}
    seen = {prop.name: comparable(known.get(prop.number)) for prop in one.props}
    return seen if one.is_node else {**seen, "src": row["src"], "dst": row["dst"]}


def united(base: World, ours: World, theirs: World) -> World:
    """The schema of a merge, with our rows."""
    if theirs.types == base.types:
        return ours
    if ours.types == base.types:
        return World(theirs.types, {one.number: ours.of(one.number) for one in theirs.types})
    world = ours
    for other in theirs.types:
        mine, old = ours.by_number.get(other.number), base.by_number.get(other.number)
        if mine is None:
            world = world.with_type(other) if old is None else world
            continue
        known = {} if old is None else old.by_number
        for prop in other.props:
            had = mine.by_number.get(prop.number)
            if had is None and prop.number not in known:
                mine = mine.with_prop(prop)
            elif had is not None:
                members = had.members
                if had.kind == "enum" and prop.kind == "enum":
                    members = tuple(one for one in MEMBERS if one in {*members, *prop.members})
                rules = had.rules | (prop.rules & {"index"})
                mine = mine.with_prop(replace(had, members=members, rules=rules))
        world = world.with_type(mine)
    return world


class Clash(Exception):
    """Both sides of a merge have changed a value, or what comes out breaks a rule."""


def merged(base: World, ours: World, theirs: World) -> World:
    """What a merge of theirs into ours comes to; Clash if the rows cannot be put together."""
    world = united(base, ours, theirs)
    for one in world.types:
        rows: dict[str, Row | None] = {}
        sides = [side.of(one.number) for side in (base, ours, theirs)]
        for entity_id in {*sides[0], *sides[1], *sides[2]}:
            was, mine, other = (side.get(entity_id) for side in sides)
            rows[entity_id] = _merged_row(one, was, mine, other, (base, ours, theirs))
        world = world.with_rows(one.number, rows)
        _require_rules(one, world)
    return world


def _merged_row(
    one: Type, base: Row | None, ours: Row | None, theirs: Row | None, worlds: tuple[World, World, World]
) -> Row | None:
    if base is not None and (ours is None or theirs is None):
        kept, side = (theirs, worlds[2]) if ours is None else (ours, worlds[1])
        shared = side.by_number.get(one.number)
        if kept is not None and shared is not None:
            numbers = [prop.number for prop in one.props if prop.number in shared.by_number]
            if any(comparable(kept.get(n)) != comparable(base.get(n)) for n in numbers):
                raise Clash(one.name)
        gone = worlds[1] if ours is None else worlds[2]
        return None if one.number in gone.by_number else kept
    merged_row: dict[int | str, Value] = {}
    for name in ("src", "dst") if not one.is_node else ():
        merged_row[name] = (ours or theirs or {})[name]
    for prop in one.props:
        was = (base or {}).get(prop.number)
        mine = _held(ours, worlds[1], one.number, prop.number, was)
        other = _held(theirs, worlds[2], one.number, prop.number, was)
        if comparable(other) == comparable(was):
            merged_row[prop.number] = mine
        elif comparable(mine) in (comparable(was), comparable(other)):
            merged_row[prop.number] = other
        else:
            raise Clash(f"{one.name}.{prop.name}")
    return merged_row


def _held(row: Row | None, world: World, type_number: int, prop_number: int, was: Value) -> Value:
    """A value on one side; as it was, if that side does not have the property or the row."""
    known = world.by_number.get(type_number)
    if row is None or known is None or prop_number not in known.by_number:
        return was
    return row.get(prop_number)


def _require_rules(one: Type, world: World) -> None:
    for prop in one.props:
        values = [comparable(row.get(prop.number)) for row in world.of(one.number).values()]
        present = [repr(value) for value in values if value is not None]
        if not prop.nullable and len(present) < len(values):
            raise Clash(f"{one.name}.{prop.name} is required")
        if "unique" in prop.rules and len(set(present)) < len(present):
            raise Clash(f"{one.name}.{prop.name} is unique")


def breaks(schema: World, rows: World) -> bool:
    """Would the rows of one state break the rules of another one's schema?"""
    try:
        for one in schema.types:
            _require_rules(one, rows)
    except Clash:
        return True
    return False
