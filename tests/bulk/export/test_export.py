"""Exports: whole, of one snapshot, loadable again, and gone if they fail."""

from __future__ import annotations

import io
import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import obstore
import pyarrow.parquet as pq
import pytest
from tests.bulk.everything import SCHEMA, content, difficult_things
from tests.stores import Store

import omnigraph
from omnigraph.bulk.export import parts
from omnigraph.bulk.pieces import pieces_of
from omnigraph.bulk.runner import JobEvent
from omnigraph.errors import (
    ExportRefused,
    JobCancelled,
    NotOnSpark,
    ObjectDamaged,
    OmniError,
    RequestError,
    StorageUnavailable,
)
from omnigraph.graph import Graph
from omnigraph.read.limits import Cancellation
from omnigraph.settings import BulkSettings, Settings
from omnigraph.storage.control.remote import s3_store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDS = difficult_things(60)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A graph with every type, stored in several fragments."""
    made = omnigraph.init(tmp_path_factory.mktemp("export") / "g.omni", SCHEMA)
    for start in range(0, 60, 25):
        made.load(RECORDS[start : min(start + 25, 60)], mode="append")
    made.load(RECORDS[60:], mode="append")
    return made


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def shuffled_twin(graph: Graph, place: str) -> Graph:
    """A graph with the same content, stored in another order and in other fragments."""
    stream = io.BytesIO()
    graph.export(stream)
    lines = stream.getvalue().splitlines()
    nodes = [line for line in lines if line.startswith(b'{"type')][::-1]
    twin = omnigraph.init(place, SCHEMA)
    twin.load(b"\n".join(nodes[:40]), mode="append")
    twin.load(b"\n".join(nodes[40:]), mode="append")
    twin.load(b"\n".join(line for line in lines if line.startswith(b'{"edge')), mode="append")
    return twin


def test_a_graph_comes_back_from_its_export(graph: Graph, tmp_path: Path) -> None:
    done = graph.export(tmp_path / "all.jsonl")
    assert (done.nodes, done.edges) == ({"Plain": 3, "Thing": 60}, {"Touches": 60})
    assert (done.engine, done.bytes) == ("local", (tmp_path / "all.jsonl").stat().st_size)
    again = omnigraph.init(tmp_path / "again.omni", SCHEMA)
    again.load(tmp_path / "all.jsonl", mode="overwrite")
    assert content(again) == content(graph)
    kinds = [
        json.loads(line).keys() & {"type", "edge"} for line in (tmp_path / "all.jsonl").read_bytes().splitlines()
    ]
    assert kinds == [{"type"}] * 63 + [{"edge"}] * 60


def test_parquet_has_every_value(graph: Graph, tmp_path: Path) -> None:
    done = graph.export(tmp_path / "all", format="parquet")
    assert done.files == (
        "nodes/Plain/part-00000.parquet",
        "nodes/Thing/part-00000.parquet",
        "edges/Touches/part-00000.parquet",
    )
    rows = pq.read_table(tmp_path / "all" / "nodes" / "Thing")
    assert rows.schema.metadata[b"omnigraph.table"] == b"node:Thing"
    assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, _things(graph)))


def _things(graph: Graph) -> list[dict[str, Any]]:
    pieces = pieces_of(graph.snapshot(), "node:Thing")
    return [row for piece in pieces for b in parts.whole_rows(piece) for row in b.to_pylist()]


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_directory_can_be_loaded(graph: Graph, tmp_path: Path, spark: SparkSession, form: Any) -> None:
    graph.export(f"{tmp_path}/all/", format=form)
    again = omnigraph.init(tmp_path / "again.omni", SCHEMA)
    again.load(tmp_path / "all", mode="overwrite", spark=spark)
    assert content(again) == content(graph)


def opened(graph: Graph, **sizes: int) -> Graph:
    """The same graph with other settings."""
    return omnigraph.open(graph.address, settings=Settings(bulk=BulkSettings(**sizes)))


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_equal_graphs_give_equal_bytes_in_order(graph: Graph, tmp_path: Path, form: Any) -> None:
    twin = shuffled_twin(graph, str(tmp_path / "twin.omni"))
    assert content(twin) == content(graph)
    for number, size in enumerate((128 << 20, 3000)):
        mine, theirs = tmp_path / f"mine{number}", tmp_path / f"theirs{number}"
        done = opened(graph, part_bytes=size).export(f"{mine}/", ordered=True, format=form)
        opened(twin, part_bytes=size).export(f"{theirs}/", ordered=True, format=form)
        assert files_below(mine) == files_below(theirs)
        assert (len(done.files) > 4) is (size == 3000)
        assert done.total_entities == 123


def test_an_ordered_file_is_the_parts_one_after_another(graph: Graph, tmp_path: Path) -> None:
    graph = opened(graph, part_bytes=3000)
    done = graph.export(f"{tmp_path}/parts/", ordered=True)
    graph.export(tmp_path / "one.jsonl", ordered=True)
    joined = b"".join((tmp_path / "parts" / path).read_bytes() for path in done.files)
    assert joined == (tmp_path / "one.jsonl").read_bytes()
    ids = [json.loads(line)["data"]["id"] for line in joined.splitlines()]
    assert ids == sorted(ids[:3]) + sorted(ids[3:63]) + sorted(ids[63:])


def test_blobs_are_read_a_few_at_a_time(graph: Graph, tmp_path: Path) -> None:
    whole = io.BytesIO()
    graph.export(whole)
    single = io.BytesIO()
    opened(graph, batch_bytes=1).export(single)
    assert single.getvalue() == whole.getvalue()


def test_an_export_is_of_one_snapshot(graph: Graph, tmp_path: Path) -> None:
    first = graph.snapshot(at=1)
    done = graph.export(tmp_path / "empty.jsonl", at=1)
    assert (done.manifest_version, done.graph_commit_id) == (1, first.commit and first.commit.graph_commit_id)
    assert (tmp_path / "empty.jsonl").read_bytes() == b""
    some = graph.export(tmp_path / "some.jsonl", types=["touches", "Plain"])
    assert (some.nodes, some.edges) == ({"Plain": 3}, {"Touches": 60})
    with pytest.raises(RequestError, match="there is no type 'Thin'; did you mean `Thing`"):
        graph.export(tmp_path / "none.jsonl", types=["Thin"])
    with pytest.raises(RequestError, match="'xml' is no format of an export; there are jsonl, parquet"):
        graph.export(tmp_path / "none.jsonl", format="xml")  # type: ignore[arg-type]


def test_a_graph_in_memory_can_be_exported(memory_store: Store, tmp_path: Path) -> None:
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    graph.load(RECORDS[:3], mode="append")
    assert graph.export(f"{tmp_path}/out/").total_entities == 3
    with pytest.raises(NotOnSpark):
        graph.export(f"{tmp_path}/more/", engine="spark")


def test_what_is_there_is_not_replaced_unasked(graph: Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "x.jsonl", types=["Plain"])
    with pytest.raises(ExportRefused, match="it exists; force replaces it"):
        graph.export(tmp_path / "x.jsonl")
    assert graph.export(tmp_path / "x.jsonl", force=True).total_entities == 123
    out = tmp_path / "out"
    out.mkdir()
    assert graph.export(out).files  # an empty directory is one to fill
    with pytest.raises(ExportRefused, match="it holds an export; force"):
        graph.export(out)
    (out / "_SUCCESS").unlink()
    with pytest.raises(ExportRefused, match="it holds an export that was not finished; force"):
        graph.export(out)
    graph.export(out, types=["Plain"], force=True)
    assert set(files_below(out)) == {"_SUCCESS", "nodes/Plain/part-00000.jsonl"}
    (out / "notes.txt").write_text("mine")
    with pytest.raises(ExportRefused, match=r"it holds notes\.txt, which no export wrote"):
        graph.export(out, force=True)
    assert (out / "notes.txt").exists()


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("{graph}/", "inside the graph"),
        ("{graph}/x.jsonl", "inside the graph"),
        ("{here}/no/where.jsonl", "there is no directory"),
        ("{here}/file/", "it is a file"),
        ("ftp://x/y", "exports go to local paths"),
        (" ", "names no place"),
        ("s3://bucket", "names a bucket"),
    ],
)
def test_places_that_cannot_be(graph: Graph, tmp_path: Path, place: str, said: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ExportRefused, match=said):
        graph.export(place.format(graph=graph.address, here=tmp_path), force=True)


def test_spark_writes_directories_only(graph: Graph, tmp_path: Path) -> None:
    for target in (tmp_path / "x.jsonl", io.BytesIO()):
        with pytest.raises(ExportRefused, match="Spark writes directories"):
            graph.export(target, engine="spark")
    with pytest.raises(ExportRefused, match="Parquet is written to a directory"):
        graph.export(io.BytesIO(), format="parquet")


@pytest.fixture
def damaged(graph: Graph, tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """A copy of the graph whose last table, Touches, has lost its data files: exports fail halfway."""
    copy = tmp_path_factory.mktemp("damaged") / "g.omni"
    shutil.copytree(graph.address, copy)
    for file in (copy / graph.snapshot().tables["edge:Touches"].location / "data").glob("*.lance"):
        file.unlink()
    return omnigraph.open(copy)


def test_what_fails_leaves_nothing(damaged: Graph, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    for place in (tmp_path / "x.jsonl", f"{tmp_path}/out/", kept):
        with pytest.raises(ObjectDamaged, match="it is missing"):
            damaged.export(place)
    assert list(tmp_path.iterdir()) == [kept]
    assert list(kept.iterdir()) == []


def test_a_file_that_is_replaced_stays_if_that_fails(damaged: Graph, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("old")
    with pytest.raises(ObjectDamaged):
        damaged.export(tmp_path / "x.jsonl", force=True)
    assert files_below(tmp_path) == {"x.jsonl": b"old"}


def test_an_export_can_be_cancelled_and_watched(graph: Graph, tmp_path: Path) -> None:
    events: list[JobEvent] = []
    graph.export(tmp_path / "x.jsonl", listener=events.append)
    assert (events[-1].done, events[-1].tasks, events[-1].rows) == (3, 3, 123)
    assert events[-1].bytes == (tmp_path / "x.jsonl").stat().st_size
    graph.export(f"{tmp_path}/out/", listener=events.append, ordered=True)
    assert {event.step for event in events} == {"measure", "write"}
    cancellation = Cancellation()
    cancellation.cancel()
    for place in (tmp_path / "y.jsonl", f"{tmp_path}/more/"):
        with pytest.raises(JobCancelled):
            graph.export(place, cancellation=cancellation)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.jsonl"]


def test_a_target_whose_files_do_not_arrive(graph: Graph, tmp_path: Path) -> None:
    """What a cluster does to a local path: every worker writes to its own disk."""

    def lose(event: JobEvent) -> None:
        if event.done == event.tasks:
            shutil.rmtree(tmp_path / "out" / "nodes")

    with pytest.raises(StorageUnavailable, match="give a place that all workers share"):
        graph.export(f"{tmp_path}/out/", listener=lose)
    assert list(tmp_path.iterdir()) == []


def bucket_files(store: Store, prefix: str) -> dict[str, bytes]:
    client = s3_store(store.address)
    listed = [entry["path"] for page in obstore.list(client, prefix) for entry in page]
    return {path.removeprefix(prefix): bytes(obstore.get(client, path).bytes()) for path in sorted(listed)}


def test_exports_to_a_bucket(graph: Graph, s3_store: Store, tmp_path: Path) -> None:
    prefix = uuid.uuid4().hex
    root = f"s3://bucket/{prefix}"
    for form in ("jsonl", "parquet"):
        graph.export(f"{tmp_path}/{form}/", format=form, ordered=True)
        place = f"{root}/{form}/"
        graph.export(place, format=form, ordered=True, storage_options=s3_store.options)
        assert bucket_files(s3_store, f"{prefix}/{form}/") == files_below(tmp_path / form)
    with pytest.raises(ExportRefused, match="it holds an export; force"):
        graph.export(f"{root}/jsonl/", storage_options=s3_store.options)
    graph.export(f"{root}/jsonl/", types=["Plain"], force=True, storage_options=s3_store.options)
    assert set(bucket_files(s3_store, f"{prefix}/jsonl/")) == {"_SUCCESS", "nodes/Plain/part-00000.jsonl"}
    graph.export(f"{root}/one.jsonl", storage_options=s3_store.options)
    stream = io.BytesIO()
    graph.export(stream)
    assert bucket_files(s3_store, f"{prefix}/")["one.jsonl"] == stream.getvalue()
    with pytest.raises(ExportRefused, match="it exists; force"):
        graph.export(f"{root}/one.jsonl", storage_options=s3_store.options)


def test_what_fails_leaves_nothing_in_a_bucket(damaged: Graph, s3_store: Store) -> None:
    prefix = uuid.uuid4().hex
    for place in (f"s3://bucket/{prefix}/x.jsonl", f"s3://bucket/{prefix}/out/"):
        with pytest.raises(OmniError, match="it is missing"):
            damaged.export(place, storage_options=s3_store.options)
    assert bucket_files(s3_store, prefix) == {}


def test_spark_writes_the_same_bytes(graph: Graph, tmp_path: Path, spark: SparkSession) -> None:
    for form in ("jsonl", "parquet"):
        for ordered in (False, True):
            here, there = tmp_path / f"{form}-{ordered}-here", tmp_path / f"{form}-{ordered}-there"
            graph.export(f"{here}/", format=form, ordered=ordered, engine="local")
            done = graph.export(f"{there}/", format=form, ordered=ordered, spark=spark)
            assert done.engine == "spark"
            assert files_below(here) == files_below(there)


def test_spark_takes_what_is_large(graph: Graph, tmp_path: Path, spark: SparkSession) -> None:
    assert graph.export(f"{tmp_path}/small/").engine == "local"
    graph = opened(graph, small_export=0)
    assert graph.export(f"{tmp_path}/large/").engine == "spark"
    assert graph.export(f"{tmp_path}/here/", engine="local").engine == "local"
    assert graph.export(tmp_path / "one.jsonl").engine == "local"


def test_spark_writes_to_a_bucket(s3_store: Store, tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options)
    graph.load(RECORDS, mode="append")
    prefix = uuid.uuid4().hex
    graph.export(f"s3://bucket/{prefix}/", ordered=True, engine="spark", spark=spark)
    graph.export(f"{tmp_path}/here/", ordered=True, engine="local")
    assert bucket_files(s3_store, f"{prefix}/") == files_below(tmp_path / "here")


def test_an_error_of_a_worker_is_raised_as_it_is(tmp_path: Path, spark: SparkSession) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node N { k: String @key  x: F64? }")
    graph.load([{"type": "N", "data": {"k": "a", "x": 1}}], mode="append")
    pin = graph.snapshot().tables["node:N"]
    for file in (tmp_path / "g.omni" / pin.location / "data").iterdir():
        file.unlink()
    with pytest.raises(ObjectDamaged, match="it is missing"):
        graph.export(f"{tmp_path}/out/", engine="spark", spark=spark)
    assert not (tmp_path / "out").exists()
