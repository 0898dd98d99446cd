"""Names that are used again: types and properties are told apart by their ids, not by what they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, PEOPLE, node
from tests.evolution.test_apply import content
from tests.evolution.test_history import HUMAN, MAIL, changes, head, update

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeConflicts

RENAMED = PEOPLE.replace("age: I32?", "years: I32? @rename_from(age)")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    graph.create_branch("dev")
    return graph


class TestDiff:
    def test_a_new_property_is_not_the_renamed_one_that_had_its_name(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(RENAMED)
        graph.apply_schema(PEOPLE.replace("age: I32?", "years: I32?  age: Bool?"))
        update(graph, "Person", "Ada", "age: true")
        (ada,) = graph.diff(before)
        assert ada.before is not None
        assert (ada.before["age"], ada.before["years"], ada.changed) == (None, 36, ("age",))

    def test_a_new_property_is_not_a_dropped_one_of_another_kind(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(PEOPLE.replace("city: String?", ""))
        graph.apply_schema(PEOPLE.replace("city: String?", "city: I32?"))
        assert changes(graph, before) == []
        update(graph, "Person", "Ada", "city: 1")
        (ada,) = graph.diff(before)
        assert ada.before is not None
        assert ada.before["city"] is None
        assert graph.blame("Person", "Ada")["city"].commit.graph_commit_id == head(graph)

    def test_a_new_type_has_its_own_columns(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema("node City { name: String @key }")
        graph.apply_schema("node Person { name: String @key  zip: String? }")
        graph.load([node(name="Ada", zip="1")], mode="append")
        assert [(c.op.value, c.id, c.before, c.after) for c in graph.diff(before)] == [
            ("insert", "Ada", None, {"id": "Ada", "name": "Ada", "zip": "1"}),
        ]

    def test_a_widened_value_is_shown_backwards_too(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(PEOPLE.replace("I32", "I64").replace("Date?", "DateTime?"))
        update(graph, "Person", "Ada", 'age: 5000000000, born: datetime("1815-12-10T07:00:00Z")')
        (ada,) = graph.diff("main", before)
        assert ada.before is not None
        assert ada.after is not None
        assert (ada.before["age"], ada.after["age"]) == (5000000000, 36)
        assert (ada.before["born"].hour, ada.after["born"].hour) == (7, 0)
        assert ada.changed == ("age", "born")


class TestMerge:
    @pytest.mark.parametrize(
        ("ours", "result"),
        {
            "renamed": (RENAMED, {"name": "Ada", "years": 36, "city": "Rome", "born": "1815-12-10"}),
            "dropped": (PEOPLE.replace("age: I32?", ""), {"name": "Ada", "city": "Rome", "born": "1815-12-10"}),
            "widened": (PEOPLE.replace("I32", "I64"), ADA),
            "another name for the type": (
                HUMAN,
                {"name": "Ada", "years": 36, "city": "Rome", "born": "1815-12-10"},
            ),
        }.values(),
    )
    def test_what_the_target_has_changed_stays_when_the_source_has_added(
        self, ours: str, result: dict[str, object], graph: Graph
    ) -> None:
        graph.apply_schema(ours)
        graph.apply_schema(MAIL, branch="dev")
        update(graph, "Person", "Ada", 'mail: "a@x"', "dev")
        graph.merge("dev")
        (rows,) = content(graph).values()
        assert rows[0] == dict(sorted({**result, "mail": "a@x"}.items()))
        assert graph.plan_schema(graph.schema).steps.steps == ()

    def test_a_new_edge_type_leads_to_the_type_that_the_target_has_renamed(self, graph: Graph) -> None:
        graph.apply_schema(HUMAN)
        graph.apply_schema(f"{PEOPLE} edge Likes: Person -> Person", branch="dev")
        graph.load([{"edge": "Likes", "from": "Ada", "to": "Bob"}], mode="append", branch="dev")
        graph.merge("dev")
        found = graph.query("query q() { match { $p: Human $p likes $q } return { $p.name, $q.name } }")
        assert found.rows == [{"p.name": "Ada", "q.name": "Bob"}]

    def test_columns_of_a_type_that_both_sides_added_are_matched_by_name(self, graph: Graph) -> None:
        graph.apply_schema(f"{PEOPLE} node City {{ name: String @key  b: String? }}")
        graph.apply_schema(f"{PEOPLE} node City {{ name: String @key  a: String?  b: String? }}", branch="dev")
        graph.load([{"type": "City", "data": {"name": "Rome", "b": "1"}}], mode="append")
        data = {"name": "Oslo", "a": "2", "b": "3"}
        graph.load([{"type": "City", "data": data}], mode="append", branch="dev")
        graph.merge("dev")
        assert content(graph)["City"] == [
            {"a": "2", "b": "3", "name": "Oslo"},
            {"a": None, "b": "1", "name": "Rome"},
        ]

    def test_what_the_source_knows_of_a_dropped_property_is_not_put_in_a_new_one(self, graph: Graph) -> None:
        update(graph, "Person", "Ada", 'city: "Oslo", age: 1', "dev")
        graph.apply_schema(PEOPLE.replace("city: String?", ""))
        graph.apply_schema(PEOPLE.replace("city: String?", "city: I32?"))
        graph.merge("dev")
        (ada, _) = content(graph)["Person"]
        assert (ada["age"], ada["city"]) == (1, None)

    @pytest.mark.parametrize(
        ("ours", "theirs", "message"),
        [
            (
                PEOPLE.replace(" }", "  mail: I32? }"),
                MAIL,
                "Person.mail: the source has added it as String?, the target as I32?",
            ),
            (
                PEOPLE.replace("city: String?", "mail: String? @rename_from(city)"),
                MAIL,
                "Person.mail: the target has given this name to another property",
            ),
            (
                "node City { name: String @key }",
                MAIL,
                "Person: the source has added to it, and the target has dropped it",
            ),
            (
                "node City { name: String @key }",
                f"{PEOPLE} edge Likes: Person -> Person",
                "Likes: it leads to or from Person, which the target has dropped",
            ),
        ],
    )
    def test_additions_that_have_no_place_are_conflicts(
        self, ours: str, theirs: str, message: str, graph: Graph
    ) -> None:
        graph.apply_schema(ours)
        graph.apply_schema(theirs, branch="dev")
        before = head(graph)
        with pytest.raises(MergeConflicts) as caught:
            graph.merge("dev")
        assert caught.value.conflicts[0].kind.value == "schema_conflict"
        assert message in caught.value.conflicts[0].message
        assert head(graph) == before

    def test_a_schema_is_adopted_that_uses_a_name_for_something_else(self, graph: Graph) -> None:
        graph.apply_schema(PEOPLE.replace("city: String?", ""), branch="dev")
        graph.apply_schema(PEOPLE.replace("city: String?", "city: I32?"), branch="dev")
        update(graph, "Person", "Ada", "city: 5", "dev")
        update(graph, "Person", "Bob", "age: 9")
        graph.merge("dev")
        assert [(row["age"], row["city"]) for row in content(graph)["Person"]] == [(36, 5), (9, None)]
