"""Mutations through the public door. What they do to rows is told in `tests/corpus/mutation`; here is the rest."""

from __future__ import annotations

import datetime as dt
import json

import pytest
from tests.write.support import ids_of, new_graph, stored

from omnigraph.errors import (
    ConstraintViolation,
    DataError,
    ParameterError,
    PreconditionFailed,
    QueryError,
    ReadOnlyGraph,
    ResourceLimit,
)
from omnigraph.graph import Graph
from omnigraph.opening import open as open_graph
from omnigraph.settings import Settings, WriteSettings

SCHEMA = """
node Person { name: String @key  age: I32?  seen: DateTime?  photo: Blob?  nums: [I32]?  floats: [F32]?  f: F32? }
node Event { what: String }
edge Knows: Person -> Person { since: Date? }
"""
ADD = "query add($n: String, $a: I32?) { insert Person { name: $n, age: $a } }"


@pytest.fixture
def graph() -> Graph:
    graph = new_graph(SCHEMA)
    graph.load('{"type": "Person", "data": {"name": "Ada", "age": 36, "photo": "base64:AAEC"}}', mode="append")
    return graph


class TestResults:
    def test_what_happened(self, graph: Graph) -> None:
        text = 'query pair() { insert Person { name: "Bo" }  insert Knows { from: "Ada", to: "Bo" } }'
        done = graph.mutate(text, actor="me")
        assert (done.branch, done.query_name, done.affected_nodes, done.affected_edges) == ("main", "pair", 1, 1)
        assert done.commit is not None
        assert (done.commit.kind, done.commit.actor_id) == ("mutation", "me")
        assert graph.commits(limit=1) == [done.commit]

    def test_as_json(self, graph: Graph) -> None:
        done = graph.mutate(ADD, {"n": "Bo"}, actor="me").as_json()
        assert json.loads(json.dumps(done)) == done
        assert done["affected_nodes"] == 1
        assert done["actor_id"] == "me"
        assert graph.mutate('query no() { delete Person where name = "x" }').as_json()["commit"] is None

    def test_a_mutation_that_changes_nothing_has_no_commit(self, graph: Graph) -> None:
        before = graph.snapshot()
        for text in (
            'query no() { delete Person where name = "nobody" }',
            "query no() { update Person set { age: 1 } where age > 100 }",
            'query no() { delete Knows where from = "Ada" }',
        ):
            done = graph.mutate(text)
            assert (done.affected_nodes, done.affected_edges, done.commit) == (0, 0, None)
        assert graph.snapshot() == before

    def test_one_of_several_queries_by_name(self, graph: Graph) -> None:
        assert graph.mutate(ADD + ADD.replace("add", "other"), {"n": "Bo"}, name="other").query_name == "other"


class TestBranches:
    def test_each_branch_has_its_own_rows(self, graph: Graph) -> None:
        graph.create_branch("review")
        graph.mutate(ADD, {"n": "Bo"}, branch="review")
        graph.branch("review").mutate(ADD, {"n": "Cy"})
        assert ids_of(graph, "node:Person") == ["Ada"]
        assert ids_of(graph, "node:Person", "review") == ["Ada", "Bo", "Cy"]


