"""Formats and packings of everyday files, and held rows; `test_sources_and_engines` compares modes and errors."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import obstore
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest
from tests.bulk.loading import new_graph, rows_of
from tests.bulk.sources import HELD, PACKERS, WRITERS, file, parquet, table_of
from tests.stores import Store

import omnigraph
from omnigraph.bulk.load.local import LoadData, runs_on_spark
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.runner import Engine
from omnigraph.errors import MissingExtra, NotOnSpark, RecordError, SourceUnusable
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings
from omnigraph.spark.choice import SparkChoice
from omnigraph.storage.control.remote import s3_store as client_of

SCHEMA = """
node Airport { code: String @key  name: String? @unique  height: I32?  @range(height, -500..9000) }
edge Flies: Airport -> Airport { miles: I32? }
"""
AIRPORTS: list[dict[str, Any]] = [
    {"code": "AMS", "name": "Schiphol", "height": -3},
    {"code": "JFK", "name": None, "height": 13},
    {"code": "TLS", "name": 'Toulouse "Blagnac", 31', "height": None},
]
EXPECTED = [{"id": row["code"], **row} for row in AIRPORTS]
STAGED = BulkSettings(small_load=0)
IN_MEMORY = BulkSettings()


@pytest.mark.parametrize("kind", WRITERS)
def test_every_packing_of_every_format_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    """The first load is one change in memory, the others are staged as files."""
    for packing in PACKERS:
        path = file(tmp_path, "airports", AIRPORTS, kind, packing)
        settings = STAGED if packing else IN_MEMORY
        graph = new_graph(tmp_path / f"g{packing}", SCHEMA, settings=settings)
        done = graph.load(nodes={"Airport": path}, mode="append")
        assert dict(done.nodes) == {"Airport": 3}, packing
        assert rows_of(graph)["node:Airport"] == sorted(EXPECTED, key=repr), packing


@pytest.mark.parametrize("kind", HELD)
def test_what_the_process_holds_gives_the_same_rows(tmp_path: Path, kind: str) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA, settings=STAGED)
    graph.load(nodes={"Airport": HELD[kind](AIRPORTS)}, mode="append")
    assert rows_of(graph)["node:Airport"] == sorted(EXPECTED, key=repr)


NUMBERED = "node Stop { number: I64 @key }\nedge Next: Stop -> Stop"
STOPS = pd.DataFrame({"number": [1, 20]})
HOPS = pd.DataFrame({"from": [1, 20], "to": [20, 1]})
NUMBERED_SOURCES: dict[str, Callable[[Path, pd.DataFrame], Any]] = {
    "csv": lambda path, frame: frame.to_csv(path, index=False) or path,
    "parquet": lambda path, frame: frame.to_parquet(path) or path,
    "jsonl": lambda path, frame: frame.to_json(path, orient="records", lines=True) or path,
    "table": lambda _, frame: pa.Table.from_pandas(frame),
    "pandas": lambda _, frame: frame.astype("float64"),
    "duckdb": lambda _, frame: duckdb.connect().from_arrow(pa.Table.from_pandas(frame)),
    "dictionaries": lambda _, frame: frame.to_dict("records"),
}


@pytest.mark.parametrize("kind", NUMBERED_SOURCES)
def test_integers_name_the_ends_of_edges(tmp_path: Path, kind: str) -> None:
    graph = new_graph(tmp_path / "g", NUMBERED)
    stops = NUMBERED_SOURCES[kind](tmp_path / f"stops.{kind}", STOPS)
    hops = NUMBERED_SOURCES[kind](tmp_path / f"hops.{kind}", HOPS)
    graph.load(nodes={"Stop": stops}, edges={"Next": hops}, mode="append")
    assert sorted((row["src"], row["dst"]) for row in rows_of(graph)["edge:Next"]) == [("1", "20"), ("20", "1")]


def test_csv_and_parquet_in_a_bucket(s3_store: Store) -> None:
    client, prefix = client_of(s3_store.address), f"{s3_store.address.prefix}-in"
    obstore.put(client, f"{prefix}/a.csv.gz", gzip.compress(WRITERS["csv"](AIRPORTS)))
    obstore.put(client, f"{prefix}/flights.parquet", parquet([{"origin": "AMS", "dest": "JFK", "miles": 3635}]))
    graph = omnigraph.init(s3_store.uri, SCHEMA, storage_options=s3_store.options)
    flights = omnigraph.Source(f"s3://bucket/{prefix}/*.parquet", from_="origin", to="dest")
    done = graph.load(nodes={"Airport": f"s3://bucket/{prefix}/a.csv.gz"}, edges={"Flies": flights}, mode="append")
    assert (dict(done.nodes), dict(done.edges)) == ({"Airport": 3}, {"Flies": 1})
    assert [(row["src"], row["dst"], row["miles"]) for row in rows_of(graph)["edge:Flies"]] == [
        ("AMS", "JFK", 3635)
    ]


def decided(graph: Graph, data: LoadData, limit: int) -> bool:
    """Does a load run on Spark if ``limit`` bytes are small?"""
    settings = BulkSettings(local_load=limit)
    catalog = graph.snapshot("main").catalog
    return runs_on_spark(data, data.find(catalog, {}), LoadOptions(Mode.APPEND, "main", settings=settings))


def test_only_files_above_the_limit_run_on_spark(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    paths = {kind: file(tmp_path, "airports", AIRPORTS, kind) for kind in ("csv", "parquet", "arrow", "jsonl")}
    for path in paths.values():
        data = LoadData(nodes={"Airport": path})
        size = path.stat().st_size
        assert not decided(graph, data, size)
        assert decided(graph, data, size - 1)
        assert not decided(graph, LoadData(nodes={"Airport": path}, engine=Engine.LOCAL), 0)
        assert decided(graph, LoadData(nodes={"Airport": path}, engine=Engine.SPARK), size)
        assert decided(graph, LoadData(nodes={"Airport": path}, is_spark_given=True), size)
    both = LoadData(nodes={"Airport": [str(paths["csv"]), str(paths["parquet"])]})
    assert decided(graph, both, paths["parquet"].stat().st_size)
    assert not decided(graph, LoadData(nodes={"Airport": table_of(AIRPORTS)}), 0)
    assert BulkSettings().local_load == 256 << 20
    for asked in (LoadData(data=AIRPORTS, engine=Engine.SPARK), LoadData(data=AIRPORTS, is_spark_given=True)):
        assert decided(graph, asked, 1 << 30)


def test_what_cannot_be_loaded_on_spark_is_said_before_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_: SparkChoice) -> None:
        pytest.fail("Spark was started")

    monkeypatch.setattr(SparkChoice, "session", start)
    graph = new_graph(tmp_path / "g", SCHEMA)
    for rows in (pa.table({"code": ["A"], "nam": ["B"]}), pd.DataFrame({"code": ["A"], "nam": ["B"]})):
        with pytest.raises(SourceUnusable, match="Airport has no property 'nam'"):
            graph.load(nodes={"Airport": rows}, mode="append", engine="spark")
    with pytest.raises(NotOnSpark, match="a graph in memory"):
        omnigraph.init("memory://on-spark", SCHEMA).load(
            nodes={"Airport": table_of(AIRPORTS)}, mode="append", engine="spark"
        )
    assert graph.jobs() == []


def test_without_spark_a_generator_beside_a_large_file_loses_no_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark is tried first, for which the first rows are read; then everything is loaded in this process."""

    def refuse(_: SparkChoice) -> None:
        raise MissingExtra("pyspark", "spark", "a load on Spark")

    monkeypatch.setattr(SparkChoice, "session", refuse)
    graph = new_graph(tmp_path / "g", SCHEMA, settings=BulkSettings(local_load=0))
    flights = ({"from": "AMS", "to": code} for code in ("JFK", "TLS", "AMS"))
    graph.load(nodes={"Airport": file(tmp_path, "a", AIRPORTS, "csv")}, edges={"Flies": flights}, mode="append")
    assert sorted(row["dst"] for row in rows_of(graph)["edge:Flies"]) == ["AMS", "JFK", "TLS"]


