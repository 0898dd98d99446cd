"""Loads on which both engines have to agree: what is there before, what is loaded, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tests.bulk.loading import Record, edge, node

SCHEMA = """
node Person {
  name: String @key  mail: String? @unique  weight: F64? @unique  age: I32?  code: String?  mood: enum(happy, sad)?
  given: String?  family: String?
  @unique(given, family) @range(age, 0..150) @check(code, "^[a-z]+$")
}
node Event { title: String?  at: DateTime? @unique  day: Date?  size: F32?  big: U64? @unique }
node Seat { row: U32  on: Date  @key(row, on) }
node Base { code: String @key }
node Doc { slug: String @key  title: String?  meaning: Vector(4)? @embed("title") }
edge Knows: Person -> Person { since: Date?  tag: String? @unique }
edge Leads: Person -> Base @card(0..1)
edge Hosts: Base -> Event @card(1..2)
edge Pays: Person -> Base { day: Date  sum: F64?  @key(src, dst, day) }
"""

Mode = Literal["overwrite", "append", "merge"]


@dataclass(frozen=True)
class Scenario:
    """Records that are loaded on top of others."""

    name: str
    mode: Mode
    load: tuple[Record | str, ...]
    base: tuple[Record, ...] = ()


ADA, BO, CY = (node("Person", name=name, mail=f"{name}@x") for name in ("ada", "bo", "cy"))
PEOPLE = (ADA, BO, CY)
WORLD = (
    *PEOPLE,
    node("Base", code="b"),
    node("Base", code="c"),
    node("Event", id="e1", title="one"),
    node("Event", id="e2", title="two"),
    edge("Knows", "ada", "bo", id="k1", tag="t1"),
    edge("Leads", "ada", "b", id="l1"),
    edge("Hosts", "b", "e1", id="h1"),
    edge("Hosts", "c", "e2", id="h2"),
)

LOADED = (
    Scenario("append to nothing", "append", WORLD),
    Scenario("merge into nothing", "merge", WORLD),
    Scenario("overwrite nothing", "overwrite", WORLD),
    Scenario("append more", "append", (node("Person", name="dee"), edge("Knows", "dee", "ada", id="k2")), WORLD),
    Scenario(
        "merge: rows are replaced as a whole",
        "merge",
        (node("Person", name="ada", age=3), node("Person", name="new", mail="ada@x"), node("Event", id="e1")),
        WORLD,
    ),
    Scenario(
        "merge: the last record wins",
        "merge",
        (
            *(node("Person", name=name, age=age) for age in range(3) for name in ("ada", "dee")),
            edge("Knows", "ada", "dee", id="k1"),
            edge("Knows", "dee", "ada", id="k1"),
            edge("Knows", "dee", "dee"),
        ),
        WORLD,
    ),
    Scenario(
        "merge: a record that a later one replaces may break a rule",
        "merge",
        (node("Person", name="ada", age=999), node("Person", name="d", mood="odd"), ADA, node("Person", name="d")),
        WORLD,
    ),
    Scenario("overwrite: tables without records stay", "overwrite", (*PEOPLE, node("Person", name="dee")), WORLD),
    Scenario(
        "overwrite: nodes go with their edges",
        "overwrite",
        (node("Person", name="zoe"), edge("Knows", "zoe", "zoe"), edge("Leads", "zoe", "b")),
        WORLD,
    ),
    Scenario(
        "ids that are given, generated, and keys",
        "append",
        (
            node("Event", title="no id"),
            node("Event", id="own", title="an id"),
            node("Event"),
            '{"type": "Event"}',
            edge("Knows", "ada", "bo"),
            edge("Knows", "ada", "bo", id="own"),
            node("Seat", row=1, on="2024-02-29"),
            '{"data": {"on": 19783, "row": 1}, "type": "Seat"}',
        ),
        WORLD,
    ),
    Scenario(
        "merge: an edge moves, and one without an id is new",
        "merge",
        (edge("Knows", "bo", "ada", id="k1"), edge("Knows", "ada", "bo", tag="t1"), edge("Hosts", "b", "e2")),
        WORLD,
    ),
    Scenario(
        "merge: an edge with a key is the same edge again",
        "merge",
        (
            edge("Pays", "ada", "b", day="2024-02-29", sum=1),
            edge("Pays", "bo", "b", day="2024-02-29", sum=2),
            edge("Pays", "ada", "b", day="2024-03-01", sum=3),
            edge("Pays", "ada", "b", day="2024-02-29", id='["ada","b","19782"]', sum=4),
            edge("Knows", "ada", "bo"),
            edge("Knows", "ada", "bo"),
        ),
        (*WORLD, edge("Pays", "ada", "b", day="2024-02-29"), edge("Pays", "cy", "b", day="2024-02-29")),
    ),
    Scenario(
        "unique: nulls are not compared",
        "append",
        (
            node("Person", name="d", given="a"),
            node("Person", name="e", given="a"),
            node("Person", name="f", given="a", family="x"),
            node("Person", name="g", given="a", family="y"),
        ),
        WORLD,
    ),
    Scenario(
        "unique: a value moves from one row to another",
        "merge",
        (node("Person", name="ada", mail="bo@x"), node("Person", name="bo", mail="ada@x")),
        WORLD,
    ),
    Scenario("nothing", "append", (), WORLD),
    Scenario("nothing replaces nothing", "overwrite", ("", "  "), WORLD),
    Scenario("only comments", "merge", ("// one", "", "  // two"), WORLD),
    Scenario(
        "odd spellings",
        "append",
        (
            ' { "type" : "Person" , "data" : { "name" : "sp\\u00e4t\\n\\"\\ud83d\\ude00" , "age" : 7 } } ',
            '{"edge": "kNoWs", "from": "ada", "to": "cy"}\r',
            '{"type": "Person", "data": {"name": "x", "weight": 1e3, "age": null}}',
            '{"type": "Event", "data": {"at": "2024-02-29T23:59:59.9999+01:00", "size": 16777217}}',
            '{"type": "Event", "data": {"day": "0001-01-01"}}',
            '{"type": "Event", "data": {"at": -1, "big": 18446744073709551615}}',
        ),
        WORLD,
    ),
)

REFUSED = (
    Scenario(
        "an edge with a key that comes twice",
        "append",
        (edge("Pays", "ada", "b", day="2024-02-29"), edge("Pays", "ada", "b", day="2024-02-29")),
        WORLD,
    ),
    Scenario(
        "an edge whose id is not that of its key",
        "merge",
        (edge("Pays", "ada", "b", day="2024-02-29", id="p1"), edge("Pays", "ada", "b")),
        WORLD,
    ),
    Scenario(
        "what cannot be read comes first",
        "append",
        (
            ADA,
            "{",
            '{"type": "Nobody"}',
            node("Person", name="x", age="old"),
            node("Person", name="x", age=2**40),
            node("Person", nick="x"),
            edge("Knows", "ada", "nobody"),
            '{"type": "Person", "data": {"name": "a", "name": "b"}}',
            node("Seat", row=-1, on="2024-02-30"),
            node("Person", name="y", age=-1),
        ),
        WORLD,
    ),
    Scenario("ids come twice", "append", (node("Event", id="x"), ADA, node("Event", id="x")), WORLD),
    Scenario(
        "keys come twice",
        "append",
        (node("Person", name="x"), node("Person", name="y"), node("Person", name="x"), node("Person", name="x")),
        WORLD,
    ),
    Scenario("keys come twice where all is replaced", "overwrite", (ADA, ADA), WORLD),
    Scenario(
        "ids exist already", "append", (node("Person", name="x", age=-1), ADA, node("Event", id="e1")), WORLD
    ),
    Scenario(
        "everything that is wrong is said at once",
        "append",
        (
            "// what follows is wrong",
            node("Person", name="d", age=151, code="A1"),
            node("Person", name="e", mood="odd"),
            node("Person", name="f", mail="ada@x"),
            node("Person", name="g", given="a", family="b"),
            "",
            node("Person", name="h", given="a", family="b"),
            node("Person", name="i", weight=-0.0),
            node("Person", name="j", weight=0),
            edge("Knows", "ada", "nobody"),
            edge("Knows", "nobody", "no one", id="k"),
            edge("Leads", "ada", "c"),
            edge("Hosts", "b", "e1"),
            edge("Hosts", "b", "e2"),
            node("Event", id="x", at="2024-01-01T00:00:00Z"),
            node("Event", id="y", at="2024-01-01T01:00:00+01:00"),
            node("Event", id="z", big=2**64 - 1),
            node("Event", id="zz", big=2**64 - 1),
        ),
        WORLD,
    ),
    Scenario(
        "merge: the last record counts",
        "merge",
        (
            node("Person", name="d", age=-1),
            node("Person", name="d", age=-2),
            node("Person", name="e", mail="ada@x"),
            node("Person", name="e", mail="bo@x"),
            node("Person", name="ada", mail="new@x"),
            edge("Knows", "ada", "nobody", id="k1"),
            edge("Knows", "ada", "bo", id="k1"),
        ),
        WORLD,
    ),
    Scenario("merge: too few edges are left", "merge", (edge("Hosts", "c", "e1", id="h1"),), WORLD),
    Scenario("merge: too many edges", "merge", (edge("Leads", "ada", "b"), edge("Leads", "bo", "b")), WORLD),
    Scenario("merge: an edge too many has an id", "merge", (edge("Leads", "ada", "c", id="l2"),), WORLD),
    Scenario("overwrite: nodes that edges still need", "overwrite", (BO, node("Base", code="c")), WORLD),
    Scenario("overwrite: edges of nodes that are gone", "overwrite", (BO, edge("Knows", "bo", "ada")), WORLD),
    Scenario(
        "more than are listed",
        "append",
        tuple(node("Person", name=f"p{index:02}", age=-1) for index in range(30)),
        WORLD,
    ),
    Scenario("more that cannot be read than are listed", "append", ("{}",) * 30, WORLD),
)
