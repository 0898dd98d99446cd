"""Everyday sources in this process, by type and without Spark: CSV, JSON, tables, DataFrames, dictionaries."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.loading import rows_of

import omnigraph
from omnigraph import Source
from omnigraph.errors import ConstraintViolation, RecordError, RequestError, SourceUnusable
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings

SCHEMA = """
node Airport { code: String @key  name: String?  height: I32? }
edge Flies: Airport -> Airport { miles: I32? }
"""
AIRPORTS = pa.table({"code": ["AMS", "JFK"], "name": ["Schiphol", None], "height": pa.array([-3, 13], pa.int32())})


@pytest.fixture(params=[32 << 20, 0], ids=["in memory", "staged"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    settings = Settings(bulk=BulkSettings(small_load=request.param))
    return omnigraph.init(tmp_path / "g.omni", SCHEMA, settings=settings)


def csv(path: Path) -> Path:
    path.write_text("code,name,height\nAMS,Schiphol,-3\nJFK,,13\n")
    return path


def packed(path: Path) -> Path:
    path.write_bytes(gzip.compress(csv(path.with_suffix("")).read_bytes()))
    return path


def parquet(path: Path) -> Path:
    pq.write_table(AIRPORTS, path)
    return path


def arrow(path: Path) -> Path:
    with pa.ipc.new_file(str(path), AIRPORTS.schema) as writer:
        writer.write_table(AIRPORTS)
    return path


def lines(path: Path) -> Path:
    path.write_text('{"code": "AMS", "name": "Schiphol", "height": -3}\n{"code": "JFK", "height": 13}\n')
    return path


SOURCES: dict[str, Any] = {
    "csv": lambda home: csv(home / "a.csv"),
    "csv.gz": lambda home: packed(home / "a.csv.gz"),
    "parquet": lambda home: parquet(home / "a.parquet"),
    "arrow": lambda home: arrow(home / "a.arrow"),
    "jsonl": lambda home: lines(home / "a.jsonl"),
    "table": lambda _: AIRPORTS,
    "reader": lambda _: AIRPORTS.to_reader(),
    "pandas": lambda _: AIRPORTS.to_pandas(),
    "polars": lambda _: pl.DataFrame(AIRPORTS),
    "dictionaries": lambda _: AIRPORTS.to_pylist(),
    "generator": lambda _: iter(AIRPORTS.to_pylist()),
}


@pytest.mark.parametrize("kind", SOURCES)
def test_the_same_rows_from_every_source(graph: Graph, tmp_path: Path, kind: str) -> None:
    done = graph.load(nodes={"Airport": SOURCES[kind](tmp_path)}, mode="append")
    assert dict(done.nodes) == {"Airport": 2}
    assert rows_of(graph)["node:Airport"] == [
        {"id": "AMS", "code": "AMS", "height": -3, "name": "Schiphol"},
        {"id": "JFK", "code": "JFK", "height": 13, "name": None},
    ]


def test_edges_with_columns_of_other_names(graph: Graph, tmp_path: Path) -> None:
    flights = tmp_path / "flights.csv"
    flights.write_text("carrier,origin,dest,distance\nKL,AMS,JFK,3635\nKL,JFK,AMS,\n")
    source = Source(flights, from_="origin", to="dest", columns={"miles": "distance"})
    graph.load(nodes={"Airport": AIRPORTS}, edges={"Flies": source}, mode="append")
    ends = [(row["src"], row["dst"], row["miles"]) for row in rows_of(graph)["edge:Flies"]]
    assert sorted(ends, key=str) == [("AMS", "JFK", 3635), ("JFK", "AMS", None)]


def test_missing_ends_are_named_and_can_be_left_out(graph: Graph, tmp_path: Path) -> None:
    rows = [{"from": "AMS", "to": "JFK"}, {"from": "AMS", "to": "XXX"}]
    with pytest.raises(ConstraintViolation) as raised:
        graph.load(nodes={"Airport": AIRPORTS}, edges={"Flies": rows}, mode="append")
    assert [(v.source, v.line) for v in raised.value.violations] == [("<list of Flies>", 2)]
    bad = tmp_path / "bad.jsonl"
    done = graph.load(
        nodes={"Airport": AIRPORTS}, edges={"Flies": rows}, mode="append", skip_bad=True, bad_records=bad
    )
    assert dict(done.edges) == {"Flies": 1}
    assert "dst 'XXX' not found in Airport" in bad.read_text()


def test_what_does_not_fit_is_said_before_anything_is_read(graph: Graph, tmp_path: Path) -> None:
    path = csv(tmp_path / "a.csv")
    with pytest.raises(RequestError, match="no property of Airport called 'nam'; did you mean `name`"):
        graph.load(nodes={"Airport": Source(path, columns={"nam": "name", "code": "code"})}, mode="append")
    with pytest.raises(SourceUnusable, match="no column 'cod' for code; did you mean 'code'"):
        graph.load(nodes={"Airport": Source(path, columns={"code": "cod"})}, mode="append")
    with pytest.raises(RequestError, match="need the columns src and dst"):
        graph.load(edges={"Flies": Source(path, columns=["miles"])}, mode="append")


def test_bad_cells_are_named_by_row(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("code,height\nAMS,low\nJFK\n")
    with pytest.raises(RecordError) as raised:
        graph.load(nodes={"Airport": path}, mode="append")
    assert [(p.line, p.message) for p in raised.value.problems] == [
        (2, "Airport.height is I32?: 'low' is not an integer"),
        (3, "the row has 1 cell, and the header 2"),
    ]


def test_whole_numbers_of_pandas_are_integers(graph: Graph) -> None:
    frame = pd.DataFrame({"code": ["AMS", "JFK"], "height": [-3, None]})
    graph.load(nodes={"Airport": frame}, mode="append")
    assert [row["height"] for row in rows_of(graph)["node:Airport"]] == [-3, None]
