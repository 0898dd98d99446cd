"""Where in a load the records are that break a rule."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.write.support import new_graph

from omnigraph.errors import ConstraintViolation
from omnigraph.graph import Graph

SCHEMA = """
node Person {
  name: String @key  mail: String? @unique  age: I32?  code: String?
  @range(age, 0..150) @check(code, "^[a-z]+$")
}
node Base { code: String @key }
edge Knows: Person -> Person
edge Leads: Person -> Base @card(0..1)
"""


@pytest.fixture
def graph() -> Graph:
    made = new_graph(SCHEMA)
    made.load(
        '{"type": "Person", "data": {"name": "ada", "mail": "a@x"}}\n{"type": "Base", "data": {"code": "b"}}',
        mode="append",
    )
    return made


def refused(graph: Graph, data: Any, mode: Any = "append", **where: Any) -> ConstraintViolation:
    with pytest.raises(ConstraintViolation) as raised:
        graph.load(data, mode=mode, **where)
    return raised.value


def places(
    graph: Graph, data: Any, mode: Any = "append", **where: Any
) -> list[tuple[str, str | None, int | None]]:
    return [(v.rule, v.source, v.line) for v in refused(graph, data, mode, **where).violations]


def test_every_record_by_line_and_the_rest_last(graph: Graph) -> None:
    lines = [
        "// people",
        '{"edge": "Leads", "from": "ada", "to": "b"}',
        '{"edge": "Leads", "from": "ada", "to": "b"}',
        '{"edge": "Knows", "from": "ada", "to": "nobody"}',
        _line("Person", name="cy", age=151, code="A1"),
        "",
        '{"edge": "Knows", "from": "ada", "to": "ada"}',
        _line("Person", name="dee", mail="a@x"),
    ]
    error = refused(graph, "\n".join(lines))
    assert [(v.rule, v.source, v.line) for v in error.violations] == [
        ("endpoint", "<data>", 4),
        ("check", "<data>", 5),
        ("range", "<data>", 5),
        ("unique", "<data>", 8),
        ("card", None, None),
    ]
    assert str(error).splitlines()[1].startswith("<data>:5: @check violation on Person.code: 'A1'")
    assert str(error).splitlines()[4].startswith("@card violation")
    assert error.as_json()["violations"][0]["line"] == 4


def test_what_the_data_is_called(graph: Graph, tmp_path: Path) -> None:
    bad = {"type": "Person", "data": {"name": "cy", "age": -1}}
    path = tmp_path / "people.jsonl"
    path.write_text(f"\n{json.dumps(bad)}\n")
    assert places(graph, path) == [("range", str(path), 2)]
    assert places(graph, path.read_bytes()) == [("range", "<data>", 2)]
    assert places(graph, [bad]) == [("range", "<records>", 1)]


def test_a_branch_that_would_be_forked(graph: Graph) -> None:
    bad = f"\n{_line('Person', name='cy', age=-1)}"
    assert places(graph, bad, branch="review", from_="main") == [("range", "<data>", 2)]


def test_the_last_of_several_records_counts_in_a_merge(graph: Graph) -> None:
    people = [
        _person("cy", age=1),
        _person("cy", age=-1),
        _person("dee"),
        _person("cy", age=-2),
        _person("eve"),
    ]
    assert places(graph, people, "merge") == [("range", "<records>", 4)]


def test_the_second_of_several_records_repeats_a_key(graph: Graph) -> None:
    people = [_person("cy"), _person("dee"), _person("eve"), _person("dee"), _person("cy"), _person("cy")]
    error = refused(graph, people)
    assert [(v.line, v.row_id) for v in error.violations] == [(4, "dee"), (5, "cy")]
    assert str(error).splitlines()[1] == (
        "<records>:5: @unique violation on Person.name: value 'cy' is in 3 records"
    )


def test_rows_that_were_there_have_no_place(graph: Graph) -> None:
    graph.load('{"edge": "Knows", "from": "ada", "to": "ada", "data": {"id": "k"}}', mode="append")
    assert places(graph, [_person("bo")], "overwrite") == [("endpoint", None, None)] * 2
    graph.load([_person("zoe", mail="z@x")], mode="append")
    assert places(graph, [_person("bo", mail="z@x")]) == [("unique", "<records>", 1)]


def test_the_id_of_a_node_is_no_place_of_an_edge(graph: Graph) -> None:
    leads = [{"edge": "Leads", "from": "ada", "to": "b", "data": {"id": name}} for name in ("ada", "l")]
    assert places(graph, leads) == [("card", None, None)]


def test_mutations_have_none(graph: Graph) -> None:
    with pytest.raises(ConstraintViolation) as raised:
        graph.mutate('query q() { insert Person { name: "cy", age: 151 } }')
    [violation] = raised.value.violations
    assert (violation.source, violation.line) == (None, None)
    assert str(raised.value) == violation.message


def _person(name: str, **values: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def _line(type_name: str, **values: Any) -> str:
    return json.dumps({"type": type_name, "data": values})


def test_of_records_that_share_a_value_the_last_is_too_much(graph: Graph) -> None:
    """Whatever their ids are: those of things without a key are generated, and say nothing of the order."""
    schema = "node Thing { label: String? @unique }"
    for _ in range(8):
        things = [{"type": "Thing", "data": {"label": label}} for label in ("a", "b", "a", "c", "a")]
        assert places(new_graph(schema), things) == [("unique", "<records>", 5)]
    assert places(graph, [_person("z", mail="n@x"), _person("a", mail="n@x")]) == [("unique", "<records>", 2)]
