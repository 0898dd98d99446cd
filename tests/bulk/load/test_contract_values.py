"""What both engines make of values: every type, vectors that are computed, blobs; and rows that are replaced."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.bulk.everything import SCHEMA as EVERY_TYPE
from tests.bulk.everything import difficult_things
from tests.bulk.loading import (
    edge,
    left_behind,
    load_by_tasks,
    load_with,
    new_graph,
    node,
    outcome,
    rows_of,
    small_slices,
    text_of,
    write,
)
from tests.bulk.scenarios import SCHEMA, WORLD

import omnigraph
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import RecordError, RequestError
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings
from omnigraph.storage.tables import TableRef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = """
node Doc { slug: String @key  title: String?  free: Vector(4)? @embed("title")  fixed: Vector(4) @embed("title") }
"""


@pytest.fixture(scope="module")
def every_type(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Graph]:
    """A file that uses every type, and the graph it was exported from."""
    place = tmp_path_factory.mktemp("types")
    graph = new_graph(place / "g", EVERY_TYPE, difficult_things(40))
    graph.export(place / "all.jsonl")
    return place / "all.jsonl", graph


@pytest.mark.parametrize("mode", ["append", "overwrite", "merge"])
def test_every_type(every_type: tuple[Path, Graph], mode: Any, tmp_path: Path) -> None:
    path, origin = every_type
    graph = new_graph(tmp_path / "g", EVERY_TYPE, settings=small_slices(3000))
    done = load_by_tasks(graph, path, mode=mode)
    assert (dict(done.nodes), dict(done.edges)) == ({"Plain": 3, "Thing": 40}, {"Touches": 40})
    assert rows_of(graph) == rows_of(origin)
    assert left_behind(graph) == []


def test_blobs_are_replaced_by_tasks_too(every_type: tuple[Path, Graph], tmp_path: Path) -> None:
    path, origin = every_type
    graph = new_graph(tmp_path / "g", EVERY_TYPE)
    graph.load(path, mode="append", engine="local")
    for mode in ("merge", "overwrite"):
        load_by_tasks(graph, path, mode=mode)
        assert rows_of(graph) == rows_of(origin)
    graph.load(path, mode="merge", engine="local")
    assert rows_of(graph) == rows_of(origin)
    assert left_behind(graph) == []


def row_ids(graph: Graph, table_key: str) -> dict[str, int]:
    pin = graph.snapshot().tables[table_key]
    ref = TableRef(pin.location, pin.table_branch, pin.table_version)
    rows = graph._repository.tables.scan(ref, ["id"], row_ids=True).read_all().to_pylist()
    return {row["id"]: row["_rowid"] for row in rows}


def test_rows_that_are_replaced_keep_their_row_ids(tmp_path: Path) -> None:
    """So that what changed can be told from what is new, whichever engine changed it; indexes find what is new."""
    changes = []
    for engine in ("local", "tasks"):
        graph = new_graph(tmp_path / engine, SCHEMA, WORLD, small_slices(100, rows_per_task=3))
        graph.load([node("Person", name=f"p{index}") for index in range(6)], mode="append")
        graph.mutate('query q() { delete Person where name = "p2" }')
        graph.ensure_indices()
        before, pin = row_ids(graph, "node:Person"), graph.snapshot().tables["node:Person"]
        people = [node("Person", name=name, age=7) for name in ("new", "bo", "p3", "ada", "last", "bo")]
        path = write(tmp_path / "x.jsonl", [*people, edge("Knows", "bo", "new", id="k1")])
        load_with(engine, graph, path, mode="merge")
        after = row_ids(graph, "node:Person")
        assert {name: after[name] for name in before} == before
        assert len(set(after.values())) == len(after) == 10
        now = graph.snapshot().tables["node:Person"]
        ref = TableRef(now.location, now.table_branch, now.table_version)
        delta = graph._repository.tables.delta(ref, pin.table_version)
        changes.append(
            (
                sorted(name for name, row_id in after.items() if row_id in delta.inserted.to_pylist()),
                sorted(name for name, row_id in after.items() if row_id in delta.updated.to_pylist()),
                delta.deleted.to_pylist(),
            )
        )
        assert now.row_count == 10
        found = graph.query('query q() { match { $p: Person { name: "bo" } } return { $p.age } }')
        assert [list(row.values()) for row in found] == [[7]]
    assert changes == [(["last", "new"], ["ada", "bo", "p3"], [])] * 2


def texts(*titles: str | None) -> list[Any]:
    return [node("Doc", slug=f"d{index}", title=title, fixed=[0, 0, 0, 1]) for index, title in enumerate(titles)]


def test_vectors_stay_empty_without_a_provider(tmp_path: Path) -> None:
    path = write(tmp_path / "docs.jsonl", texts("one", None))
    found = []
    for engine in ("local", "tasks"):
        graph = new_graph(tmp_path / engine, DOCS)
        with pytest.warns(UserWarning, match=r"Doc\.free stayed null: no embedding provider"):
            found.append(outcome(graph, path, "append", engine=engine))
    assert found[0] == found[1]
    assert found[1]["warnings"] == ("Doc.free",)
    required = write(tmp_path / "more.jsonl", [node("Doc", slug="x", title="t", free=[1, 0, 0, 0])])
    errors = [
        outcome(new_graph(tmp_path / f"{e}2", DOCS), required, "append", engine=e) for e in ("local", "tasks")
    ]
    assert errors[0] == errors[1]
    assert "Doc.fixed is required and computed from title" in errors[1]["error"][1]


def test_vectors_are_computed_where_the_rows_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession
) -> None:
    """Workers know nothing of the environment of this process, so they are sent the client it configured."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    docs = [node("Doc", slug="a", title="one"), node("Doc", slug="b", title="two", free=[1, 0, 0, 0])]
    path = write(tmp_path / "docs.jsonl", docs)
    here = outcome(new_graph(tmp_path / "here", DOCS), path, "append", engine="local")
    there = outcome(new_graph(tmp_path / "there", DOCS), path, "append", engine="spark", spark=spark)
    assert there == here
    first, second = there["rows"]["node:Doc"]
    assert first["free"] == first["fixed"]
    assert second["free"] != second["fixed"]


