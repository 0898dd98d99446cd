"""The changes of a graph as a stream: every commit once, in order, also if the driver is killed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles
from pyspark.sql.types import StructType
from tests.spark.drivers import changes, kill_at, run_changes

import omnigraph
from omnigraph.errors import CursorRejected, OmniError
from omnigraph.graph import Graph
from omnigraph.spark.datasource.changes import ChangeReader, ChangeSource
from omnigraph.spark.datasource.source import OmnigraphSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = """
node Person {
  name: String @key  age: I32?  big: U64?  tags: [String]?  face: Vector(2)?  born: DateTime?  photo: Blob?
}
edge Knows: Person -> Person { since: I32? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    ada = {"name": "Ada", "age": 36, "big": 2**63, "tags": ["x"], "face": [0.5, 1], "born": "1815-12-10T00:00:00Z"}
    graph.load(
        [
            {"type": "Person", "data": {**ada, "photo": "base64:AAEC"}},
            {"type": "Person", "data": {"name": "Bo"}},
            {"edge": "Knows", "from": "Ada", "to": "Bo", "data": {"id": "k1"}},
        ],
        mode="append",
        actor="act-1",
    )
    graph.mutate('query q() { update Person set { age: 37 } where name = "Ada" }')
    graph.ensure_indices()
    graph.mutate('query q() { delete Person where name = "Bo" }')
    return graph


def expected(graph: Graph, branch: str = "main") -> list[tuple[str, str, str]]:
    """The changes that the feed gives."""
    return [
        (block.cause.graph_commit_id, change.op.value, change.id)
        for page in graph.change_pages(branch, start="beginning")
        for block in page.blocks
        for change in block.changes
    ]


def drained(frame: DataFrame, folder: Path) -> list[Any]:
    """The rows of all micro-batches up to now. Called again with the same folder, it goes on."""
    rows: list[Any] = []
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writer.option("checkpointLocation", str(folder)).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


def test_changes_of_all_types(graph: Graph, spark: SparkSession, tmp_path: Path) -> None:
    rows = drained(changes(spark, graph.address), tmp_path / "checkpoint")
    assert sorted((row.graph_commit_id, row.op, row.id) for row in rows) == sorted(expected(graph))
    (update,) = [row for row in rows if row.op == "update"]
    before, after = json.loads(update.before), json.loads(update.after)
    assert (update.kind, update.type, update.changed, before["age"], after["age"]) == (
        "node",
        "Person",
        ["age"],
        36,
        37,
    )
    assert (after["photo"], after["born"]) == ("base64:AAEC", "1815-12-10T00:00:00.000Z")
    edge = next(row for row in rows if row.kind == "edge" and row.op == "insert")
    assert json.loads(edge.after) == {"id": "k1", "src": "Ada", "dst": "Bo", "since": None}
    assert (edge.before, edge.actor_id, edge.manifest_version) == (None, "act-1", 2)
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append")
    assert [row.id for row in drained(changes(spark, graph.address), tmp_path / "checkpoint")] == ["Cy"]


def test_changes_of_one_type_have_its_columns(graph: Graph, spark: SparkSession, tmp_path: Path) -> None:
    rows = drained(changes(spark, graph.address, type="Person"), tmp_path / "checkpoint")
    assert sorted((row._op, row.id, row.age) for row in rows) == [
        ("delete", "Bo", None),
        ("insert", "Ada", 36),
        ("insert", "Bo", None),
        ("update", "Ada", 37),
    ]
    (ada,) = [row for row in rows if row._op == "update"]
    assert (int(ada.big), ada.tags, ada.face, bytes(ada.photo)) == (2**63, ["x"], [0.5, 1.0], b"\x00\x01\x02")
    assert (ada._changed, ada._graph_commit_id) == (["age"], graph.commits()[2].graph_commit_id)
    edges = drained(changes(spark, graph.address, edge="Knows"), tmp_path / "edges")
    assert sorted((row._op, row.src, row.dst) for row in edges) == [
        ("delete", "Ada", "Bo"),
        ("insert", "Ada", "Bo"),
    ]


def test_a_driver_that_is_killed_goes_on_where_it_was(graph: Graph, spark: SparkSession, tmp_path: Path) -> None:
    """A micro-batch whose output is written and which Spark has not recorded comes once more, the same."""
    out = tmp_path / "out"
    out.mkdir()
    arguments = (graph.address, str(out), str(tmp_path / "checkpoint"))
    assert kill_at("stream.after_commit", "changes", *arguments) == -signal.SIGKILL
    killed = {path.name: path.read_text() for path in out.iterdir()}
    assert list(killed) == ["0.json"]
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append")
    run_changes(spark, *arguments)
    assert (out / "0.json").read_text() == killed["0.json"]
    rows = [
        row
        for number in range(len(list(out.iterdir())))
        for row in json.loads((out / f"{number}.json").read_text())
    ]
    assert [(row["graph_commit_id"], row["op"], row["id"]) for row in rows] == expected(graph)


def reader(graph: Graph, **options: str) -> ChangeReader:
    return ChangeReader(ChangeSource.of({"path": graph.address, **options}))


def ids(reader: ChangeReader, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
    """The ids that all tasks of a micro-batch read, in their order."""
    parts = reader.partitions(start, end)
    return [value for part in parts for batch in reader.read(part) for value in batch.column("id").to_pylist()]


def test_a_query_that_starts_now_has_its_place_in_the_checkpoint_first(graph: Graph) -> None:
    """Its first micro-batch is empty: one that is repeated after a restart could not know what now was."""
    first = reader(graph, start="now")
    begin = first.initialOffset()
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append")
    assert first.latestOffset(begin, ReadAllAvailable()) == begin
    restarted = reader(graph, start="now")
    assert restarted.partitions(restarted.initialOffset(), begin) == []
    end = restarted.latestOffset(begin, ReadAllAvailable())
    assert ids(restarted, begin, end) == ["Cy"]


def test_micro_batches_have_so_many_commits(graph: Graph) -> None:
    stream = reader(graph, start="beginning", commits="2")
    begin, seen = stream.initialOffset(), []
    stream.prepareForTriggerAvailableNow()
    graph.load([{"type": "Person", "data": {"name": "too late"}}], mode="append")
    while (end := stream.latestOffset(begin, stream.getDefaultReadLimit())) != begin:
        seen.append(ids(stream, begin, end))
        begin = end
    assert seen == [["Ada", "Bo", "k1"], ["Ada"], ["Bo", "k1"]]
    assert stream.latestOffset(begin, ReadMaxFiles(9)) == begin != stream.reportLatestOffset()


def test_a_stream_goes_on_from_a_baseline(graph: Graph, tmp_path: Path) -> None:
    cursor = graph.baseline(tmp_path / "baseline.jsonl", types=["Person"]).resume_cursor
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append")
    graph.mutate('query q() { delete Person where name = "Ada" }')
    stream = reader(graph, cursor=cursor, type="Person")
    begin = stream.initialOffset()
    assert ids(stream, begin, stream.latestOffset(begin, ReadAllAvailable())) == ["Cy", "Ada"]
    with pytest.raises(CursorRejected, match="another filter"):
        reader(graph, cursor=cursor).initialOffset()


def test_a_branch_with_what_it_inherits(graph: Graph) -> None:
    graph.create_branch("dev")
    graph.load([{"type": "Person", "data": {"name": "Cy"}}], mode="append", branch="dev")
    stream = reader(graph, branch="dev", start="beginning")
    begin = stream.initialOffset()
    end = stream.latestOffset(begin, ReadAllAvailable())
    assert ids(stream, begin, end) == [change[2] for change in expected(graph, "dev")]
    graph.delete_branch("dev")
    graph.create_branch("dev")
    with pytest.raises(CursorRejected, match="its branch was deleted"):
        reader(graph, branch="dev", start="beginning").partitions(begin, end)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"start": "yesterday"}, "now, beginning or after:COMMIT"),
        ({"start": "now", "cursor": "x"}, "not both"),
        ({"start": "now", "type": "Person", "edge": "Knows"}, "not both"),
        ({"start": "now", "type": "Persn"}, "did you mean `Person`"),
        ({"start": "now", "branch": "nope"}, "there is no branch 'nope'"),
        ({"start": "now", "commits": "0"}, "how many commits"),
        ({"start": "now", "snapshot": "3"}, "there is no option 'snapshot'"),
    ],
)
def test_what_is_refused(graph: Graph, options: dict[str, str], said: str) -> None:
    with pytest.raises(OmniError, match=said):
        OmnigraphSource({"path": graph.address, **options}).schema()


def test_a_stream_needs_a_start_and_a_start_needs_a_stream(graph: Graph) -> None:
    typed = OmnigraphSource({"path": graph.address, "type": "Person"})
    with pytest.raises(OmniError, match=r"give option\('start'"):
        typed.streamReader(StructType())
    started = OmnigraphSource({"path": graph.address, "start": "now"})
    with pytest.raises(OmniError, match=r"spark\.readStream"):
        started.reader(StructType())
    with pytest.raises(OmniError, match="leave it out"):
        started.streamReader(StructType())
    memory = omnigraph.init("memory://changes", SCHEMA)
    with pytest.raises(OmniError, match="memory"):
        OmnigraphSource({"path": memory.address, "start": "now"}).schema()
