"""Embeddings in jobs: batched, tried again, kept within the job, never too many at a time, and one commit."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.embed.server import EmbeddingServer, Reply, embedding_server
from tests.write.support import base_of

import omnigraph
from omnigraph.bulk.embed.requests import EmbedCounts, EmbedResult, embed_targets
from omnigraph.bulk.embed.tasks import EmbedTask, embed_piece
from omnigraph.bulk.jobs import destination
from omnigraph.bulk.pieces import pieces_of
from omnigraph.bulk.runner import JobEvent
from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.mock import MockClient
from omnigraph.embed.resumable import resumable
from omnigraph.errors import EmbeddingUnavailable, NotOnSpark, OmniError
from omnigraph.failpoints import armed
from omnigraph.graph import Graph
from omnigraph.recovery.jobs import JobRecord, announce
from omnigraph.settings import BulkSettings, Settings
from omnigraph.spark.runner import SparkRunner
from omnigraph.storage import layout
from omnigraph.write.base import Base

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
node Doc {
  slug: String @key  title: String?  body: String?  tags: [String]?
  meaning: Vector(8)? @embed("title")  gist: Vector(4)? @embed("body")
}
node Picture { slug: String @key  caption: String  raw: Blob?  sense: Vector(4)? @embed("caption") }
edge Cites: Doc -> Doc
"""
COUNT = 240
GIVEN = [1.0] + [0.0] * 7


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as running:
        yield running


def doc(number: int) -> dict[str, Any]:
    """Every third document has no title, every seventh brings its vector; all have a body."""
    data: dict[str, Any] = {"slug": f"d{number:04}", "body": f"body {number}", "tags": ["t", f"{number}"]}
    if number % 3:
        data["title"] = f"title {number}"
    if number % 7 == 0:
        data["meaning"] = GIVEN
    return {"type": "Doc", "data": data}


def without_vectors(place: Path) -> Graph:
    """A graph of several fragments that was loaded before there was a provider."""
    graph = omnigraph.init(place, SCHEMA)
    for start in range(0, COUNT, 60):
        with pytest.warns(UserWarning, match="stayed null"):
            graph.load([doc(number) for number in range(start, start + 60)], mode="append")
    return graph


TASKS = BulkSettings(small_embedding=0, embedded_rows_per_task=100)
"""Settings with which so few rows are filled by several tasks."""


def with_client(graph: Graph, server: EmbeddingServer, settings: BulkSettings = TASKS) -> Graph:
    client = server.client(limits=BatchLimits(16, 10_000), concurrency=2)
    return Graph(graph._repository, embedder=client, settings=Settings(bulk=settings))


def rows(graph: Graph, branch: str = "main") -> dict[str, dict[str, Any]]:
    """The documents with their row ids, by slug."""
    base = base_of(graph, branch)
    found = base.repository.tables.scan(base.ref("node:Doc"), row_ids=True).read_all().to_pylist()
    return {row["slug"]: row for row in found}


def files_of_jobs(graph: Graph) -> set[str]:
    return {path.name for path in Path(graph.address).rglob("data/*.lance") if path.name.count("-") == 2}


def check_filled(graph: Graph, before: dict[str, dict[str, Any]], branch: str = "main") -> None:
    """All vectors that can be there are, and nothing else of the rows has changed, row ids included."""
    after = rows(graph, branch)
    assert after.keys() == before.keys()
    for slug, row in after.items():
        for source, name, dimension in (("title", "meaning", 8), ("body", "gist", 4)):
            kept = before[slug].pop(name)
            found = row.pop(name)
            if kept is None and row[source] is not None:
                kept = MockClient().embed([row[source]], dimension, "document")[0]
            np.testing.assert_allclose(found, kept, atol=1e-6) if kept is not None else None
            assert (found is None) == (kept is None)
        assert row == before[slug]


