"""A property or a type that was dropped and added again is another one, although it has the name of the first."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, CITY, PEOPLE, node
from tests.evolution.test_apply import content
from tests.evolution.test_history import changes, head, update

import omnigraph
from omnigraph import Graph

WITHOUT = PEOPLE.replace("  city: String?", "")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", f"{PEOPLE} {CITY}")
    rome = {"type": "City", "data": {"name": "Rome"}}
    graph.load([node(**ADA), node(**BOB), rome], mode="append")
    return graph


def drop_and_add_property(graph: Graph, branch: str | None = None) -> None:
    graph.apply_schema(f"{WITHOUT} {CITY}", branch=branch)
    graph.apply_schema(f"{PEOPLE} {CITY}", branch=branch)


def drop_and_add_type(graph: Graph, branch: str | None = None) -> None:
    graph.apply_schema(PEOPLE, branch=branch)
    graph.apply_schema(f"{PEOPLE} {CITY}", branch=branch)


def cities(graph: Graph) -> dict[object, object]:
    return {row["name"]: row["city"] for row in content(graph)["Person"]}


class TestProperty:
    def test_a_diff_shows_the_values_of_the_new_one(self, graph: Graph) -> None:
        before = head(graph)
        drop_and_add_property(graph)
        assert changes(graph, before) == []
        update(graph, "Person", "Ada", 'city: "Rome"')
        (change,) = graph.diff(before)
        assert (change.before or {})["city"] is None
        assert (change.after or {})["city"] == "Rome"
        assert [str(step) for step in graph.diff(before).schema] == [
            "add Person.city: String?",
            "drop Person.city (soft)",
        ]

    def test_backwards_it_shows_those_of_the_old_one(self, graph: Graph) -> None:
        before = head(graph)
        drop_and_add_property(graph)
        update(graph, "Person", "Ada", 'city: "Oslo"')
        found = {change.id: change for change in graph.diff("main", before)}
        assert {name: ((c.before or {})["city"], (c.after or {})["city"]) for name, c in found.items()} == {
            "Ada": (None, "Rome"),
            "Bob": (None, "Rome"),
        }

    def test_blame_knows_the_commits_of_the_new_one(self, graph: Graph) -> None:
        drop_and_add_property(graph)
        added = head(graph)
        found = graph.blame("Person", "Ada")
        assert found["age"].commit.kind == "load"
        update(graph, "Person", "Ada", 'city: "Rome"')
        found = graph.blame("Person", "Ada")
        assert found["city"].commit.graph_commit_id == head(graph) != added

    def test_a_merge_into_it_does_not_bring_the_old_values(self, graph: Graph) -> None:
        graph.create_branch("dev")
        update(graph, "Person", "Ada", 'city: "Oslo", age: 7', "dev")
        drop_and_add_property(graph)
        update(graph, "Person", "Bob", 'city: "Paris"')
        graph.merge("dev")
        assert cities(graph) == {"Ada": None, "Bob": "Paris"}
        assert content(graph)["Person"][0]["age"] == 7

    def test_a_merge_of_it_takes_the_old_values_away(self, graph: Graph) -> None:
        graph.create_branch("dev")
        drop_and_add_property(graph, "dev")
        update(graph, "Person", "Bob", 'city: "Paris"', "dev")
        update(graph, "Person", "Ada", "age: 7")
        assert graph.preview_merge("dev").schema == ("add Person.city: String?", "drop Person.city (soft)")
        graph.merge("dev")
        assert cities(graph) == {"Ada": None, "Bob": "Paris"}
        assert content(graph)["Person"][0]["age"] == 7

    def test_if_both_branches_do_it_the_new_ones_are_one(self, graph: Graph) -> None:
        graph.create_branch("dev")
        drop_and_add_property(graph, "dev")
        drop_and_add_property(graph)
        update(graph, "Person", "Ada", 'city: "Oslo"', "dev")
        update(graph, "Person", "Bob", 'city: "Paris"')
        graph.merge("dev")
        assert cities(graph) == {"Ada": "Oslo", "Bob": "Paris"}

    def test_the_feed_tells_of_new_values_only(self, graph: Graph) -> None:
        start = head(graph)
        drop_and_add_property(graph)
        update(graph, "Person", "Ada", 'city: "Rome"')
        pages = graph.change_pages(start=f"after:{start}")
        found = [(c.id, c.changed) for page in pages for block in page.blocks for c in block.changes]
        assert found == [("Ada", ("city",))]


class TestType:
    def test_a_name_that_a_renamed_type_has_left_can_be_that_of_a_new_one(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(f'{PEOPLE} node Town @rename_from("City") {{ name: String @key }}')
        graph.apply_schema(f"{PEOPLE} node Town {{ name: String @key }} {CITY}")
        graph.load([{"type": "City", "data": {"name": "Oslo"}}], mode="append")
        assert changes(graph, before) == [("insert", "node:City", "Oslo", ())]

    def test_a_diff_shows_the_rows_of_the_new_one(self, graph: Graph) -> None:
        before = head(graph)
        drop_and_add_type(graph)
        assert changes(graph, before) == []
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
        assert changes(graph, before) == [("insert", "node:City", "Rome", ())]
        assert changes(graph, "main", before) == [("insert", "node:City", "Rome", ())]

    def test_a_merge_into_it_does_not_bring_the_old_rows(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.load([{"type": "City", "data": {"name": "Oslo"}}], mode="append", branch="dev")
        drop_and_add_type(graph)
        graph.merge("dev")
        assert content(graph)["City"] == []

    def test_a_merge_of_it_takes_the_old_rows_away(self, graph: Graph) -> None:
        graph.create_branch("dev")
        drop_and_add_type(graph, "dev")
        graph.load([{"type": "City", "data": {"name": "Oslo"}}], mode="append", branch="dev")
        update(graph, "Person", "Ada", "age: 7")
        graph.merge("dev")
        assert content(graph)["City"] == [{"name": "Oslo"}]
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")

    def test_blame_ends_at_the_new_one(self, graph: Graph) -> None:
        drop_and_add_type(graph)
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
        assert graph.blame("City", "Rome")["name"].commit.graph_commit_id == head(graph)
