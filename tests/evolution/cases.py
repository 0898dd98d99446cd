"""Every kind of change of a schema: with rows that can follow it, and with rows that cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
Rows = dict[str, list[Record]]

PEOPLE = "node Person { name: String @key  age: I32?  city: String?  born: Date? }"
ADA: Record = {"name": "Ada", "age": 36, "city": "Rome", "born": "1815-12-10"}
BOB: Record = {"name": "Bob", "age": None, "city": "Rome", "born": None}
CITY = "node City { name: String @key }"
KNOWS = "edge Knows: Person -> Person { since: I32? }"


def node(**values: Any) -> Record:
    return {"type": "Person", "data": {name: value for name, value in values.items() if value is not None}}


@dataclass(frozen=True)
class Case:
    """A change: the schema before and after, rows that follow it and what becomes of them, rows that break it."""

    name: str
    after: str
    steps: Sequence[str]
    result: Rows
    before: str = PEOPLE
    rows: Sequence[Record] = (node(**ADA), node(**BOB))
    fill: dict[str, object] = field(default_factory=dict)
    broken: Sequence[Record] = ()
    message: str = ""
    moved: frozenset[str] = frozenset()
    """The tables whose files get another version."""


def person(schema: str) -> str:
    return f"node Person {{ {schema} }}"


FULL = "name: String @key  age: I32?  city: String?  born: Date?"
PERSON = frozenset({"node:Person"})
ROWS: Rows = {"Person": [ADA, BOB]}


def with_values(**values: Sequence[Any]) -> Rows:
    """Both persons, with other values in some properties."""
    return {
        "Person": [
            {**row, **{name: both[index] for name, both in values.items()}} for index, row in enumerate((ADA, BOB))
        ]
    }


def without(*names: str) -> Rows:
    return {"Person": [{name: value for name, value in row.items() if name not in names} for row in (ADA, BOB)]}


CASES = [
    Case(
        "add a node type", f"{PEOPLE} node City {{ name: String @key }}", ["add node City"], {**ROWS, "City": []}
    ),
    Case("add an edge type", f"{PEOPLE} {KNOWS}", ["add edge Knows"], {**ROWS, "Knows": []}),
    Case(
        "add a nullable property",
        person(f"{FULL} mail: String?"),
        ["add Person.mail: String?"],
        with_values(mail=(None, None)),
        moved=PERSON,
    ),
    Case(
        "add a nullable list",
        person(f"{FULL} tags: [String]?"),
        ["add Person.tags: [String]?"],
        with_values(tags=(None, None)),
        moved=PERSON,
    ),
    Case(
        "add a nullable vector",
        person(f"{FULL} spot: Vector(2)?"),
        ["add Person.spot: Vector(2)?"],
        with_values(spot=(None, None)),
        moved=PERSON,
    ),
    Case(
        "add a nullable blob",
        person(f"{FULL} photo: Blob?"),
        ["add Person.photo: Blob?"],
        with_values(photo=(None, None)),
        moved=PERSON,
    ),
    Case(
        "add a required property with one value",
        person(f"{FULL} score: F64"),
        ["add Person.score: F64, filled with 1.5"],
        with_values(score=(1.5, 1.5)),
        fill={"Person.score": 1.5},
        moved=PERSON,
    ),
    Case(
        "add a required property with the values of another",
        person(f"{FULL} label: String"),
        ["add Person.label: String, filled with $name"],
        with_values(label=("Ada", "Bob")),
        fill={"Person.label": "$name"},
        moved=PERSON,
    ),
    Case(
        "drop a property",
        person("name: String @key  age: I32?  born: Date?"),
        ["drop Person.city (soft)"],
        without("city"),
        moved=PERSON,
    ),
    Case(
        "rename a property",
        person("name: String @key  years: I32? @rename_from(age)  city: String?  born: Date?"),
        ["rename Person.age to years"],
        {
            "Person": [
                {"name": "Ada", "years": 36, "city": "Rome", "born": "1815-12-10"},
                {"name": "Bob", "years": None, "city": "Rome", "born": None},
            ]
        },
        moved=PERSON,
    ),
    Case(
        "rename a type",
        PEOPLE.replace("Person", "Human").replace(" {", ' @rename_from("Person") {', 1),
        ["rename node Person to Human"],
        {"Human": [ADA, BOB]},
    ),
    Case(
        "rename a type and a property, and add one",
        'node Human @rename_from("Person") { name: String @key  years: I32? @rename_from(age) nick: String? }',
        [
            "rename node Person to Human",
            "add Human.nick: String?",
            "rename Human.age to years",
            "drop Human.born (soft)",
            "drop Human.city (soft)",
        ],
        {"Human": [{"name": "Ada", "years": 36, "nick": None}, {"name": "Bob", "years": None, "nick": None}]},
        moved=frozenset({"node:Human"}),
    ),
    Case(
        "widen an integer",
        PEOPLE.replace("I32", "I64"),
        ["widen Person.age from I32? to I64?"],
        ROWS,
        moved=PERSON,
    ),
    Case(
        "widen an integer to a float",
        PEOPLE.replace("I32", "F64"),
        ["widen Person.age from I32? to F64?"],
        with_values(age=(36.0, None)),
        moved=PERSON,
    ),
    Case(
        "widen a date to an instant",
        PEOPLE.replace("Date?", "DateTime?"),
        ["widen Person.born from Date? to DateTime?"],
        with_values(born=("1815-12-10T00:00:00.000Z", None)),
        moved=PERSON,
    ),
    Case(
        "let a property be null",
        person("name: String @key  city: String?"),
        ["let Person.city be null"],
        {"Person": [{"name": "Ada", "city": "Rome"}]},
        before=person("name: String @key  city: String"),
        rows=[node(name="Ada", city="Rome")],
        moved=PERSON,
    ),
    Case(
        "require a property",
        PEOPLE.replace("city: String?", "city: String"),
        ["require Person.city"],
        ROWS,
        broken=[node(name="Eve")],
        message="Person.city is required and has no value (row 'Eve')",
        moved=PERSON,
    ),
    Case(
        "require a property and fill it",
        PEOPLE.replace("age: I32?", "age: I32"),
        ["require Person.age, nulls filled with 0"],
        with_values(age=(36, 0)),
        fill={"Person.age": 0},
        moved=PERSON,
    ),
    Case(
        "extend an enum",
        person("name: String @key  mood: enum(good, bad, odd)"),
        ["extend Person.mood with odd"],
        {"Person": [{"name": "Ada", "mood": "good"}]},
        before=person("name: String @key  mood: enum(good, bad)"),
        rows=[node(name="Ada", mood="good")],
    ),
    Case(
        "turn an enum into a text",
        person("name: String @key  mood: String"),
        ["widen Person.mood from enum(bad, good) to String"],
        {"Person": [{"name": "Ada", "mood": "good"}]},
        before=person("name: String @key  mood: enum(good, bad)"),
        rows=[node(name="Ada", mood="good")],
    ),
    Case("add an index", person(f"{FULL} @index(city)"), ["add @index(city) to Person"], ROWS),
    Case(
        "add a unique rule",
        person(f"{FULL} @unique(age)"),
        ["add @unique(age) to Person"],
        ROWS,
        broken=[node(name="Eve", age=36)],
        message="@unique violation on Person.age: value '36' held by 'Ada' and 'Eve'",
    ),
    Case(
        "add a range",
        person(f"{FULL} @range(age, 0..100)"),
        ["add @range(age, 0..100) to Person"],
        ROWS,
        broken=[node(name="Eve", age=101)],
        message="@range violation on Person.age: 101 is not in 0..100 (row 'Eve')",
    ),
    Case(
        "narrow a range",
        person(f"{FULL} @range(age, 0..50)"),
        ["add @range(age, 0..50) to Person", "drop @range(age, 0..100) of Person"],
        ROWS,
        before=person(f"{FULL} @range(age, 0..100)"),
        broken=[node(name="Eve", age=51)],
        message="@range violation on Person.age: 51 is not in 0..50 (row 'Eve')",
    ),
    Case(
        "add a check",
        person(f'{FULL} @check(city, "^R")'),
        ['add @check(city, "^R") to Person'],
        ROWS,
        broken=[node(name="Eve", city="Oslo")],
        message="@check violation on Person.city: 'Oslo' does not match ^R (row 'Eve')",
    ),
    Case("drop a rule", PEOPLE, ["drop @unique(age) of Person"], ROWS, before=person(f"{FULL} @unique(age)")),
    Case(
        "narrow a cardinality",
        f"{PEOPLE} edge Knows: Person -> Person @card(0..1)",
        ["change Knows from @card(0..) to @card(0..1)"],
        ROWS,
        before=f"{PEOPLE} edge Knows: Person -> Person",
        rows=[node(**ADA), node(**BOB), {"edge": "Knows", "from": "Ada", "to": "Bob"}],
        broken=[{"edge": "Knows", "from": "Ada", "to": "Ada"}],
        message="@card violation on edge Knows: source 'Ada' has 2 edges (max 1)",
    ),
    Case(
        "make edges unique",
        f"{PEOPLE} edge Knows: Person -> Person {{ @unique(src, dst) }}",
        ["add @unique(dst, src) to Knows"],
        ROWS,
        before=f"{PEOPLE} edge Knows: Person -> Person",
        rows=[node(**ADA), node(**BOB), {"edge": "Knows", "from": "Ada", "to": "Bob"}],
        broken=[{"edge": "Knows", "from": "Ada", "to": "Bob"}],
        message="@unique violation on Knows.(dst, src)",
    ),
    Case(
        "drop a node type",
        "node City { name: String @key }",
        ["add node City", "drop node Person (soft)"],
        {"City": []},
    ),
    Case(
        "drop an edge type",
        PEOPLE,
        ["drop edge Knows (soft)"],
        ROWS,
        before=f"{PEOPLE} {KNOWS}",
        rows=[node(**ADA), node(**BOB), {"edge": "Knows", "from": "Ada", "to": "Bob"}],
    ),
    Case(
        "describe a type",
        PEOPLE.replace(" {", ' @description("somebody") {', 1),
        ["describe node Person"],
        ROWS,
    ),
]

REFUSED = {
    "a required property without values": (
        person(f"{FULL} mail: String"),
        "[OG-MF-103] node:Person.mail: existing rows have no value for a new property: write `mail: String?`, "
        "or give them one (--fill Person.mail=…)",
    ),
    "a type that loses values": (
        PEOPLE.replace("I32?", "String?"),
        "[OG-MF-106] node:Person.age: its type cannot change from I32? to String?; it can become F64? or I64?; "
        "or add another property and drop this one",
    ),
    "a key": (
        PEOPLE.replace("String @key", "String"),
        "node:Person: @key(name) cannot be removed: ids of existing rows are made of it",
    ),
    "the property of a key": (
        "node Person { age: I32?  city: String?  born: Date? }",
        "node:Person.name: a key property cannot be dropped",
    ),
}