def test_a_load_on_spark(spark: SparkSession, server: EmbeddingServer, tmp_path: Path) -> None:
    for part in range(2):
        lines = (json.dumps(doc(number)) for number in range(part, COUNT, 2))
        (tmp_path / f"{part}.jsonl").write_text("\n".join(lines))
    server.replies, server.delay = [Reply(429), Reply(500), Reply(drops=True)], 0.03
    graph = with_client(omnigraph.init(tmp_path / "g.omni", SCHEMA), server)
    files = [tmp_path / f"{part}.jsonl" for part in range(2)]
    done = graph.load(files, mode="append", engine="spark", spark=spark)
    assert (done.nodes, done.warnings) == ({"Doc": COUNT}, ())
    found = rows(graph)
    assert all(row["gist"] is not None for row in found.values())
    assert found["d0001"]["meaning"] == pytest.approx(
        MockClient().embed(["title 1"], 8, "document")[0].tolist(), abs=1e-6
    )
    assert found["d0007"]["meaning"] == GIVEN
    wanting = sum(number % 3 > 0 and number % 7 > 0 for number in range(COUNT)) + COUNT
    assert len(server.texts) <= wanting + 3 * 16
    assert len(set(server.texts)) == wanting
    assert server.most_in_flight == 2, "two tasks share the two turns of the machine"
    assert list((tmp_path / "g.omni" / "__jobs").rglob("*")) == []


def a_job(name: str, base: Base) -> JobRecord:
    locations = tuple(pin.location for pin in base.snapshot.tables.values())
    return JobRecord(name, "embed", "main", None, locations, None, dt.datetime.now(dt.UTC))


def test_a_task_that_died_is_not_paid_for_again(
    spark: SparkSession, server: EmbeddingServer, tmp_path: Path
) -> None:
    graph = with_client(without_vectors(tmp_path / "g.omni"), server)
    base = base_of(graph)
    pinned = base.snapshot
    [target] = embed_targets(graph.catalog, ["Doc"], None, recompute=False)
    good = destination(base, base.branch, "node:Doc")
    (tmp_path / "nowhere").touch()
    bad = replace(good, folder=str(tmp_path / "nowhere"))
    runner = SparkRunner(spark)
    announce(graph._repository.objects, a_job(runner.job, base))
    client = resumable(graph._embedder(), pinned.address, layout.job_folder(runner.job))
    assert client is not None
    tasks = [EmbedTask(piece, target, bad, runner.job, client) for piece in pieces_of(pinned, "node:Doc", 100)]
    assert len(tasks) > 1
    with pytest.raises(OmniError, match="nowhere"):
        runner.run("embedding", embed_piece, tasks)
    assert len(server.texts) == COUNT + sum(number % 3 > 0 and number % 7 > 0 for number in range(COUNT))
    server.forget()
    done = runner.run("embedding", embed_piece, [replace(task, destination=good) for task in tasks])
    assert server.asked == []
    assert sum(file.staged.rows for one in done for file in one.files) == COUNT


