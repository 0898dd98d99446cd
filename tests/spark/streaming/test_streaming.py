"""Structured Streaming into a graph: every row is there once, whatever dies, starts again or comes twice."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.drivers import kill_at, lines, run_sink, run_stream

import omnigraph
from omnigraph import failpoints
from omnigraph.errors import (
    ConstraintViolation,
    NotOnSpark,
    OmniError,
    RecordError,
    RequestError,
    SourceUnusable,
    StreamOutOfStep,
)
from omnigraph.graph import Graph
from omnigraph.spark.datasource.source import OmnigraphSource, register
from omnigraph.spark.streaming.records import read_values
from omnigraph.spark.streaming.stream import stream
from omnigraph.storage.tables import TableRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"


class Place:
    """A graph, the folder a stream reads, and its checkpoint."""

    def __init__(self, folder: Path) -> None:
        self.graph: Graph = omnigraph.init(folder / "g.omni", SCHEMA)
        self.input = folder / "input"
        self.input.mkdir()
        self.checkpoint = folder / "checkpoint"

    def give(self, name: str, *records: dict[str, Any] | str) -> None:
        """A file of input."""
        texts = [record if isinstance(record, str) else json.dumps(record) for record in records]
        (self.input / f"{name}.jsonl").write_text("".join(f"{text}\n" for text in texts))

    def give_batches(self, *names: str) -> None:
        """A file for each name: a person, and an edge without a key, which twice would be two."""
        for name in names:
            self.give(name, person(name), {"edge": "Knows", "from": name, "to": name})

    @property
    def arguments(self) -> tuple[str, str, str]:
        return self.graph.address, str(self.input), str(self.checkpoint)


def person(name: str, age: int | None = None) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def found(graph: Graph, branch: str = "main") -> tuple[list[str], list[str]]:
    """The people and the sources of the edges that are there, each as often as it is."""
    return column(graph, branch, "node:Person", "name"), column(graph, branch, "edge:Knows", "src")


def column(graph: Graph, branch: str, table_key: str, name: str) -> list[Any]:
    pin = graph.snapshot(branch).tables[table_key]
    ref = TableRef(pin.location, pin.table_branch, pin.table_version)
    values: list[Any] = graph._repository.tables.scan(ref, [name]).read_all()[name].to_pylist()
    assert len(values) == pin.row_count
    return sorted(values, key=str)


def batches(graph: Graph, branch: str = "main") -> list[str | None]:
    """The messages of the commits, oldest first, without that of the graph's creation."""
    return [commit.message for commit in graph.commits(branch)][::-1][1:]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_each_batch_is_a_commit_and_a_restart_goes_on(place: Place, spark: SparkSession) -> None:
    place.give_batches("a")
    run_stream(spark, *place.arguments)
    place.give_batches("b")
    run_stream(spark, *place.arguments)
    place.give("c", "// nothing", "")
    run_stream(spark, *place.arguments)
    place.give("d", person("a", 7), person("d"))
    run_stream(spark, *place.arguments)
    assert found(place.graph) == (["a", "b", "d"], ["a", "b"])
    assert batches(place.graph) == [f"batch {number} of stream lines" for number in (0, 1, 3)]
    assert place.graph.jobs() == []


def test_a_checkpoint_that_forgot_replays_nothing(place: Place, spark: SparkSession) -> None:
    """A copy of a checkpoint stands for a driver that died, or for a second one that runs beside the first."""
    place.give_batches("a")
    run_stream(spark, *place.arguments)
    copy = place.checkpoint.with_name("copy")
    shutil.copytree(place.checkpoint, copy)
    place.give_batches("b")
    run_stream(spark, *place.arguments)
    run_stream(spark, place.graph.address, str(place.input), str(copy))
    run_sink(spark, place.graph.address, str(place.input), str(copy))
    assert found(place.graph) == (["a", "b"], ["a", "b"])
    assert len(batches(place.graph)) == 2
    fresh = place.checkpoint.with_name("fresh")
    with pytest.raises(StreamOutOfStep, match="another checkpoint"):
        run_stream(spark, place.graph.address, str(place.input), str(fresh))
    assert place.graph.jobs() == []