class TestConditions:
    def test_the_head_must_be_the_one_that_was_named(self, graph: Graph) -> None:
        [head] = graph.commits(limit=1)
        assert graph.mutate(ADD, {"n": "Bo"}, if_commit=head.graph_commit_id).commit is not None
        with pytest.raises(PreconditionFailed) as raised:
            graph.mutate(ADD, {"n": "Cy"}, if_commit=head.graph_commit_id)
        assert raised.value.expected == head.graph_commit_id
        assert ids_of(graph, "node:Person") == ["Ada", "Bo"]

    def test_also_when_nothing_would_change(self, graph: Graph) -> None:
        with pytest.raises(PreconditionFailed):
            graph.mutate('query no() { delete Person where name = "x" }', if_commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")


class TestRefused:
    def test_before_anything_is_read_or_written(self, graph: Graph) -> None:
        mixed = 'query q() { insert Person { name: "x" }  delete Person where name = "y" }'
        for text in (mixed, "query q() { match { $p: Person } return { $p } }", "query q( { }"):
            with pytest.raises(QueryError):
                graph.mutate(text)
        with pytest.raises(ParameterError):
            graph.mutate(ADD, {"n": 7})

    def test_all_or_nothing(self, graph: Graph) -> None:
        before = graph.snapshot()
        with pytest.raises(ConstraintViolation):
            graph.mutate('query q() { insert Event { what: "x" }  insert Knows { from: "Ada", to: "nobody" } }')
        assert graph.snapshot() == before
        assert ids_of(graph, "node:Event") == []

    def test_a_graph_that_was_opened_for_reading(self, graph: Graph) -> None:
        with pytest.raises(ReadOnlyGraph):
            open_graph(graph.address, read_only=True).mutate(ADD, {"n": "Bo"})

    def test_more_than_one_mutation_may_hold(self, graph: Graph) -> None:
        narrow = open_graph(graph.address, settings=Settings(write=WriteSettings(mutation_bytes=100)))
        with pytest.raises(ResourceLimit) as raised:
            narrow.mutate("query q($b: Blob) { update Person set { photo: $b } where age > 0 }", {"b": b"x" * 200})
        assert raised.value.limit == 100

    def test_more_than_one_mutation_may_read(self) -> None:
        settings = Settings(write=WriteSettings(mutation_bytes=50_000))
        graph = open_graph(new_graph(SCHEMA).address, settings=settings)
        people = [{"type": "Person", "data": {"name": f"p{i}", "photo": b"x" * 1000}} for i in range(100)]
        graph.load(people, mode="append")
        with pytest.raises(ResourceLimit):
            graph.mutate('query q() { update Person set { age: 1 } where name >= "p" }')
        assert graph.mutate('query q() { update Person set { age: 1 } where name = "p7" }').affected_nodes == 1

    @pytest.mark.parametrize(
        ("declared", "value"),
        [("nums: [F64]", [1.0, 2.5]), ("nums: [I64]", [2**31]), ("nums: [F64]", [1e300])],
    )
    def test_numbers_that_do_not_fit_a_list(self, graph: Graph, declared: str, value: list[float]) -> None:
        name, kind = declared.split(": ")
        with pytest.raises(DataError, match=name):
            graph.mutate(f'query q($v: {kind}) {{ insert Person {{ name: "x", {name}: $v }} }}', {"v": value})


class TestValues:
    def test_numbers_become_what_the_column_holds(self, graph: Graph) -> None:
        graph.mutate(
            "query q($n: [F64], $f: [I64], $x: I64) "
            '{ update Person set { nums: $n, floats: $f, f: $x } where name = "Ada" }',
            {"n": [1.0, -2.0], "f": [1, 2**24 + 1], "x": 2**24 + 1},
        )
        [ada] = stored(graph, "node:Person", "nums", "floats", "f")
        assert ada == {"nums": [1, -2], "floats": [1.0, 2.0**24], "f": 2.0**24}

    def test_now_is_this_moment_to_the_millisecond(self, graph: Graph) -> None:
        before = dt.datetime.now(dt.UTC)
        graph.mutate('query q() { update Person set { seen: now() } where name = "Ada" }')
        [ada] = stored(graph, "node:Person", "seen")
        assert before - dt.timedelta(milliseconds=1) <= ada["seen"] <= dt.datetime.now(dt.UTC)

    @pytest.mark.parametrize("size", [0, 3, 100_000, 5_000_000])
    def test_an_update_of_something_else_keeps_the_bytes(self, graph: Graph, size: int) -> None:
        content = b"\0\1" * (size // 2)
        graph.mutate("query q($b: Blob) { update Person set { photo: $b } where age = 36 }", {"b": content})
        graph.mutate("query q() { update Person set { age: 37 } where age = 36 }")
        graph.mutate('query q() { insert Person { name: "Bo" }  update Person set { age: 1 } where name = "Bo" }')
        [ada, bo] = stored(graph, "node:Person", "age", "photo")
        assert (ada["age"], ada["photo"]["data"]) == (37, content)
        assert (bo["age"], bo["photo"]) == (1, None)

    def test_many_rows_at_once(self) -> None:
        graph = new_graph(SCHEMA)
        graph.load(
            [{"type": "Person", "data": {"name": f"p{i}", "age": i % 10}} for i in range(2_000)], mode="append"
        )
        assert graph.mutate("query q() { update Person set { age: 99 } where age < 5 }").affected_nodes == 1_000
        assert graph.mutate("query q() { delete Person where age = 99 }").affected_nodes == 1_000
        assert graph.snapshot().tables["node:Person"].row_count == 1_000
