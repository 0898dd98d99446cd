"""Merges that replace rows with blobs: rows are written again, with the bytes that lie beside them."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk.everything import content
from tests.bulk.loading import Record, left_behind, load_with, node, small_slices, write

import omnigraph
from omnigraph.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = "node Photo { name: String @key  stars: I32?  raw: Blob? }"
SIZES = (3, 70_000, 5_000_000)
"""Lance keeps blobs of these sizes in the row, in a file with others, and in one of their own."""


def photo(name: str, size: int | None, fill: int = 1) -> Record:
    if size is None:
        return node("Photo", name=name)
    raw = base64.b64encode(bytes([fill]) * size).decode()
    return node("Photo", name=name, stars=fill, raw=f"base64:{raw}")


@pytest.mark.parametrize("engine", ["local", "tasks"])
def test_rows_with_blobs_are_replaced_and_repeated(tmp_path: Path, engine: str) -> None:
    check_replaced(tmp_path, engine)


def test_rows_with_blobs_are_replaced_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    check_replaced(tmp_path, "spark", spark=spark)


def check_replaced(tmp_path: Path, engine: str, **options: Any) -> None:
    """Rows with blobs of all sizes, some of which a merge replaces and some of which it brings twice."""
    settings = Settings(bulk=small_slices(1 << 30, rows_per_file=3))
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA, settings=settings)
    first = [photo(f"p{number}", size) for number, size in enumerate((*SIZES, None))]
    load_with(engine, graph, write(tmp_path / "1.jsonl", first), mode="append", **options)
    again = [photo("p1", SIZES[2], 2), photo("p9", 4, 3), photo("p2", None), photo("p9", SIZES[1], 4)]
    load_with(engine, graph, write(tmp_path / "2.jsonl", again), mode="merge", **options)
    found = {row["name"]: row for row in content(graph)["node:Photo"]}
    lengths = {name: None if row["raw"] is None else len(row["raw"]) for name, row in found.items()}
    assert lengths == {"p0": 3, "p1": SIZES[2], "p2": None, "p3": None, "p9": SIZES[1]}
    assert (found["p1"]["raw"][:1], found["p9"]["raw"][:1], found["p9"]["stars"]) == (b"\x02", b"\x04", 4)
    assert left_behind(graph) == []