def test_rows_of_one_type(place: Place, spark: SparkSession) -> None:
    place.give("a", '{"name": "a", "age": 1}', '{"name": "b", "age": 2}')
    people = spark.readStream.schema("name string, age int").json(str(place.input))
    options: dict[str, Any] = {"checkpoint": place.checkpoint, "available_now": True, "actor": "ada"}
    place.graph.stream(people, name="people", type="Person", mode="append", **options).awaitTermination()
    place.graph.create_branch("dev")
    edges = people.selectExpr("name as src", "name as dst")
    options["checkpoint"] = place.checkpoint.with_name("edges")
    place.graph.stream(edges, name="people", edge="knows", branch="dev", **options).awaitTermination()
    assert (found(place.graph), found(place.graph, "dev")) == ((["a", "b"], []), (["a", "b"], ["a", "b"]))
    assert place.graph.commits()[0].actor_id == "ada"
    place.graph.delete_branch("dev")
    place.graph.create_branch("dev")
    place.give("b", '{"name": "a"}')
    with pytest.raises(StreamOutOfStep, match="it has none of those before"):
        place.graph.stream(edges, name="people", edge="Knows", branch="dev", **options).awaitTermination()
    options["checkpoint"] = place.checkpoint.with_name("again")
    place.graph.stream(edges, name="people", edge="Knows", branch="dev", **options).awaitTermination()
    assert found(place.graph, "dev") == (["a", "b"], ["a", "a", "b"])


def test_a_batch_that_breaks_a_rule_stops_the_query(place: Place, spark: SparkSession) -> None:
    place.give_batches("a")
    run_stream(spark, *place.arguments)
    place.give("b", person("b"), '{"type": "Person"}', "{")
    with pytest.raises(RecordError) as unreadable:
        run_stream(spark, *place.arguments)
    assert [(p.source, p.line) for p in unreadable.value.problems] == [
        ("batch 1 of stream lines", n) for n in (2, 3)
    ]
    assert found(place.graph) == (["a"], ["a"])
    place.give("b", person("b"), {"edge": "Knows", "from": "b", "to": "nobody"})
    with pytest.raises(ConstraintViolation, match="nobody"):
        run_stream(spark, *place.arguments)
    with pytest.raises(Exception, match=r"ConstraintViolation: .*nobody"):
        run_sink(spark, *place.arguments)
    assert (found(place.graph), len(batches(place.graph)), place.graph.jobs()) == ((["a"], ["a"]), 1, [])
    place.give("b", person("b"))
    run_stream(spark, *place.arguments)
    assert found(place.graph) == (["a", "b"], ["a"])


def test_a_driver_that_dies_between_two_records(place: Place, spark: SparkSession) -> None:
    """In this process: the commit is there, and Spark has not written down that the batch is done."""
    place.give_batches("a", "b")

    def interrupt() -> None:
        raise OSError("out of power")

    with failpoints.armed("stream.after_commit", interrupt), pytest.raises(Exception, match="out of power"):
        run_stream(spark, *place.arguments)
    assert len(found(place.graph)[0]) == 1
    run_stream(spark, *place.arguments)
    assert found(place.graph) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(
    ("failpoint", "kind", "ended"),
    [
        ("stream.after_commit", "stream", -signal.SIGKILL),
        ("write.after_tables", "stream", -signal.SIGKILL),
        ("stream.after_commit", "sink", 1),
    ],
)
def test_a_driver_that_is_killed(place: Place, spark: SparkSession, failpoint: str, kind: str, ended: int) -> None:
    """After the commit and before Spark's checkpoint; before the commit and its mark are visible; and the process
    in which Spark lets a sink commit."""
    place.give_batches("a", "b", "c")
    assert kill_at(failpoint, kind, *place.arguments) == ended
    run_stream(spark, *place.arguments)
    assert found(place.graph) == (["a", "b", "c"], ["a", "b", "c"])
    assert batches(place.graph) == [f"batch {number} of stream lines" for number in range(3)]
    place.graph.clean_jobs()
    assert place.graph.jobs() == []


