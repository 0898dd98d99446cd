"""A snapshot in a Spark session."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.stores import Store

import omnigraph
from omnigraph.errors import NotOnSpark, QueryError, RequestError
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Person { name: String @key  age: I32? }  edge Knows: Person -> Person { since: Date? }"
PEOPLE = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in (("Ada", 36), ("Bo", 20))]
KNOWS = [{"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"since": "2024-01-31"}}]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = omnigraph.init(tmp_path_factory.mktemp("sparkgraph") / "g.omni", SCHEMA)
    made.load(PEOPLE + KNOWS, mode="append")
    return made


def test_types_are_frames(graph: Graph, spark: SparkSession) -> None:
    seen = graph.spark(spark)
    assert sorted(tuple(row) for row in seen.nodes("Person", ["name", "age"]).collect()) == [
        ("Ada", 36),
        ("Bo", 20),
    ]
    assert [row.name for row in seen.nodes("Person", filter="age > 30").collect()] == ["Ada"]
    edge = seen.edges("knows").select("src", "dst", "since").first()
    assert edge is not None
    assert (edge.src, edge.dst, str(edge.since)) == ("Ada", "Bo", "2024-01-31")


def test_a_snapshot_does_not_move(graph: Graph, spark: SparkSession) -> None:
    graph.create_branch("later")
    before = graph.spark(spark, branch="later")
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append", branch="later")
    assert before.nodes("Person").count() == 2
    now = graph.spark(spark, branch="later")
    assert now.nodes("Person").count() == 3
    head = graph.snapshot("later").commit
    assert head is not None
    assert (now.snapshot.branch, now.snapshot.graph_commit_id) == ("later", head.graph_commit_id)
    assert graph.spark(spark, at=1).nodes("Person").count() == 0
    assert (
        repr(now)
        == f"SparkGraph({graph.address!r}, branch='later', manifest_version={now.snapshot.manifest_version})"
    )


def test_wrong_names_are_refused_at_once(graph: Graph, spark: SparkSession) -> None:
    seen = graph.spark(spark)
    with pytest.raises(RequestError, match="there is no node type 'Knows'; known: `Person`"):
        seen.nodes("Knows")
    with pytest.raises(RequestError, match="there is no edge type 'Know'; did you mean `Knows`"):
        seen.edges("Know")
    with pytest.raises(RequestError, match="there is no column of Person called 'agee'"):
        seen.nodes("Person", ["agee"])
    with pytest.raises(RequestError, match="the filter of Person cannot be understood"):
        seen.nodes("Person", filter="agee > 3")
    with pytest.raises(QueryError):
        seen.query("query q() { match { $p: Persn } return { $p.name } }")


def test_queries_are_frames(graph: Graph, spark: SparkSession) -> None:
    query = "query older($than: I32) { match { $p: Person\n $p.age > $than } return { $p.name as name } }"
    found = graph.spark(spark).query(query, {"than": 30})
    assert [row.name for row in found.collect()] == ["Ada"]


def test_a_graph_in_memory_is_refused(memory_store: Store, spark: SparkSession) -> None:
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    with pytest.raises(NotOnSpark):
        graph.spark(spark)


def test_files_of_a_bucket_are_read_by_the_workers(s3_store: Store, spark: SparkSession, tmp_path: Path) -> None:
    graph = omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options)
    graph.load(PEOPLE + KNOWS, mode="append")
    assert graph.spark(spark).nodes("Person").count() == 2
