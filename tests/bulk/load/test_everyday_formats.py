"""Formats and packings of everyday files, held rows, and modes: the same outcome as JSON Lines."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import obstore
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.bulk.loading import Outcome, edge, new_graph, node, outcome, rows_of
from tests.stores import Store

import omnigraph
from omnigraph.bulk.load.local import LoadData, runs_on_spark
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.runner import Engine
from omnigraph.errors import RecordError, RequestError
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings
from omnigraph.storage.control.remote import s3_store as client_of

SCHEMA = """
node Airport { code: String @key  name: String? @unique  height: I32?  @range(height, -500..9000) }
edge Flies: Airport -> Airport { miles: I32? }
"""
Rows = Sequence[Mapping[str, Any]]
AIRPORTS: list[dict[str, Any]] = [
    {"code": "AMS", "name": "Schiphol", "height": -3},
    {"code": "JFK", "name": None, "height": 13},
    {"code": "TLS", "name": 'Toulouse "Blagnac", 31', "height": None},
]
EXPECTED = [{"id": row["code"], **row} for row in AIRPORTS]
STAGED = BulkSettings(small_load=0)
IN_MEMORY = BulkSettings()


def table_of(rows: Rows) -> pa.Table:
    """Rows with the types that a careful writer gives them."""
    integers = {"height", "miles"}
    names = dict.fromkeys(name for row in rows for name in row)
    types = {name: pa.int32() if name in integers else pa.string() for name in names}
    return pa.table({name: pa.array([row.get(name) for row in rows], types[name]) for name in names})


def delimited(mark: str) -> Callable[[Rows], bytes]:
    def written(rows: Rows) -> bytes:
        sink = pa.BufferOutputStream()
        pyarrow.csv.write_csv(table_of(rows), sink, pyarrow.csv.WriteOptions(delimiter=mark))
        return bytes(sink.getvalue())

    return written


def parquet(rows: Rows) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table_of(rows), sink, row_group_size=2)
    return bytes(sink.getvalue())


def arrow(rows: Rows) -> bytes:
    sink, table = pa.BufferOutputStream(), table_of(rows)
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def arrow_stream(rows: Rows) -> bytes:
    sink, table = pa.BufferOutputStream(), table_of(rows)
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return bytes(sink.getvalue())


def lines(rows: Rows) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


WRITERS: dict[str, Callable[[Rows], bytes]] = {
    "csv": delimited(","),
    "tsv": delimited("\t"),
    "parquet": parquet,
    "arrow": arrow,
    "arrows": arrow_stream,
    "jsonl": lines,
}
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".zst": lambda content: bytes(pa.Codec("zstd").compress(content)),
}


def file(home: Path, name: str, rows: Rows, kind: str, packing: str = "") -> Path:
    path = home / f"{name}.{kind}{packing}"
    path.write_bytes(PACKERS[packing](WRITERS[kind](rows)))
    return path


def duckdb_relation(rows: Rows) -> Any:
    return duckdb.connect().from_arrow(table_of(rows))


HELD: dict[str, Callable[[Rows], Any]] = {
    "table": table_of,
    "record batches": lambda rows: table_of(rows).to_batches(max_chunksize=2),
    "reader": lambda rows: table_of(rows).to_reader(),
    "pandas": lambda rows: table_of(rows).to_pandas(),
    "polars": lambda rows: pl.DataFrame(table_of(rows)),
    "lazy polars": lambda rows: pl.DataFrame(table_of(rows)).lazy(),
    "duckdb": duckdb_relation,
    "dictionaries": lambda rows: [dict(row) for row in rows],
    "generator": lambda rows: (dict(row) for row in rows),
}


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


BEFORE = [node("Airport", **AIRPORTS[0]), node("Airport", **AIRPORTS[1]), edge("Flies", "AMS", "JFK", miles=1)]
LATER: dict[str, tuple[Rows, Rows]] = {
    "good": (
        [{"code": "AMS", "name": "Schiphol", "height": -4}, {"code": "NRT", "name": "Narita", "height": 41}],
        [{"from": "NRT", "to": "AMS", "miles": 5780}],
    ),
    "edges without nodes": (
        [{"code": "AMS", "height": 0}],
        [{"from": "AMS", "to": "XXX"}, {"from": "Y", "to": "Z"}],
    ),
    "shared names": ([{"code": "A", "name": "one"}, {"code": "B", "name": "one"}], [{"from": "A", "to": "B"}]),
    "out of range": ([{"code": "A", "height": 1}, {"code": "B", "height": 9001}], [{"from": "A", "to": "B"}]),
    "same key twice": ([{"code": "A", "height": 1}, {"code": "A", "height": 2}], [{"from": "A", "to": "A"}]),
}
EVERY_SOURCE = ["csv", "tsv", "parquet", "arrow", *HELD]


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
@pytest.mark.parametrize("case", LATER)
def test_modes_and_errors_are_those_of_json_lines(tmp_path: Path, case: str, mode: str) -> None:
    nodes, edges = LATER[case]

    def done(name: str, settings: BulkSettings, given: dict[str, Any]) -> Outcome:
        graph = new_graph(tmp_path / name, SCHEMA, BEFORE, settings)
        return outcome(graph, None, mode, **given)

    records = file(tmp_path, "nodes", nodes, "jsonl"), file(tmp_path, "edges", edges, "jsonl")
    given = {"nodes": {"Airport": records[0]}, "edges": {"Flies": records[1]}}
    expected = comparable(done("jsonl", IN_MEMORY, given), 0)
    # A source each, in turn, so that all of them meet several cases.
    turn = (list(LATER).index(case) * 3 + ["append", "merge", "overwrite"].index(mode)) * 2
    for number in range(turn, turn + 2):
        kind = EVERY_SOURCE[number % len(EVERY_SOURCE)]
        if kind in HELD:
            given = {"nodes": {"Airport": HELD[kind](nodes)}, "edges": {"Flies": HELD[kind](edges)}}
        else:
            paths = file(tmp_path, "nodes", nodes, kind), file(tmp_path, "edges", edges, kind)
            given = {"nodes": {"Airport": paths[0]}, "edges": {"Flies": paths[1]}}
        found = done(kind, STAGED if number % 2 else IN_MEMORY, given)
        assert comparable(found, 1 if kind in ("csv", "tsv") else 0) == expected, kind


def comparable(found: Outcome, headers: int) -> Outcome:
    """An outcome in which a source has no name, and its rows are counted without a header."""
    if "error" not in found or found["error"][0] != "ConstraintViolation":
        return found
    name, total, listed = found["error"]
    told = [(None if line is None else line - headers, *rest) for _, line, *rest in listed]
    return {**found, "error": (name, total, sorted(told, key=repr))}


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
    with pytest.raises(RequestError, match="records in memory are loaded in this process"):
        decided(graph, LoadData(nodes={"Airport": AIRPORTS}, engine=Engine.SPARK), 0)


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