def test_the_sink(place: Place, spark: SparkSession) -> None:
    register(spark)
    place.give("a", '{"name": "a", "age": 1}', '{"name": "b", "age": 2}')
    people = spark.readStream.schema("name string, age int").json(str(place.input))

    def run() -> None:
        sink = people.repartition(3).writeStream.format("omnigraph").option("path", place.graph.address)
        sink = sink.option("type", "Person").option("stream", "people").option("mode", "merge")
        sink = sink.option("checkpointLocation", str(place.checkpoint))
        sink.trigger(availableNow=True).start().awaitTermination()

    run()
    place.give("b", '{"name": "b", "age": 3}', '{"name": "c"}')
    run()
    place.give("c", "")
    run()
    assert found(place.graph) == (["a", "b", "c"], [])
    assert column(place.graph, "main", "node:Person", "age") == [1, 3, None]
    assert batches(place.graph) == ["batch 0 of stream people", "batch 1 of stream people"]
    assert place.graph._repository.manifest.latest(None).streams["people"].batch.number == 2
    assert place.graph.jobs() == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "what is the stream called"),
        ({"stream": "s"}, "give one of type, edge and records"),
        ({"stream": "s", "type": "Person", "records": "true"}, "give one of type, edge and records"),
        ({"stream": "s", "type": "Persn"}, "did you mean `Person`"),
        ({"stream": "s", "type": "Person", "mode": "overwrite"}, "its mode is merge or append"),
        ({"stream": "s", "type": "Person", "mode": "upsert"}, "there is no mode 'upsert'"),
        ({"stream": "s", "type": "Person", "colums": "x"}, "there is no option 'colums'"),
        ({"stream": "s", "records": "yes"}, "true or false"),
        ({"stream": "s", "records": "true"}, "records come in a column 'value'"),
        ({"stream": "s", "edge": "Knows"}, "Knows has no property 'name'"),
    ],
)
def test_what_a_sink_refuses(place: Place, options: dict[str, str], said: str) -> None:
    from pyspark.sql.types import StringType, StructField, StructType

    schema = StructType([StructField("name", StringType())])
    with pytest.raises(OmniError) as raised:
        OmnigraphSource({"path": place.graph.address, **options}).streamWriter(schema, overwrite=False)
    assert said in str(raised.value)


def test_what_a_stream_refuses(place: Place, spark: SparkSession) -> None:
    frame = lines(spark, str(place.input))
    given: dict[str, Any] = {"name": "s", "checkpoint": place.checkpoint}
    for wrong, error in (
        ({}, RequestError),
        ({"records": True, "mode": "overwrite"}, RequestError),
        ({"records": True, "name": ""}, RequestError),
        ({"records": True, "branch": "nope"}, RequestError),
        ({"records": True, "available_now": True, "processing_time": "1 second"}, RequestError),
        ({"type": "Person"}, SourceUnusable),
    ):
        with pytest.raises(error):
            stream(place.graph.address, frame, **{**given, **wrong})
    with pytest.raises(SourceUnusable, match="not a streaming DataFrame"):
        place.graph.stream(spark.range(1), records=True, **given)
    memory = omnigraph.init("memory://streams", SCHEMA)
    with pytest.raises(NotOnSpark):
        memory.stream(frame, records=True, **given)
    assert not place.checkpoint.exists()


def test_records_in_rows_are_read_as_strictly_as_lines() -> None:
    import pyarrow as pa

    catalog = omnigraph.init("memory://streaming", SCHEMA).catalog
    texts = [
        '{"type":"Person","data":{"name":"a"}}\r\n',
        None,
        '{"type":\n"Person"}',
        "",
        "// c",
        "{",
        b"\xff".decode("latin1"),
    ]
    for kind in (pa.string(), pa.binary()):
        values = pa.array([text if text is None or kind == pa.string() else text.encode() for text in texts], kind)
        block = read_values(catalog, pa.record_batch({"topic": pa.nulls(7), "value": values}))
        assert [(bad.line, bad.reason.partition(";")[0]) for bad in block.unreadable] == [
            (2, "there is no record, only null"),
            (3, "a record is written on one line"),
            (6, "not JSON: Expecting property name enclosed in double quotes"),
            (7, "not JSON: Expecting value"),
        ]
        assert (block.lines, block.records["node:Person"].lines.tolist()) == (7, [1])
    assert read_values(catalog, pa.record_batch({"value": pa.array([], pa.string())})).lines == 0
