"""Graphs as a data source of Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.bulk.everything import SCHEMA, difficult_things

import omnigraph
from omnigraph.errors import InvalidAddress, OmniError, RequestError
from omnigraph.graph import Graph
from omnigraph.spark.datasource.source import OmnigraphSource, register
from omnigraph.spark.frames import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A graph in several fragments, with a branch that has more."""
    made = omnigraph.init(tmp_path_factory.mktemp("source") / "g.omni", SCHEMA)
    records = difficult_things(20)
    made.load(records[:11], mode="append")
    made.load(records[11:], mode="append")
    made.create_branch("more")
    made.load([{"type": "Plain", "data": {"note": "new"}}], mode="append", branch="more")
    return made


def read(spark: SparkSession, graph: Graph, **options: str) -> DataFrame:
    register(spark)
    return spark.read.format("omnigraph").options(**options).load(graph.address)


def test_every_type_of_property_reaches_spark(graph: Graph, spark: SparkSession) -> None:
    frame = read(spark, graph, type="Thing")
    pinned = graph.snapshot()
    wanted = table_frame(spark, pinned, "node:Thing")
    assert frame.dtypes == wanted.dtypes
    assert sorted(map(repr, frame.collect())) == sorted(map(repr, wanted.collect()))
    assert dict(frame.dtypes)["u64"] == "decimal(20,0)"
    row = frame.where("name like '00003%'").select("u64", "vector", "blob", "at").first()
    assert row is not None
    assert (int(row.u64), len(row.vector), len(row.blob), row.at.year) == (2**64 - 4, 3, 3, 2024)


def test_filters_do_not_leak_between_uses(graph: Graph, spark: SparkSession) -> None:
    frame = read(spark, graph, edge="Touches")
    assert (frame.count(), frame.where("weight < 1").count(), frame.count()) == (20, 3, 20)
    both = frame.where("weight = 0").union(frame.where("weight > 6"))
    assert sorted(row.weight for row in both.collect()) == [0.0, 19 / 3]


def test_columns_and_filter_say_what_is_read(graph: Graph, spark: SparkSession) -> None:
    frame = read(spark, graph, edge="touches", columns="dst, weight", filter="weight >= 6")
    assert frame.columns == ["dst", "weight"]
    assert sorted(row.weight for row in frame.collect()) == [6.0, 19 / 3]
    assert read(spark, graph, type="Thing", filter="flag and not flag").count() == 0


def test_a_frame_stays_at_its_snapshot(tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node N { k: String @key }")
    assert read(spark, graph, type="N").collect() == []
    first = graph.load([{"type": "N", "data": {"k": "a"}}], mode="append").commit
    assert first is not None
    before = read(spark, graph, type="N")
    graph.create_branch("b")
    graph.load([{"type": "N", "data": {"k": "b"}}], mode="append", branch="b")
    graph.load([{"type": "N", "data": {"k": "c"}}], mode="append")
    assert [row.k for row in before.collect()] == ["a"]
    for options, wanted in (
        ({}, ["a", "c"]),
        ({"branch": "b"}, ["a", "b"]),
        ({"snapshot": first.graph_commit_id}, ["a"]),
        ({"snapshot": "1"}, []),
    ):
        assert sorted(row.k for row in read(spark, graph, type="N", **options).collect()) == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"type": "Thin"}, "there is no node type 'Thin'; did you mean `Thing`?"),
        ({"edge": "Thing"}, "there is no edge type 'Thing'; known: `Touches`"),
        ({"typ": "Thing"}, "there is no option 'typ'; did you mean `type`?"),
        ({}, "which type?"),
        ({"type": "Thing", "edge": "Touches"}, "which type?"),
        ({"type": "Thing", "columns": "id,u46"}, "called 'u46'; did you mean `u64`?"),
        ({"type": "Thing", "columns": " , "}, "no column of Thing is asked for"),
        ({"type": "Thing", "filter": "nope = 1"}, "the filter of Thing cannot be understood: nope = 1"),
        ({"type": "Thing", "branch": "mian"}, "there is no branch 'mian'; did you mean 'main'?"),
        ({"type": "Thing", "snapshot": "99"}, "there is no manifest version 99"),
    ],
)
def test_wrong_options_are_named(graph: Graph, options: dict[str, str], said: str) -> None:
    with pytest.raises(RequestError) as raised:
        OmnigraphSource({"path": graph.address, **options}).schema()
    assert said in str(raised.value)


def test_graphs_that_spark_cannot_reach() -> None:
    with pytest.raises(RequestError, match="which graph"):
        OmnigraphSource({"type": "Thing"}).schema()
    with pytest.raises(InvalidAddress):
        OmnigraphSource({"path": "ftp://x", "type": "Thing"}).schema()


def test_spark_shows_what_is_wrong(graph: Graph, spark: SparkSession) -> None:
    with pytest.raises(Exception, match="there is no node type 'Thin'; did you mean `Thing`"):
        read(spark, graph, type="Thin")
    register(spark)
    reader = spark.read.format("omnigraph").schema("id string, flag string").options(type="Thing")
    with pytest.raises(Exception, match="'flag string' is none of id string"):
        reader.load(graph.address).collect()


def test_a_schema_says_which_columns_are_read(graph: Graph, spark: SparkSession) -> None:
    register(spark)
    reader = spark.read.format("omnigraph").schema("weight double, dst string").options(edge="Touches")
    frame = reader.load(graph.address)
    assert frame.columns == ["weight", "dst"]
    assert sorted(row.weight for row in frame.where("weight >= 6").collect()) == [6.0, 19 / 3]


def test_the_rows_of_a_query_are_a_frame(graph: Graph, spark: SparkSession) -> None:
    text = "query q($least: F64) { match { $t: Thing $t $e: touches $o $e.weight >= $least } return { %s } }"
    frame = read(spark, graph, query=text % "$e.weight as w, $o.u64", params='{"least": 6}', branch="more")
    assert frame.dtypes == [("w", "double"), ("o.u64", "decimal(20,0)")]
    rows = graph.query(text % "$e.weight as w, $o.u64", {"least": 6}).rows
    assert [(row.w, int(row[1])) for row in frame.collect()] == [(row["w"], row["o.u64"]) for row in rows]
    for options, said in (
        ({"query": "query q() { match { $t: Thin } return { $t } }"}, "Thin"),
        ({"query": text % "$e.weight as w"}, "least"),
        ({"query": text % "$e.weight as w", "params": "[6]"}, "the option 'params' is a JSON object"),
        ({"query": text % "$e.weight as w, $o.u64 as w", "params": '{"least": 6}'}, "one name"),
        ({"query": text % "$e.weight as w", "type": "Thing"}, "there is no option 'type'"),
    ):
        with pytest.raises(OmniError, match=said):
            OmnigraphSource({"path": graph.address, **options}).schema()
