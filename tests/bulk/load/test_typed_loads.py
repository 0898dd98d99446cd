"""Rows by type, from Parquet and DataFrames, and sources in buckets."""

from __future__ import annotations

import datetime as dt
import gzip
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.everything import SCHEMA as EVERY_TYPE
from tests.bulk.everything import difficult_things
from tests.bulk.loading import (
    edge,
    left_behind,
    load_by_tasks,
    new_graph,
    node,
    rows_of,
    small_slices,
    text_of,
    write,
)
from tests.stores import Store

import omnigraph
from omnigraph.errors import ConstraintViolation, InvalidArgument, RecordError, RequestError, SourceUnusable
from omnigraph.graph import Graph
from omnigraph.settings import Settings
from omnigraph.storage.control.remote import s3_store as client_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Person {
  name: String @key  mail: String? @unique  age: I32?  big: U64?  score: F32?  day: Date?  at: DateTime?
  tags: [String]?  face: Vector(2)?  photo: Blob?
}
node Event { title: String? }
edge Knows: Person -> Person { since: Date? }
"""
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, tzinfo=dt.UTC)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph that cuts the files of a load as small as they can be cut."""
    return new_graph(tmp_path / "g", SCHEMA, settings=small_slices(1))


def parquet(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


def rows(graph: Graph, table_key: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[c] for c in columns) for row in rows_of(graph)[table_key]]


def test_a_directory_of_nodes_and_edges(graph: Graph, tmp_path: Path) -> None:
    """Files of both formats, in folders by type; each type may have several."""
    folder = tmp_path / "in"
    parquet(folder / "nodes/Person/1.parquet", name=["a", "b", "c"], age=[1, None, 3])
    parquet(folder / "nodes/Person/2.parquet", name=["d"], day=[DAY], tags=[["x", "y"]])
    parquet(
        folder / "edges/Knows.parquet", **{"from": ["a", "d"], "to": ["b", "e"], "since": ["2024-02-29", None]}
    )
    parquet(folder / "nodes/Event/x.parquet", title=pa.array([], pa.string()))
    write(folder / "more.jsonl", [node("Person", name="e"), edge("Knows", "e", "a")])
    done = load_by_tasks(graph, folder, mode="append")
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 5}, {"Knows": 3})
    assert rows(graph, "node:Person", "id", "age", "day", "tags") == [
        ("a", 1, None, None),
        ("b", None, None, None),
        ("c", 3, None, None),
        ("d", None, DAY, ["x", "y"]),
        ("e", None, None, None),
    ]
    assert sorted(rows(graph, "edge:Knows", "src", "dst", "since")) == [
        ("a", "b", DAY),
        ("d", "e", None),
        ("e", "a", None),
    ]
    assert left_behind(graph) == []


def test_parquet_by_type(graph: Graph, tmp_path: Path) -> None:
    people = parquet(tmp_path / "people" / "x.parquet", name=["a", "b"])
    knows = parquet(tmp_path / "k.parquet", src=["a"], dst=["b"], id=["k1"])
    done = load_by_tasks(graph, nodes={"Person": people.parent}, edges={"knows": knows}, mode="merge")
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 2}, {"Knows": 1})
    assert rows(graph, "edge:Knows", "id", "src", "dst") == [("k1", "a", "b")]
    with pytest.raises(RequestError, match="there is no node type 'Persn'; did you mean `Person`"):
        load_by_tasks(graph, nodes={"Persn": people}, mode="merge")
    with pytest.raises(SourceUnusable, match="Event has no property 'name'; its columns are id, title"):
        load_by_tasks(graph, nodes={"Event": people}, mode="merge")


def test_rows_that_are_wrong_are_named_by_file_and_row(graph: Graph, tmp_path: Path) -> None:
    ages = parquet(
        tmp_path / "nodes/Person/1.parquet", name=["a", "b", "c", "d", None], age=[1, 2**40, 3, 4, -(2**40)]
    )
    with pytest.raises(RecordError) as unreadable:
        load_by_tasks(graph, tmp_path / "nodes", mode="append")
    problems = unreadable.value.problems
    assert [(p.source, p.line, p.message) for p in problems] == [
        (str(ages), 2, "Person.age is I32?: 1099511627776 exceeds I32 range"),
        (str(ages), 5, "Person.age is I32?: -1099511627776 exceeds I32 range"),
    ]
    mails = parquet(tmp_path / "nodes/Person/1.parquet", name=["a", "b", "c", "d"], mail=["x", "y", "z", "y"])
    again = parquet(tmp_path / "nodes/Person/2.parquet", name=["e", "f"], mail=[None, "z"])
    with pytest.raises(ConstraintViolation) as broken:
        load_by_tasks(graph, tmp_path / "nodes", mode="append")
    assert [(v.source, v.line, v.row_id) for v in broken.value.violations] == [
        (str(mails), 4, "d"),
        (str(again), 2, "f"),
    ]


