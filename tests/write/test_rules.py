"""Rules of single rows, on plain Arrow tables: no graph, no store."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from tests.write.support import table_of

from omnigraph.errors import Violation
from omnigraph.lang.schema.catalog import EntityType, load_catalog
from omnigraph.write.rules import Violations, check_rows

CATALOG = load_catalog("""
node Person {
  name: String @key
  motto: String
  age: I32?  big: U64?  height: F32?  weight: F64?
  email: String?  rank: enum(cadet, captain)?  tags: [String]?  face: Vector(2)?  photo: Blob?
  @range(age, 0..150)
  @range(weight, ..500.5)
  @range(height, 0.5..)
  @range(big, 1..)
  @check(email, "^[^@]+@[^@]+$")
  @check(email, "[.]org")
}
node Album { cover: Blob  tags: [String]  face: Vector(2) }
edge Knows: Person -> Person { how: enum(work, school)?  since: Date  closeness: F64? }
""")
PERSON = CATALOG.nodes["Person"]


def broken(entity: EntityType, *rows: dict[str, Any]) -> list[tuple[str | None, str]]:
    """The rules that rows break, as `(row id, rule)`."""
    found = Violations()
    check_rows(entity, table_of(entity, rows), found)
    assert found.total == len(found.listed)
    return [(violation.row_id, violation.rule) for violation in found.listed]


def person(**values: Any) -> dict[str, Any]:
    return {"id": "p", "name": "p", "motto": "", **values}


def test_a_row_that_breaks_nothing() -> None:
    full = person(age=36, big=1, height=0.5, weight=500.5, email="a@b.org", rank="cadet", tags=[], face=[0, 1])
    assert broken(PERSON, person(), full) == []


@pytest.mark.parametrize("values", [{"motto": None}, {"name": None}])
def test_required_values(values: dict[str, Any]) -> None:
    assert broken(PERSON, person(), person(**values)) == [("p", "required")]


def test_required_values_of_every_shape() -> None:
    album = {"id": "a", "cover": b"", "tags": [], "face": [0, 1]}
    assert broken(CATALOG.nodes["Album"], album) == []
    for name in ("cover", "tags", "face"):
        assert broken(CATALOG.nodes["Album"], album, {**album, name: None}) == [("a", "required")]


@pytest.mark.parametrize(
    ("values", "fits"),
    [
        ({"age": 0}, True),
        ({"age": 150}, True),
        ({"age": -1}, False),
        ({"age": 151}, False),
        ({"age": None}, True),
        ({"weight": -1e300}, True),
        ({"weight": 500.5}, True),
        ({"weight": 500.6}, False),
        ({"height": 1e30}, True),
        ({"height": 0.4}, False),
        ({"big": 2**64 - 1}, True),
        ({"big": 0}, False),
    ],
)
def test_ranges_are_inclusive_and_open_where_nothing_is_said(values: dict[str, Any], fits: bool) -> None:
    assert broken(PERSON, person(**values)) == ([] if fits else [("p", "range")])


def test_what_is_not_a_finite_number_is_refused_and_is_in_no_range() -> None:
    for number in (math.nan, math.inf):
        assert broken(PERSON, person(weight=number)) == [("p", "finite"), ("p", "range")]
    assert broken(PERSON, person(height=math.nan)) == [("p", "finite"), ("p", "range")]
    edge = {"id": "k", "src": "a", "dst": "b", "since": 0, "closeness": math.nan}
    assert broken(CATALOG.edges["Knows"], edge) == [("k", "finite")]


@pytest.mark.parametrize(
    ("email", "count"), [("a@b.org", 0), (None, 0), ("a@b.com", 1), ("ab.org", 1), ("", 2), ("é@ü.org", 0)]
)
def test_every_expression_must_match(email: str | None, count: int) -> None:
    assert broken(PERSON, person(email=email)) == [("p", "check")] * count


def test_enums_of_nodes_and_edges() -> None:
    edge = {"id": "k", "src": "a", "dst": "b", "since": 0}
    assert broken(PERSON, person(rank="captain"), person(rank=None), person(rank="Captain")) == [("p", "enum")]
    assert broken(CATALOG.edges["Knows"], edge, {**edge, "how": "work"}) == []
    assert broken(CATALOG.edges["Knows"], {**edge, "how": "", "since": None}) == [("k", "enum"), ("k", "required")]


def test_messages_name_the_property_the_value_the_rule_and_the_row() -> None:
    found = Violations()
    check_rows(PERSON, table_of(PERSON, [person(age=200, email="x", rank="boss", motto=None)]), found)
    assert [violation.message for violation in found.listed] == [
        "Person.motto is required and has no value (row 'p')",
        "Person.rank: 'boss' is not one of cadet, captain (row 'p')",
        "@range violation on Person.age: 200 is not in 0..150 (row 'p')",
        "@check violation on Person.email: 'x' does not match [.]org (row 'p')",
        "@check violation on Person.email: 'x' does not match ^[^@]+@[^@]+$ (row 'p')",
    ]
    assert {violation.table_key for violation in found.listed} == {"node:Person"}


def test_columns_in_several_chunks() -> None:
    parts = [table_of(PERSON, [person(id=f"p{i}", age=i * 100)]) for i in range(4)]
    found = Violations()
    check_rows(PERSON, pa.concat_tables(parts), found)
    assert [violation.row_id for violation in found.listed] == ["p2", "p3"]


def test_no_rows() -> None:
    assert broken(PERSON) == []


def test_twenty_are_listed_and_all_are_counted() -> None:
    found = Violations()
    rows = [person(id=f"p{i:02}", age=-1 if i % 2 else 1) for i in range(50)]
    check_rows(PERSON, table_of(PERSON, rows), found)
    assert (len(found.listed), found.total) == (20, 25)
    assert found.listed[-1].row_id == "p39"
    found.note([Violation("node:Person", "p", "unique", "one more")], 3, "not unique")
    assert (len(found.listed), found.total) == (20, 28)
    assert [(group.rule, group.count) for group in found.tally.summary()] == [("range", 25), ("unique", 3)]
