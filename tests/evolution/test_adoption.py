"""A merge that adopts the source's schema: everything is checked before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, PEOPLE, Record, node
from tests.evolution.test_apply import content
from tests.evolution.test_history import head, update
from tests.processes import see_killed
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.errors import Conflict, InvalidArgument, MergeConflicts, MergeUnfinished, StorageUnavailable

MAIL = PEOPLE.replace(" }", "  mail: String? }")
UNIQUE_MAIL = PEOPLE.replace(" }", "  mail: String? @unique }")
REQUIRED_MAIL = PEOPLE.replace(" }", "  mail: String }")
FILL = {"Person.mail": "none"}


def begun(path: str | Path) -> Graph:
    graph = omnigraph.init(path, PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    graph.create_branch("dev")
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return begun(tmp_path / "g.omni")


def refused(graph: Graph) -> tuple[Conflict, ...]:
    """The conflicts of merging dev into main, which leaves main as it is."""
    before, schema = head(graph), graph.schema
    with pytest.raises(MergeConflicts) as caught:
        graph.merge("dev")
    assert graph.preview_merge("dev").conflicts == caught.value.conflicts
    assert (head(graph), graph.schema) == (before, schema)
    return caught.value.conflicts


def mails(graph: Graph) -> dict[object, object]:
    return {row["name"]: row["mail"] for row in content(graph)["Person"]}


class TestRules:
    def test_merged_rows_that_break_a_rule_together_leave_the_schema_as_it_is(self, graph: Graph) -> None:
        schema = PEOPLE.replace("name: String @key", "name: String @key @rename_from(name)")
        graph.apply_schema(schema.replace("age: I32?", "age: I64? @unique"), branch="dev")
        graph.load([node(name="Eve", age=7)], mode="append", branch="dev")
        graph.load([node(name="Flo", age=7)], mode="append")
        (found,) = refused(graph)
        assert (found.kind.value, found.table_key, found.id) == ("unique_violation", "node:Person", "Eve")

    def test_renamed_columns_are_looked_at_too(self, graph: Graph) -> None:
        schema = PEOPLE.replace("age: I32?", "years: I32? @rename_from(age) @unique")
        graph.apply_schema(schema, branch="dev")
        graph.load([node(name="Eve", years=8)], mode="append", branch="dev")
        graph.load([node(name="Flo", age=8)], mode="append")
        assert [found.kind.value for found in refused(graph)] == ["unique_violation"]

    def test_edges_of_a_new_type_need_nodes_that_are_left(self, graph: Graph) -> None:
        graph.apply_schema(f"{PEOPLE} edge Likes: Person -> Person", branch="dev")
        likes: Record = {"edge": "Likes", "from": "Ada", "to": "Bob"}
        graph.load([likes], mode="append", branch="dev")
        graph.mutate('query q() { delete Person where name = "Bob" }')
        assert [found.kind.value for found in refused(graph)] == ["orphan_edge"]

    def test_rows_of_the_target_that_break_a_rule_of_the_schema_are_schema_conflicts(self, graph: Graph) -> None:
        graph.apply_schema(UNIQUE_MAIL.replace("age: I32?", "age: I32? @unique"), branch="dev")
        graph.load([node(name="Eve", age=9), node(name="Flo", age=9)], mode="append")
        (found,) = refused(graph)
        assert (found.kind.value, found.table_key, found.id) == ("schema_conflict", "node:Person", "Flo")
        assert "mend the row" in found.message
        update(graph, "Person", "Flo", "age: 10")
        graph.merge("dev")
        assert "@unique" in graph.schema

    def test_a_choice_for_an_entity_that_is_not_in_conflict_is_refused_first(self, graph: Graph) -> None:
        graph.apply_schema(MAIL, branch="dev")
        before = head(graph)
        with pytest.raises(InvalidArgument, match="is not in conflict"):
            graph.merge("dev", choices={("node:Person", "Ada"): "ours"})
        assert head(graph) == before


class TestRequiredProperties:
    def test_rows_that_both_have_get_the_values_of_the_source(self, graph: Graph) -> None:
        graph.apply_schema(REQUIRED_MAIL, branch="dev", fill=FILL)
        update(graph, "Person", "Bob", 'mail: "b@x"', "dev")
        update(graph, "Person", "Ada", "age: 1")
        done = graph.merge("dev")
        assert (mails(graph), graph.schema) == ({"Ada": "none", "Bob": "b@x"}, REQUIRED_MAIL)
        assert done.plan.schema == ("add Person.mail: String",)
        assert content(graph)["Person"][0]["age"] == 1
        assert graph.merge("dev").outcome == "already_up_to_date"

    def test_rows_that_the_source_does_not_have_are_named(self, graph: Graph) -> None:
        graph.apply_schema(REQUIRED_MAIL, branch="dev", fill=FILL)
        graph.load([node(name="Eve"), node(name="Flo")], mode="append")
        found = refused(graph)
        assert [(each.kind.value, each.id) for each in found] == [
            ("schema_conflict", "Eve"),
            ("schema_conflict", "Flo"),
        ]
        assert "with a fill" in found[0].message
        graph.apply_schema(REQUIRED_MAIL, fill=FILL)
        graph.merge("dev")
        assert mails(graph) == {"Ada": "none", "Bob": "none", "Eve": "none", "Flo": "none"}

    def test_a_value_that_the_target_has_taken_away_is_not_brought_back(self, graph: Graph) -> None:
        graph.apply_schema(
            PEOPLE.replace("city: String?", "city: String"), branch="dev", fill={"Person.city": "x"}
        )
        graph.load([node(name="Bob", city=None)], mode="merge")
        assert [(each.kind.value, each.id) for each in refused(graph)] == [("schema_conflict", "Bob")]

    def test_beside_additions_of_the_target(self, graph: Graph) -> None:
        graph.apply_schema(REQUIRED_MAIL, branch="dev", fill=FILL)
        graph.apply_schema(PEOPLE.replace(" }", "  phone: String? }"))
        update(graph, "Person", "Ada", 'phone: "1"')
        graph.merge("dev")
        (ada, bob) = content(graph)["Person"]
        assert (ada["mail"], ada["phone"], bob["mail"], bob["phone"]) == ("none", "1", "none", None)


class TestFailures:
    def test_a_merge_that_dies_behind_its_schema_is_finished_by_the_next(self, local_store: Store) -> None:
        graph = begun(local_store.uri)
        graph.apply_schema(MAIL, branch="dev")
        update(graph, "Person", "Ada", 'mail: "a@x"', "dev")
        see_killed("merge.after_schema", _merge, local_store)
        again = omnigraph.open(local_store.uri)
        assert (again.schema, mails(again)) == (MAIL, {"Ada": None, "Bob": None})
        again.merge("dev")
        assert mails(again) == {"Ada": "a@x", "Bob": None}

    def test_one_that_fails_there_says_so(self, graph: Graph) -> None:
        graph.apply_schema(MAIL, branch="dev")
        update(graph, "Person", "Ada", 'mail: "a@x"', "dev")

        def fail() -> None:
            raise StorageUnavailable("the store", "it does not answer")

        with failpoints.armed("merge.after_schema", fail), pytest.raises(MergeUnfinished) as caught:
            graph.merge("dev")
        assert caught.value.schema_commit == head(graph)
        assert (graph.schema, mails(graph)) == (MAIL, {"Ada": None, "Bob": None})
        graph.merge("dev")
        assert mails(graph) == {"Ada": "a@x", "Bob": None}

    def test_a_writer_that_comes_before_the_lock_is_seen(self, graph: Graph) -> None:
        graph.apply_schema(REQUIRED_MAIL, branch="dev", fill=FILL)
        other = omnigraph.open(graph.address)

        def insert() -> None:
            other.load([node(name="Eve")], mode="append")

        with failpoints.armed("merge.after_check", insert), pytest.raises(MergeConflicts) as caught:
            graph.merge("dev")
        assert [each.id for each in caught.value.conflicts] == ["Eve"]
        assert graph.schema == PEOPLE


def _merge(store: Store) -> None:
    omnigraph.open(store.uri).merge("dev")