def test_what_is_exported_as_parquet_is_loaded_back(tmp_path: Path) -> None:
    origin = new_graph(tmp_path / "origin", EVERY_TYPE, difficult_things(25))
    origin.export(tmp_path / "out", format="parquet")
    graph = new_graph(tmp_path / "g", EVERY_TYPE)
    load_by_tasks(graph, tmp_path / "out", mode="overwrite")
    assert rows_of(graph) == rows_of(origin)


PEOPLE = (
    "name string, age bigint, big decimal(20,0), score double, day date, at timestamp, tags array<string>, "
    "face array<double>, photo binary"
)


def test_dataframes(graph: Graph, spark: SparkSession) -> None:
    """Spark's own types: bigint, decimal, double, date, timestamp, arrays, binary."""
    first = ("a", 7, Decimal(2**64 - 1), 0.5, DAY, NOON, ["x"], [1.0, 2.0], bytearray(b"\x00"))
    people = spark.createDataFrame([first, ("b", *[None] * 8)], PEOPLE).repartition(2)
    knows = spark.createDataFrame([("a", "b", DAY), ("b", "a", None)], "src string, dst string, since date")
    done = graph.load(nodes={"Person": people}, edges={"Knows": knows}, mode="append", spark=spark)
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 2}, {"Knows": 2})
    columns = ("id", "age", "big", "day", "at", "tags", "photo")
    assert rows(graph, "node:Person", *columns) == [
        ("a", 7, 2**64 - 1, DAY, NOON, ["x"], b"\x00"),
        ("b", *[None] * 6),
    ]
    assert sorted(rows(graph, "edge:Knows", "src", "dst", "since")) == [("a", "b", DAY), ("b", "a", None)]
    assert left_behind(graph) == []


def test_dataframes_that_are_wrong(graph: Graph, tmp_path: Path, spark: SparkSession) -> None:
    people = spark.createDataFrame([("a", "x"), ("b", "x")], "name string, mail string").coalesce(1)
    with pytest.raises(ConstraintViolation) as raised:
        graph.load(nodes={"Person": people}, mode="append", spark=spark)
    assert [(v.rule, v.row_id, v.line) for v in raised.value.violations] == [("unique", "b", None)]
    for frame, said in (
        (people.selectExpr("name as title", "mail"), "Event has no property 'mail'"),
        ("nothing", "there is no such file or directory"),
    ):
        with pytest.raises(SourceUnusable, match=said):
            graph.load(nodes={"Event": frame}, mode="append", spark=spark)
    with pytest.raises(InvalidArgument, match=r"its rows are files, .* not int 7"):
        graph.load(nodes={"Event": 7}, mode="append", spark=spark)
    assert left_behind(graph) == []


@pytest.fixture
def in_bucket(s3_store: Store, tmp_path: Path) -> str:
    """A folder of a bucket with records in every format."""
    client, prefix = client_of(s3_store.address), f"{s3_store.address.prefix}-in"
    lines = text_of([node("Person", name=f"p{index:03}-é") for index in range(300)])
    obstore.put(client, f"{prefix}/a.jsonl", lines.encode())
    obstore.put(client, f"{prefix}/b.jsonl.gz", gzip.compress(text_of([edge("Knows", "p000-é", "q")]).encode()))
    people = parquet(tmp_path / "q.parquet", name=["q"], at=[NOON])
    obstore.put(client, f"{prefix}/nodes/Person/q.parquet", people)
    return f"s3://bucket/{prefix}"


def test_from_a_bucket_into_a_bucket(s3_store: Store, in_bucket: str, spark: SparkSession) -> None:
    settings = Settings(bulk=small_slices(5000))
    graph = omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options, settings=settings)
    done = graph.load(in_bucket, mode="append", spark=spark)
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 301}, {"Knows": 1})
    assert rows(graph, "edge:Knows", "src", "dst") == [("p000-é", "q")]
    bad = f"{in_bucket}-bad.jsonl"
    again = graph.load(f"{in_bucket}/*.gz", mode="append", spark=spark, skip_bad=True, bad_records=bad)
    assert dict(again.edges) == {"Knows": 1}
    client = client_of(s3_store.address)
    assert obstore.get(client, bad.removeprefix("s3://bucket/")).bytes() == b""
    assert graph.jobs() == []


def test_from_a_bucket_into_a_graph_on_disk(
    tmp_path: Path, s3_store: Store, in_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph has no settings for buckets, so those of the environment count."""
    graph = new_graph(tmp_path / "g", SCHEMA)
    for variable, value in s3_store.environment().items():
        monkeypatch.setenv(variable, value)
    places = [f"{in_bucket}/a.jsonl", f"{in_bucket}/b*", f"{in_bucket}/nodes/"]
    done = load_by_tasks(graph, places, mode="append")
    assert (dict(done.nodes), dict(done.edges)) == ({"Person": 301}, {"Knows": 1})
    with pytest.raises(SourceUnusable, match="no such object or prefix"):
        load_by_tasks(graph, f"{in_bucket}/none.jsonl", mode="append")