def test_a_row_whose_vector_cannot_be_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A required vector of nothing: a rule is broken, and the row could not even be stored."""
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "mock")
    docs = [node("Doc", slug="a", title="one"), node("Doc", slug="b"), node("Doc", slug="c", title="x")]
    path = write(tmp_path / "docs.jsonl", docs)
    found = [outcome(new_graph(tmp_path / e, DOCS), path, "append", engine=e) for e in ("local", "tasks")]
    assert found[0] == found[1]
    assert [(v[1], v[2], v[4]) for v in found[1]["error"][2]] == [(2, "required", "b")]
    write(path, [*docs, node("Doc", slug="b", title="now it has one")])
    merged = [outcome(new_graph(tmp_path / f"{e}2", DOCS), path, "merge", engine=e) for e in ("local", "tasks")]
    assert merged[0] == merged[1]
    assert len(merged[1]["rows"]["node:Doc"]) == 3


@pytest.mark.parametrize(
    ("records", "total"),
    [
        (["{}"] * 30, 30),
        ([node("Person", name=f"p{index}", age=-1) for index in range(30)], 30),
        ([node("Event", id=f"e{index % 30}") for index in range(60)], 30),
        ([node("Person", name=f"p{index % 30}") for index in range(60)], 30),
        ([edge("Knows", "ada", f"x{index}") for index in range(30)], 30),
    ],
    ids=["unreadable", "rules", "ids", "keys", "ends"],
)
@pytest.mark.parametrize("limit", [3, 25, 100])
def test_as_many_errors_are_listed_as_one_wants(
    records: list[Any], total: int, limit: int, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.jsonl", records)
    found = []
    for engine in ("local", "tasks"):
        graph = new_graph(tmp_path / engine, SCHEMA, WORLD[:3])
        found.append(outcome(graph, path, "append", engine=engine, max_errors=limit)["error"])
    assert found[0] == found[1]
    assert (len(found[1][-1]), found[1][1]) == (min(limit, total), total)


def test_ids_that_are_taken_are_listed_as_one_wants(tmp_path: Path) -> None:
    people = [node("Person", name=f"p{index:02}") for index in range(30)]
    path = write(tmp_path / "x.jsonl", people)
    for engine in ("local", "tasks"):
        graph = new_graph(tmp_path / engine, SCHEMA, people)
        told = outcome(graph, path, "append", engine=engine, max_errors=3)["error"]
        assert told == ("KeyConflict", 30, "node:Person", ["p00", "p01", "p02"])


def test_a_compressed_file_is_not_read_on_once_enough_is_wrong(tmp_path: Path) -> None:
    """What follows is not read, so no error is about it, and no check that needs all of it is run."""
    people = (node("Person", name=f"p{index}", age=-1) for index in range(30))
    lines = text_of([edge("Knows", "ada", "last"), *people, "{}"])
    path = write(tmp_path / "x.jsonl.gz", gzip.compress(lines.encode()))
    graph = new_graph(tmp_path / "g", SCHEMA, WORLD[:3], BulkSettings(slice_bytes=100))
    kind, total, listed = outcome(graph, path, "append", engine="tasks", max_errors=4)["error"]
    assert (kind, len(listed), {violation[2] for violation in listed}) == ("ConstraintViolation", 4, {"range"})
    assert 4 <= total < 30
    assert outcome(graph, path, "append", engine="tasks")["error"][0] == "RecordError"


@pytest.mark.parametrize("engine", ["local", "spark"])
def test_fewer_than_one_error_is_no_limit(engine: Any, tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    with pytest.raises(RequestError, match="max_errors is 0; it is at least 1"):
        graph.load(write(tmp_path / "x.jsonl", []), mode="append", engine=engine, max_errors=0)
    with pytest.raises(RecordError):
        graph.load("{}", mode="append", max_errors=1)


class Shouting:
    """A client of one's own."""

    model = "shouting"

    def embed(self, texts: Any, dimension: int, role: Any) -> Any:
        return np.array([[len(text), *[0] * (dimension - 1)] for text in texts], np.float32)


def test_a_client_of_ones_own_is_sent_too(tmp_path: Path) -> None:
    client: EmbeddingClient = Shouting()
    address = new_graph(tmp_path / "g", DOCS).address
    graph = omnigraph.open(address, embedder=client)
    load_by_tasks(graph, write(tmp_path / "x.jsonl", [node("Doc", slug="a", title="four")]), mode="append")
    assert rows_of(graph)["node:Doc"][0]["fixed"][0] == rows_of(graph)["node:Doc"][0]["free"][0]
