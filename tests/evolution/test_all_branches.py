"""One schema for all branches: all of them get it, or none does."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, PEOPLE, node
from tests.evolution.test_apply import content, files
from tests.processes import see_killed
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import (
    ConstraintViolation,
    MigrationError,
    SchemaRefused,
    SchemaUnfinished,
    StorageUnavailable,
)
from omnigraph.storage import layout

YEARS = PEOPLE.replace("age: I32?", "years: I64? @rename_from(age)")
RANGE = PEOPLE.replace(" }", "  @range(age, 0..40) }")
BRANCHES = ["main", "alone", "shared"]


@pytest.fixture
def graph(local_store: Store) -> Graph:
    return begun(local_store)


def begun(store: Store) -> Graph:
    """Three branches: one shares its table with main, one has its own."""
    graph = omnigraph.init(store.uri, PEOPLE, storage_options=store.options)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    graph.create_branch("shared")
    graph.create_branch("alone")
    graph.load([node(name="Eve", age=41)], mode="append", branch="alone")
    return graph


def schemas(graph: Graph) -> list[str]:
    return [graph.schema_source(branch) for branch in BRANCHES]


def test_every_branch_gets_the_schema_by_a_commit_of_its_own(graph: Graph) -> None:
    before = {name: content(graph.branch(name)) for name in BRANCHES}
    done = graph.apply_schema_to_all(YEARS, actor="ada", message="years")
    assert [result.plan.branch for result in done] == BRANCHES
    for result in done:
        commit = result.commit
        assert commit is not None
        assert (commit.branch, commit.actor_id, commit.message) == (result.plan.branch, "ada", "years")
    assert schemas(graph) == [YEARS] * 3
    for name in BRANCHES:
        renamed = [{"years": row.pop("age"), **row} for row in before[name]["Person"]]
        assert content(graph.branch(name))["Person"] == renamed
    assert [result.commit for result in graph.apply_schema_to_all(YEARS)] == [None] * 3


def test_one_branch_that_cannot_follow_keeps_all_as_they_were(graph: Graph, local_store: Store) -> None:
    was = files(Path(local_store.uri))
    with pytest.raises(SchemaRefused, match="branch 'alone' cannot get the schema, so no branch did") as caught:
        graph.apply_schema_to_all(RANGE)
    assert isinstance(caught.value.__cause__, ConstraintViolation)
    with pytest.raises(SchemaRefused) as caught:
        graph.apply_schema_to_all(PEOPLE.replace("I32", "Bool"))
    assert isinstance(caught.value.__cause__, MigrationError)
    assert files(Path(local_store.uri)) == was


WINDOWS = {
    "schema.after_intent": 0,
    "schema.after_store": 0,
    "schema.between_branches": 1,
    "write.after_tables": 0,
    "write.after_publish": 1,
}
"""Where the change is killed, and how many branches have the schema then."""


def apply(store: Store) -> None:
    omnigraph.open(store.uri, storage_options=store.options).apply_schema_to_all(YEARS)


@pytest.mark.parametrize(("window", "done"), WINDOWS.items())
def test_a_killed_change_is_finished_by_the_next_process(window: str, done: int, local_store: Store) -> None:
    graph = begun(local_store)
    before = {name: content(graph.branch(name)) for name in BRANCHES}
    see_killed(window, apply, local_store)
    reader = omnigraph.open(local_store.uri, read_only=True)
    assert schemas(reader).count(YEARS) == done
    for name in BRANCHES:
        assert len(content(reader.branch(name))["Person"]) == len(before[name]["Person"]), "readers never fail"
    again = omnigraph.open(local_store.uri)
    assert schemas(again) == [YEARS] * 3
    assert not again._repository.objects.has(layout.SCHEMA_INTENT)
    for name in BRANCHES:
        again.load([node(name="New")], mode="append", branch=name)


def apply_range(store: Store) -> None:
    omnigraph.open(store.uri).apply_schema_to_all(PEOPLE.replace(" }", "  @range(age, 0..50) }"))


def test_a_branch_that_was_changed_since_is_left_as_it_is(local_store: Store) -> None:
    """The graph can be opened, the other branches get the schema, and the record of recoveries says so."""
    graph = begun(local_store)
    see_killed("schema.after_intent", apply_range, local_store)
    graph.load([node(name="Old", age=99)], mode="append", branch="alone")
    with pytest.warns(RuntimeWarning, match="branch 'alone' cannot get the schema that all branches were to get"):
        again = omnigraph.open(local_store.uri)
    assert ["@range" in schema for schema in schemas(again)] == [True, False, True]
    (left,) = again.recoveries()
    assert (left.recovery_kind, left.writer_kind, left.branch) == ("SchemaNotFollowed", "schema_apply", "alone")
    assert "Person.age" in left.table_outcomes["schema"]
    assert schemas(omnigraph.open(local_store.uri)) == schemas(again)


def test_a_change_of_one_branch_comes_after_that_of_all(local_store: Store) -> None:
    """A process that has the graph open finishes what a dead one has left before it changes a schema itself."""
    graph = begun(local_store)
    see_killed("schema.between_branches", apply, local_store)
    more = YEARS.replace(" }", "  mail: String? }")
    graph.apply_schema(more)
    assert schemas(graph) == schemas(omnigraph.open(local_store.uri)) == [more, YEARS, YEARS]


def test_a_store_that_fails_behind_the_first_branch(graph: Graph, local_store: Store) -> None:
    def fail() -> None:
        raise StorageUnavailable("the store", "it does not answer")

    with failpoints.armed("schema.after_store", fail), pytest.raises(SchemaUnfinished) as caught:
        graph.apply_schema_to_all(YEARS)
    assert (caught.value.done, caught.value.left) == ([], BRANCHES)
    assert schemas(omnigraph.open(local_store.uri)) == [YEARS] * 3
