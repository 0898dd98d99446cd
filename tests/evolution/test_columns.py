"""The columns of tables behind a change of the schema, and the numbers by which files know them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, PEOPLE, node
from tests.evolution.test_apply import content
from tests.evolution.test_history import changes, head, update

import omnigraph
from omnigraph import Graph
from omnigraph.storage.stage.columns import _first_number

CITY_ONLY = "node Person { name: String @key  city: String }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    return graph


def numbers(graph: Graph) -> dict[str, int]:
    handle = graph._repository.tables.open(graph.snapshot().tables["node:Person"].ref)
    return {field.name(): field.id() for field in handle.lance_schema.fields()}


@pytest.mark.parametrize("kept_rows", [True, False], ids=["rows", "no rows"])
def test_a_rule_about_nulls_changes_while_another_property_comes(kept_rows: bool, tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", CITY_ONLY)
    if kept_rows:
        graph.load([node(name="Ada", city="Rome")], mode="append")
    loose = CITY_ONLY.replace("city: String", "city: String?").replace(" }", "  age: I32? }")
    graph.apply_schema(loose)
    graph.load([node(name="Eve")], mode="append")
    assert content(graph)["Person"][-1] == {"age": None, "city": None, "name": "Eve"}
    graph.mutate('query q() { delete Person where name = "Eve" }')
    graph.apply_schema(CITY_ONLY.replace(" }", "  age: I32?  mail: String? }"))
    assert [row["city"] for row in content(graph)["Person"]] == (["Rome"] if kept_rows else [])


def test_no_number_is_used_again_for_another_property(graph: Graph) -> None:
    """Neither after a drop whose files are compacted away, nor by another branch."""
    graph.create_branch("dev")
    seen: set[int] = set(numbers(graph).values())
    for kind in ("I32", "String", "Bool"):
        graph.apply_schema(PEOPLE.replace(" }", f"  more: {kind}? }}"))
        graph.load([node(name=f"With {kind}")], mode="append")
        assert numbers(graph)["more"] not in seen
        seen.add(numbers(graph)["more"])
        graph.apply_schema(PEOPLE)
        graph.optimize()
    dev = graph.branch("dev")
    dev.apply_schema(PEOPLE.replace("Date?", "DateTime?"))
    assert numbers(dev)["born"] not in seen


def test_numbers_of_columns_do_not_run_out() -> None:
    """Lance has 2**31 of them, and each new column leaves some out."""
    last = 5
    for change in range(100_000):
        number = _first_number(str(change), last)
        assert last < number < 2**31
        last = number


def test_ids_on_branches_stay_numbers_that_every_reader_of_json_tells_apart(graph: Graph) -> None:
    """For a million changes of the schema, on any branch."""
    graph.create_branch("dev")
    before = graph.snapshot("dev").catalog.ir.next_identity_id
    for change in range(1, 6):
        graph.apply_schema(PEOPLE.replace(" }", f"  more{change}: I32? }}"), branch="dev")
        after = graph.snapshot("dev").catalog.ir.next_identity_id
        assert before < after < before + 2**32 + 8
        before = after
    assert 10**6 * 2**32 < 2**53


def test_two_branches_that_widen_different_properties_are_told_apart(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.apply_schema(PEOPLE.replace("I32", "I64"))
    graph.apply_schema(PEOPLE.replace("Date?", "DateTime?"), branch="dev")
    assert list(graph.diff("main", "dev")) == list(graph.diff("dev", "main")) == []
    update(graph, "Person", "Ada", "age: 5000000000")
    assert changes(graph, "dev", "main") == [("update", "node:Person", "Ada", ("age",))]


def test_a_state_before_a_drop_differs_by_the_dropped_values(graph: Graph) -> None:
    before = head(graph)
    graph.apply_schema(PEOPLE.replace("age: I32?", ""))
    assert changes(graph, before) == []
    assert changes(graph, "main", before) == [("update", "node:Person", "Ada", ("age",))]


def test_a_property_can_be_required_though_deleted_rows_had_none(graph: Graph) -> None:
    graph.mutate('query q() { delete Person where name = "Bob" }')
    graph.apply_schema(PEOPLE.replace("age: I32?", "age: I32"))
    graph.apply_schema(PEOPLE.replace("age: I32?", "age: I64"))
    assert content(graph)["Person"] == [ADA]
