"""Schema changes while others write, read and merge: every write fits the schema that it is committed under."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.loading import load_by_tasks
from tests.evolution.cases import ADA, BOB, PEOPLE, node
from tests.evolution.test_apply import content
from tests.evolution.test_history import MAIL
from tests.processes import children, hear, ready, say, start_together
from tests.sampling import quick_and_long
from tests.stores import Store

import omnigraph
from omnigraph import Graph, failpoints
from omnigraph.embed.mock import MockClient
from omnigraph.errors import ConflictError, LanguageError, RecordError, SchemaChanged

YEARS = PEOPLE.replace("age: I32?", "years: I32? @rename_from(age)")
AGE = PEOPLE.replace("age: I32?", "age: I32? @rename_from(years)")
ATTEMPTS = 500
INSERT = "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", PEOPLE)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    return graph


def meanwhile(graph: Graph, schema: str, work: Callable[[], object], branch: str = "main") -> None:
    """Do some work, and change the schema once between its preparation and its commit."""
    other = omnigraph.open(graph.address)
    waiting = [schema]

    def change() -> None:
        if waiting:
            other.apply_schema(waiting.pop(), branch=branch)

    with failpoints.armed("write.after_stage", change):
        work()
    assert not waiting


class TestPreparedUnderTheOldSchema:
    def test_a_mutation_is_compiled_again(self, graph: Graph) -> None:
        meanwhile(graph, MAIL, lambda: graph.mutate(INSERT, {"n": "Eve", "a": 7}))
        assert content(graph)["Person"][-1] == {
            "age": 7,
            "born": None,
            "city": None,
            "mail": None,
            "name": "Eve",
        }

    def test_a_mutation_with_a_name_that_is_gone_is_refused(self, graph: Graph) -> None:
        with pytest.raises(LanguageError, match="age"):
            meanwhile(graph, YEARS, lambda: graph.mutate(INSERT, {"n": "Eve", "a": 7}))
        assert len(content(graph)["Person"]) == 2

    def test_records_are_read_again(self, graph: Graph) -> None:
        wide = PEOPLE.replace("I32", "F64").replace(" }", "  mail: String? }")
        meanwhile(graph, wide, lambda: graph.load([node(name="Eve", age=7)], mode="append"))
        found = content(graph)["Person"][-1]
        assert (found["name"], found["age"], found["mail"]) == ("Eve", 7.0, None)

    def test_records_with_a_name_that_is_gone_are_refused(self, graph: Graph) -> None:
        with pytest.raises(RecordError, match="age"):
            meanwhile(graph, YEARS, lambda: graph.load([node(name="Eve", age=7)], mode="append"))
        assert len(content(graph)["Person"]) == 2

    def test_records_that_can_be_read_once_are_given_back_to_the_caller(self, graph: Graph) -> None:
        records: Iterator[Any] = iter([node(name="Eve", age=7)])
        with pytest.raises(SchemaChanged, match="the schema of 'main' was changed while this write was prepared"):
            meanwhile(graph, MAIL, lambda: graph.load(records, mode="append"))
        assert len(content(graph)["Person"]) == 2

    def test_a_load_by_tasks_says_so(self, graph: Graph, tmp_path: Path) -> None:
        file = tmp_path / "more.jsonl"
        file.write_text('{"type": "Person", "data": {"name": "Eve", "age": 7}}\n')
        with pytest.raises(SchemaChanged):
            meanwhile(graph, MAIL, lambda: load_by_tasks(graph, str(file), mode="append"))
        load_by_tasks(graph, str(file), mode="append")
        assert content(graph)["Person"][-1]["age"] == 7

    def test_a_merge_is_compared_again(self, graph: Graph) -> None:
        graph.create_branch("dev")
        graph.load([node(name="Eve", age=7)], mode="append", branch="dev")
        graph.load([node(name="Zoe")], mode="append")
        meanwhile(graph, YEARS, lambda: graph.merge("dev"))
        assert [(row["name"], row["years"]) for row in content(graph)["Person"]] == [
            ("Ada", 36),
            ("Bob", None),
            ("Eve", 7),
            ("Zoe", None),
        ]

    def test_another_change_of_the_schema_is_planned_again(self, graph: Graph) -> None:
        meanwhile(graph, MAIL, lambda: graph.apply_schema(MAIL.replace("I32", "I64")))
        assert [commit.kind for commit in graph.commits(limit=2)] == ["schema_apply", "schema_apply"]
        assert content(graph)["Person"][0]["age"] == 36

    def test_vectors_are_computed_for_the_new_schema(self, tmp_path: Path) -> None:
        schema = 'node Note { slug: String @key  text: String  sense: Vector(4)? @embed("text", model="mock") }'
        begun = omnigraph.init(tmp_path / "n.omni", schema)
        with pytest.warns(UserWarning, match="stayed null"):
            begun.load([{"type": "Note", "data": {"slug": "a", "text": "words"}}], mode="append")
        graph = Graph(begun._repository, embedder=MockClient())
        renamed = schema.replace("text: String", "body: String @rename_from(text)").replace('"text"', '"body"')
        try:
            meanwhile(graph, renamed, graph.embed)
        except SchemaChanged:
            graph.embed()
        entity = graph.entity("Note", "a")
        assert entity is not None
        assert entity["sense"] is not None


def change_there_and_back(store: Store, rounds: int) -> None:
    ready()
    graph = omnigraph.open(store.uri, storage_options=store.options)
    for number in range(rounds):
        for schema in (YEARS, AGE, MAIL, PEOPLE):
            graph.apply_schema(schema)
        say(f"round {number}")
    say("done")


def write(store: Store, name: str, rounds: int) -> None:
    """Write in turn by mutation and by load, with the name that the property has just now, until each is done."""
    ready()
    graph = omnigraph.open(store.uri, storage_options=store.options)
    for number in range(rounds):
        for prop in islice(cycle(("age", "years")), ATTEMPTS):
            try:
                if number % 2:
                    graph.mutate(INSERT.replace("age:", f"{prop}:"), {"n": f"{name}{number}", "a": number})
                else:
                    graph.load([node(name=f"{name}{number}", **{prop: number})], mode="append")
            except (LanguageError, RecordError) as error:
                assert prop in str(error)  # noqa: PT017  it is about the name that the schema does not have
            except ConflictError:
                continue
            else:
                say(f"wrote {name}{number}")
                break


def merge(store: Store, rounds: int) -> None:
    ready()
    graph = omnigraph.open(store.uri, storage_options=store.options)
    for number in range(rounds):
        graph.load([node(name=f"d{number}", age=number)], mode="append", branch="dev")
        try:
            graph.merge("dev")
        except ConflictError as error:
            say(f"refused {type(error).__name__}")
        else:
            say("merged")


def read(store: Store) -> None:
    """Read until told to stop: by a name that comes and goes, and by one that stays."""
    ready()
    graph = omnigraph.open(store.uri, storage_options=store.options, read_only=True)
    least = 0
    for number in range(10_000):
        names = graph.query("query q() { match { $p: Person } return { $p.name } }").rows
        assert len(names) >= least, "a row is gone"
        least = len(names)
        try:
            found = graph.query("query q() { match { $p: Person } return { $p.name, $p.age } }").rows
            ages = {row["p.name"]: row["p.age"] for row in found}
            assert all(ages[name] == int(name[1:]) for name in ages if name[0] in "abd" and name[1:].isdigit())
        except LanguageError as error:
            assert "age" in str(error)  # noqa: PT017  it is about the name that the schema does not have
        if number % 5 == 4:
            say("read")
            if hear() == "stop":
                return


@pytest.mark.parametrize("rounds", quick_and_long(3, 15))
def test_writers_readers_and_merges_go_on(shared_store: Store, rounds: int) -> None:
    graph = omnigraph.init(shared_store.uri, PEOPLE, storage_options=shared_store.options)
    graph.load([node(**ADA), node(**BOB)], mode="append")
    graph.create_branch("dev")
    tasks = [
        (change_there_and_back, shared_store, rounds),
        (write, shared_store, "a", rounds * 4),
        (write, shared_store, "b", rounds * 4),
        (merge, shared_store, rounds * 2),
        (read, shared_store),
    ]
    with children(*tasks) as started:
        start_together(started)
        changing, first, second, merging, reading = started
        for child, count in ((first, rounds * 4), (second, rounds * 4)):
            said = [child.hear() for _ in range(count)]
            assert [line.partition(" ")[0] for line in said] == ["wrote"] * count
        merges = [merging.hear() for _ in range(rounds * 2)]
        while changing.hear() != "done":
            pass
        assert reading.hear() == "read"
        reading.say("stop")
        for child in started:
            child.join()
    assert set(merges) <= {"merged", "refused ManifestConflict", "refused SchemaChanged"}, "others may be faster"
    graph.merge("dev")
    rows = {row["name"]: row["age"] for row in content(graph)["Person"]}
    written = {f"{name}{number}": number for name in "ab" for number in range(rounds * 4)}
    brought = {f"d{number}": number for number in range(rounds * 2)}
    assert rows == {"Ada": 36, "Bob": None} | written | brought, "no write is lost, and none is there twice"
    for commit in graph.commits(limit=1000):
        for row in content(graph, commit.graph_commit_id)["Person"]:
            assert ("age" in row) != ("years" in row), "every commit has one schema or the other"