@pytest.mark.parametrize("engine", [pytest.param("spark", marks=pytest.mark.long), "local", "memory"])
def test_both_engines_fill_the_same(
    engine: str,
    request: pytest.FixtureRequest,
    server: EmbeddingServer,
    tmp_path: Path,
) -> None:
    settings = BulkSettings() if engine == "memory" else TASKS
    graph = with_client(without_vectors(tmp_path / "g.omni"), server, settings)
    graph.create_branch("fork")
    before, events = rows(graph), list[JobEvent]()
    options: dict[str, Any] = {"engine": "spark" if engine == "spark" else "local", "listener": events.append}
    if engine == "spark":
        options["spark"] = request.getfixturevalue("spark")
    branch = "fork" if engine == "spark" else "main"
    done: EmbedResult = graph.embed(types=["Doc"], branch=branch, **options)
    assert done.counts == {
        "Doc.gist": EmbedCounts(COUNT, 0, 0),
        "Doc.meaning": EmbedCounts(
            sum(number % 3 > 0 and number % 7 > 0 for number in range(COUNT)),
            len(range(0, COUNT, 7)),
            sum(number % 3 == 0 and number % 7 > 0 for number in range(COUNT)),
        ),
    }
    assert done.engine == options["engine"]
    assert done.commit is not None
    assert done.commit.kind == "embed"
    check_filled(graph, before, branch)
    assert events[-1].rows >= COUNT or engine == "memory"
    assert graph.jobs() == []
    server.forget()
    assert graph.embed(types=["Doc"], branch=branch, **options).commit is None
    assert server.asked == []
    again = graph.embed(types=["Doc"], branch=branch, properties=["gist"], reembed=True, **options)
    assert again.counts == {"Doc.gist": EmbedCounts(COUNT, 0, 0)}
    assert len(server.texts) == COUNT
    if branch == "fork":
        assert all(row["gist"] is None for row in rows(graph).values())


def test_others_write_meanwhile(server: EmbeddingServer, tmp_path: Path) -> None:
    """Pieces that did not change stay as they are; of the others only new texts are sent."""
    plain = without_vectors(tmp_path / "g.omni")
    graph, wrote = with_client(plain, server), list[int]()

    def interfere() -> None:
        if not wrote:
            wrote.append(len(server.texts))
            plain.mutate('query q() { update Doc set { body: "new" } where slug = "d0007" }')
            plain.mutate('query q() { insert Doc { slug: "late", body: "late" } }')
            plain.mutate('query q() { delete Doc where slug = "d0200" }')

    with pytest.warns(UserWarning, match="stayed null"), armed("write.after_stage", interfere):
        done = graph.embed(types=["Doc"], properties=["gist"])
    assert done.counts == {"Doc.gist": EmbedCounts(COUNT, 0, 0)}
    assert server.texts[wrote[0] :] == ["new", "late"]
    found = rows(graph)
    assert len(found) == COUNT
    for row in found.values():
        assert row["gist"] == pytest.approx(MockClient().embed([row["body"]], 4, "document")[0].tolist(), abs=1e-6)
    assert graph.jobs() == []
    used = {
        Path(f.path).name
        for fragment in base_of(graph).open("node:Doc").get_fragments()
        for f in fragment.data_files()
    }
    assert files_of_jobs(graph) <= used, "what the first round staged in vain is gone"


def test_all_or_nothing(server: EmbeddingServer, tmp_path: Path) -> None:
    graph = with_client(without_vectors(tmp_path / "g.omni"), server)
    before = rows(graph)
    server.replies = [Reply()] * 5 + [Reply(400, b"no more")]
    with pytest.raises(EmbeddingUnavailable, match="answered 400: no more"):
        graph.embed(types=["Doc"])
    assert rows(graph) == before
    assert (graph.jobs(), files_of_jobs(graph)) == ([], set())
    assert graph.commits()[0].kind == "load"


def test_rows_with_blobs(server: EmbeddingServer, tmp_path: Path) -> None:
    """Spark leaves them alone; a job in this process does them beside the others, in the same commit."""
    plain = without_vectors(tmp_path / "g.omni")
    with pytest.warns(UserWarning, match="stayed null"):
        plain.load(
            [{"type": "Picture", "data": {"slug": "p", "caption": "c", "raw": "base64:AAAA"}}], mode="append"
        )
    graph = with_client(plain, server)
    with pytest.raises(NotOnSpark, match="Picture, which has blobs"):
        graph.embed(engine="spark")
    done = graph.embed(engine="local")
    assert done.counts["Picture.sense"] == EmbedCounts(1, 0, 0)
    [picture] = base_of(graph).whole_rows("node:Picture", "true").to_pylist()
    assert picture["sense"] is not None
    assert [commit.kind for commit in graph.commits(limit=2)] == ["embed", "load"]
