"""History across a change of the schema: types and properties are themselves, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evolution.cases import ADA, BOB, CITY, KNOWS, PEOPLE, Record, node
from tests.evolution.test_apply import content

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, MergeConflicts

YEARS = "name: String @key  years: I64? @rename_from(age)  city: String?  born: Date?"
HUMAN = f'node Human @rename_from("Person") {{ {YEARS} }}'
MAIL = PEOPLE.replace(" }", "  mail: String? }")
PHONE = PEOPLE.replace(" }", "  phone: String? }")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    return graph


def update(graph: Graph, type_name: str, name: str, values: str, branch: str | None = None) -> None:
    query = f'query q() {{ update {type_name} set {{ {values} }} where name = "{name}" }}'
    graph.mutate(query, branch=branch)


def changes(graph: Graph, before: str, after: str | None = None) -> list[tuple[str, str, str, tuple[str, ...]]]:
    return [(change.op.value, change.table_key, change.id, change.changed) for change in graph.diff(before, after)]


def head(graph: Graph, branch: str | None = None) -> str:
    commit = graph.snapshot(branch).graph_commit_id
    assert commit is not None
    return commit


class TestDiff:
    def test_a_change_of_the_schema_alone_changes_no_row(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(HUMAN)
        found = graph.diff(before)
        assert list(found) == []
        assert [str(step) for step in found.schema] == [
            "rename node Person to Human",
            "rename Human.age to years",
            "widen Human.years from I32? to I64?",
        ]
        assert found.as_json()["schema"][0]["kind"] == "rename_type"

    def test_rows_are_the_same_under_other_names(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(HUMAN)
        update(graph, "Human", "Ada", "years: 37")
        graph.load([{"type": "Human", "data": {"name": "Eve"}}], mode="append")
        graph.mutate('query q() { delete Human where name = "Bob" }')
        assert changes(graph, before) == [
            ("update", "node:Human", "Ada", ("years",)),
            ("delete", "node:Human", "Bob", ()),
            ("insert", "node:Human", "Eve", ()),
        ]
        (ada, *_) = graph.diff(before)
        assert ada.before is not None
        assert ada.after is not None
        assert (ada.before["years"], ada.after["years"]) == (36, 37)

    def test_a_new_property_is_a_change_where_it_has_a_value(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(MAIL)
        update(graph, "Person", "Bob", 'mail: "b@x"')
        assert changes(graph, before) == [("update", "node:Person", "Bob", ("mail",))]

    def test_rows_of_a_new_type_are_inserts(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(f"{PEOPLE} {CITY}")
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
        assert changes(graph, before) == [("insert", "node:City", "Rome", ())]

    def test_backwards_it_has_the_older_schema(self, graph: Graph) -> None:
        before = head(graph)
        graph.apply_schema(HUMAN)
        update(graph, "Human", "Ada", "years: 37")
        assert changes(graph, "main", before) == [("update", "node:Person", "Ada", ("age",))]


class TestFeed:
    def test_every_commit_has_the_schema_of_its_time(self, graph: Graph) -> None:
        start = head(graph)
        update(graph, "Person", "Ada", "age: 1")
        graph.apply_schema(HUMAN)
        update(graph, "Human", "Ada", "years: 2")
        blocks = [block for page in graph.change_pages(start=f"after:{start}") for block in page.blocks]
        found = [[(change.table_key, change.changed) for change in block.changes] for block in blocks]
        assert found == [[("node:Person", ("age",))], [], [("node:Human", ("years",))]]
        assert [block.as_json()["changes"] for block in blocks][1] == []

    def test_a_filter_follows_a_type_through_its_names(self, graph: Graph) -> None:
        start = head(graph)
        update(graph, "Person", "Ada", "age: 1")
        graph.apply_schema(f"{HUMAN} {CITY}")
        graph.load([{"type": "City", "data": {"name": "Rome"}}], mode="append")
        update(graph, "Human", "Ada", "years: 2")
        pages = graph.change_pages(start=f"after:{start}", types=["Human"])
        assert [change.id for page in pages for block in page.blocks for change in block.changes] == ["Ada", "Ada"]


class TestMerge:
    def test_rows_of_an_older_schema_are_merged_into_a_newer_one(self, graph: Graph) -> None:
        graph.create_branch("dev")
        update(graph, "Person", "Ada", "age: 40", "dev")
        graph.load([node(name="Eve", age=7)], mode="append", branch="dev")
        graph.apply_schema(HUMAN.replace(" }", "  mail: String? }"))
        update(graph, "Human", "Ada", 'city: "Oslo", mail: "a@x"')
        assert graph.merge("dev").outcome == "merged"
        assert content(graph)["Human"] == [
            {"born": "1815-12-10", "city": "Oslo", "mail": "a@x", "name": "Ada", "years": 40},
            {"born": None, "city": "Rome", "mail": None, "name": "Bob", "years": None},
            {"born": None, "city": None, "mail": None, "name": "Eve", "years": 7},
        ]
        assert graph.merge("dev").outcome == "already_up_to_date"

    def test_a_schema_that_only_the_source_changed_is_adopted(self, graph: Graph) -> None:
        graph.create_branch("dev")
        schema = f"{HUMAN} {CITY} edge Lives: Human -> City"
        graph.apply_schema(schema, branch="dev")
        records: list[Record] = [
            {"type": "City", "data": {"name": "Rome"}},
            {"edge": "Lives", "from": "Ada", "to": "Rome"},
        ]
        graph.load(records, mode="append", branch="dev")
        update(graph, "Human", "Bob", "years: 5", "dev")
        update(graph, "Person", "Ada", 'city: "Oslo"')
        plan = graph.preview_merge("dev")
        assert plan.schema[0] == "add node City"
        assert plan.changes["node:City"]["insert"] == 1
        assert graph.schema == PEOPLE
        done = graph.merge("dev")
        assert (done.outcome, graph.schema) == ("merged", schema)
        assert [commit.kind for commit in graph.commits(limit=2)] == ["merge", "schema_apply"]
        found = content(graph)
        assert [(row["name"], row["years"], row["city"]) for row in found["Human"]] == [
            ("Ada", 36, "Oslo"),
            ("Bob", 5, "Rome"),
        ]
        assert (found["City"], len(found["Lives"])) == ([{"name": "Rome"}], 1)

    def test_what_both_sides_added_is_put_together(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.apply_schema(f"{MAIL} {KNOWS}", branch="dev")
        update(graph, "Person", "Ada", 'mail: "a@x"', "dev")
        graph.load([{"edge": "Knows", "from": "Ada", "to": "Bob"}], mode="append", branch="dev")
        graph.apply_schema(PHONE)
        update(graph, "Person", "Ada", 'phone: "1"')
        assert graph.merge("dev").outcome == "merged"
        (ada, _) = content(graph)["Person"]
        assert (ada["mail"], ada["phone"]) == ("a@x", "1")
        assert len(content(graph)["Knows"]) == 1
        assert graph.plan_schema(graph.schema).steps.steps == ()

    def test_what_both_sides_added_under_one_name_is_one_property(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.apply_schema(MAIL, branch="dev")
        graph.apply_schema(MAIL)
        update(graph, "Person", "Ada", 'mail: "a@x"', "dev")
        update(graph, "Person", "Bob", 'mail: "b@x"')
        graph.merge("dev")
        assert [row["mail"] for row in content(graph)["Person"]] == ["a@x", "b@x"]

    def test_other_changes_of_both_schemas_are_conflicts_by_name(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.apply_schema(HUMAN, branch="dev")
        graph.apply_schema(MAIL)
        before = head(graph)
        with pytest.raises(MergeConflicts) as caught:
            graph.merge("dev")
        assert [(found.kind.value, found.table_key) for found in caught.value.conflicts] == [
            ("schema_conflict", "node:Human"),
            ("schema_conflict", "node:Human"),
            ("schema_conflict", "node:Human"),
        ]
        assert "rename node Person to Human" in caught.value.conflicts[0].message
        assert graph.preview_merge("dev").conflicts == caught.value.conflicts
        assert head(graph) == before

    def test_conflicts_of_rows_leave_the_schema_as_it_is(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.apply_schema(MAIL, branch="dev")
        update(graph, "Person", "Ada", "age: 1", "dev")
        update(graph, "Person", "Ada", "age: 2")
        before = head(graph)
        with pytest.raises(MergeConflicts):
            graph.merge("dev")
        assert (head(graph), graph.schema) == (before, PEOPLE)
        graph.merge("dev", resolve="theirs")
        assert (graph.schema, content(graph)["Person"][0]["age"]) == (MAIL, 1)


class TestUndo:
    def test_rows_are_undone_across_a_change_of_the_schema(self, graph: Graph) -> None:
        update(graph, "Person", "Ada", "age: 1")
        changed = head(graph)
        graph.apply_schema(HUMAN)
        graph.revert(changed)
        assert content(graph)["Human"][0]["years"] == 36

    def test_a_change_of_the_schema_is_no_change_of_rows(self, graph: Graph) -> None:
        first = head(graph)
        graph.apply_schema(HUMAN)
        with pytest.raises(InvalidArgument, match="changed the schema, not rows"):
            graph.revert(head(graph))
        with pytest.raises(InvalidArgument, match="has another schema; apply that one first"):
            graph.reset(first)


def test_blame_follows_a_property_through_its_names(graph: Graph) -> None:
    update(graph, "Person", "Ada", "age: 1")
    changed = head(graph)
    graph.apply_schema(HUMAN.replace(" }", "  mail: String? }"))
    update(graph, "Human", "Ada", 'mail: "a@x"')
    found = graph.blame("Human", "Ada")
    assert found["years"].commit.graph_commit_id == changed
    assert found["mail"].commit.graph_commit_id == head(graph)
    assert found["city"].commit.kind == "load"


def test_an_export_of_an_older_state_has_its_schema(graph: Graph, tmp_path: Path) -> None:
    before = head(graph)
    graph.export(tmp_path / "before.jsonl", ordered=True)
    graph.apply_schema(HUMAN)
    graph.export(tmp_path / "then.jsonl", at=before, ordered=True)
    assert (tmp_path / "then.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()