def test_the_limit_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMNIGRAPH_LOCAL_LOAD", "1000")
    assert BulkSettings().local_load == 1000


def test_the_local_engine_takes_files_of_any_size(tmp_path: Path) -> None:
    settings = Settings(bulk=BulkSettings(local_load=0, small_load=0))
    graph = omnigraph.init(tmp_path / "g", SCHEMA, settings=settings)
    graph.load(nodes={"Airport": file(tmp_path, "a", AIRPORTS, "csv")}, mode="append", engine="local")
    assert rows_of(graph)["node:Airport"] == sorted(EXPECTED, key=repr)


def test_small_parquet_and_arrow_tables_start_no_jvm(tmp_path: Path) -> None:
    rows = [{"code": f"A{number:02}", "height": number} for number in range(16)]
    path, place = file(tmp_path, "airports", rows, "parquet"), tmp_path / "g"
    omnigraph.init(place, SCHEMA)
    code = (
        "import sys, omnigraph, pyarrow as pa\n"
        f"graph = omnigraph.open({str(place)!r})\n"
        f"graph.load(nodes={{'Airport': {str(path)!r}}}, mode='append')\n"
        "graph.load(nodes={'Airport': pa.table({'code': ['X']})}, mode='merge')\n"
        "print(graph.snapshot('main').rows('node:Airport'), 'pyspark' in sys.modules, 'py4j' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.split() == ["17", "False", "False"]


def test_a_packed_file_that_is_torn_is_named(tmp_path: Path) -> None:
    for kind in ("csv", "parquet", "arrow", "jsonl"):
        path = file(tmp_path, "airports", AIRPORTS * 50, kind, ".gz")
        path.write_bytes(path.read_bytes()[:-30])
        graph = new_graph(tmp_path / kind, SCHEMA)
        with pytest.raises(omnigraph.errors.OmniError, match=path.name):
            graph.load(nodes={"Airport": path}, mode="append")
        assert rows_of(graph).get("node:Airport", []) == []


def test_bad_cells_of_tsv_are_named_by_row(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    tsv = tmp_path / "a.tsv"
    tsv.write_text("code\theight\nAMS\tlow\n")
    with pytest.raises(RecordError) as raised:
        graph.load(nodes={"Airport": tsv}, mode="append")
    assert [(p.line, p.message) for p in raised.value.problems] == [
        (2, "Airport.height is I32?: 'low' is not an integer")
    ]
