"""Who loads: the floor, which checks nothing, other databases, and OmniGraph; each in a process of its own."""

from __future__ import annotations

import importlib
import resource
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.kept import apart
from benchmarks.load.data import SCHEMA

if TYPE_CHECKING:
    from omnigraph.bulk.runner import JobEvent

_RAW: Final = pa.schema(
    [
        ("type", pa.string()),
        ("edge", pa.string()),
        ("from", pa.string()),
        ("to", pa.string()),
        (
            "data",
            pa.struct(
                [
                    ("name", pa.string()),
                    ("age", pa.int32()),
                    ("city", pa.string()),
                    ("score", pa.float64()),
                    ("since", pa.int32()),
                    ("weight", pa.float64()),
                ]
            ),
        ),
    ]
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a load took: seconds, and for Spark those of the first one and of the session's start; and its size."""

    seconds: float
    nodes: int
    edges: int
    cold: float = 0.0
    start: float = 0.0
    driver_bytes: int = 0
    steps: dict[str, float] = field(default_factory=dict)


def floor(lines: Path, to: Path) -> Loaded:
    """Plain pyarrow.json and Lance, two files at a time: no rule is checked and no id is looked at twice."""
    import lance

    start = time.perf_counter()
    shutil.rmtree(to, ignore_errors=True)
    files = sorted(lines.iterdir())
    with ThreadPoolExecutor(2) as pool:
        parts = list(pool.map(lambda entry: _floor_file(entry[1], to, entry[0]), enumerate(files)))
    for index, name in enumerate(("Person", "Knows")):
        fragments = [fragment for part in parts for fragment in part[index]]
        lance.LanceDataset.commit(str(to / name), lance.LanceOperation.Overwrite(_stored(index), fragments))
    seconds = time.perf_counter() - start
    nodes, edges = (lance.dataset(str(to / name)).count_rows() for name in ("Person", "Knows"))
    return Loaded(seconds, nodes, edges)


def _stored(index: int) -> pa.Schema:
    data = _RAW.field("data").type
    if index == 0:
        names = ("name", "age", "city", "score")
        return pa.schema([("id", pa.string()), *((name, data.field(name).type) for name in names)])
    ends = [(name, pa.string()) for name in ("id", "src", "dst")]
    return pa.schema([*ends, ("since", pa.int32()), ("weight", pa.float64())])


def _floor_file(file: Path, to: Path, number: int) -> tuple[list[Any], list[Any]]:
    import pyarrow.json as pj
    from lance.fragment import write_fragments

    rows = pj.read_json(
        file,
        read_options=pj.ReadOptions(block_size=8 << 20, use_threads=False),
        parse_options=pj.ParseOptions(explicit_schema=_RAW, unexpected_field_behavior="error"),
    )
    written: list[list[Any]] = []
    for index, member in enumerate(("type", "edge")):
        mine = rows.filter(pc.is_valid(rows[member]))
        data = {name: pc.struct_field(mine["data"], name) for name in _RAW.field("data").type.names}
        ids = pa.array(np.arange(mine.num_rows) + (number << 40)).cast(pa.string())
        own = (
            {"id": data["name"], **data}
            if index == 0
            else {"id": ids, "src": mine["from"], "dst": mine["to"], **data}
        )
        table = pa.table([own[name] for name in _stored(index).names], schema=_stored(index))
        uri = str(to / ("Person" if index == 0 else "Knows"))
        written.append(
            list(write_fragments(table, uri, mode="overwrite", schema=table.schema, max_rows_per_file=100_000))
        )
    return written[0], written[1]


def duckdb(lines: Path, to: Path) -> Loaded:
    """Read the lines, split them into tables with keys, and check the ends of edges."""
    engine = importlib.import_module("duckdb")
    to.unlink(missing_ok=True)
    start = time.perf_counter()
    with engine.connect(str(to)) as connection:
        members = "type: 'VARCHAR', edge: 'VARCHAR', \"from\": 'VARCHAR', \"to\": 'VARCHAR'"
        data = "name VARCHAR, age INTEGER, city VARCHAR, score DOUBLE, since INTEGER, weight DOUBLE"
        source = (
            f"read_json('{lines}/*.jsonl', format='newline_delimited', "
            f"columns={{{members}, data: 'STRUCT({data})'}})"
        )
        connection.execute(f"CREATE TEMP TABLE raw AS SELECT * FROM {source}")
        connection.execute(
            "CREATE TABLE Person(name VARCHAR PRIMARY KEY, age INTEGER, city VARCHAR, score DOUBLE)"
        )
        connection.execute(
            "INSERT INTO Person SELECT data.name, data.age, data.city, data.score FROM raw WHERE type = 'Person'"
        )
        connection.execute(
            'CREATE TABLE Knows AS SELECT "from" AS src, "to" AS dst, data.since AS since, data.weight AS weight '
            "FROM raw WHERE edge = 'Knows'"
        )
        for side in ("src", "dst"):
            dangling = f"SELECT count(*) FROM Knows ANTI JOIN Person ON Knows.{side} = Person.name"
            assert connection.execute(dangling).fetchone() == (0,)
        connection.execute("CHECKPOINT")
        seconds = time.perf_counter() - start
        counted = connection.execute("SELECT (SELECT count(*) FROM Person), (SELECT count(*) FROM Knows)")
        nodes, edges = counted.fetchall()[0]
    return Loaded(seconds, nodes, edges)


def kuzu(tables: Path, to: Path, package: str = "kuzu") -> Loaded:
    """COPY from Parquet: nothing has to be parsed; the edges get their index."""
    engine = importlib.import_module(package)
    for left in to.parent.glob(f"{to.name}*"):
        left.unlink()
    start = time.perf_counter()
    database = engine.Database(str(to))
    connection = engine.Connection(database)
    connection.execute(
        "CREATE NODE TABLE Person(name STRING, age INT32, city STRING, score DOUBLE, PRIMARY KEY (name))"
    )
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since INT32, weight DOUBLE)")
    for name in ("Person", "Knows"):
        connection.execute(f"COPY {name} FROM '{tables / name}.parquet'")
    connection.execute("CHECKPOINT")
    seconds = time.perf_counter() - start
    nodes = connection.execute("MATCH (a:Person) RETURN count(*)").get_next()[0]
    edges = connection.execute("MATCH ()-[e:Knows]->() RETURN count(*)").get_next()[0]
    return Loaded(seconds, nodes, edges)


def ladybug(tables: Path, to: Path) -> Loaded:
    """The successor of Kuzu."""
    return kuzu(tables, to, "ladybug")


def shuffling(lines: Path, to: Path, repeats: int, master: str | None = None) -> Loaded:
    """OmniGraph as it loads what is too large for a worker's memory: all keys go through Spark's shuffle."""
    return omnigraph(lines, to, repeats, master, key_budget=0)


def omnigraph(
    lines: Path, to: Path, repeats: int = 3, master: str | None = None, key_budget: int | None = None
) -> Loaded:
    """OmniGraph on Spark: a cold load, then warm ones, of which the one with the median of the seconds counts."""
    ours = _Session(lines, to, master, key_budget)
    warm = [ours.load() for _ in range(repeats)]
    ours.stop()
    return _median(warm)


def contest(home: Path, to: Path, repeats: int) -> dict[str, Loaded]:
    """Everybody in turns, so that no engine has the quieter machine. Of each engine the run with the median of the
    seconds counts."""
    lines, tables = home / "lines", home / "tables"
    ours = _Session(lines, to / "ours.omni")
    runs: dict[str, list[Loaded]] = {name: [] for name in ("floor", "omnigraph", "duckdb", "kuzu", "ladybug")}
    for _ in range(repeats):
        runs["floor"].append(apart(floor, lines, to / "floor"))
        runs["omnigraph"].append(ours.load())
        runs["duckdb"].append(apart(duckdb, lines, to / "duck.db"))
        runs["kuzu"].append(apart(kuzu, tables, to / "kuzu.db"))
        runs["ladybug"].append(apart(ladybug, tables, to / "ladybug.db"))
    ours.stop()
    return {name: _median(of) for name, of in runs.items()}


def _median(runs: list[Loaded]) -> Loaded:
    return sorted(runs, key=lambda run: run.seconds)[len(runs) // 2]


class _Session:
    """A Spark session in which OmniGraph has loaded the lines once, cold, and loads them again."""

    def __init__(self, lines: Path, to: Path, master: str | None = None, key_budget: int | None = None) -> None:
        from omnigraph.settings import BulkSettings, Settings
        from omnigraph.spark.sessions import spark_session

        self._lines, self._to = lines, to
        self._settings = Settings(
            bulk=BulkSettings() if key_budget is None else BulkSettings(key_budget=key_budget)
        )
        begin = time.perf_counter()
        self._spark = spark_session(master)
        self._start, self._cold = time.perf_counter() - begin, 0.0
        self._cold = self.load().seconds

    def load(self) -> Loaded:
        """Load the lines into a new graph."""
        import omnigraph as engine

        shutil.rmtree(self._to, ignore_errors=True)
        graph = engine.init(self._to, SCHEMA, settings=self._settings)
        steps: dict[str, float] = {}
        begin = time.perf_counter()
        graph.load(str(self._lines), mode="append", engine="spark", spark=self._spark, listener=_adding_to(steps))
        seconds, tables = time.perf_counter() - begin, graph.snapshot().tables
        return Loaded(
            seconds,
            tables["node:Person"].row_count,
            tables["edge:Knows"].row_count,
            cold=self._cold,
            start=self._start,
            driver_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            steps=steps,
        )

    def stop(self) -> None:
        """End the session."""
        self._spark.stop()


def _adding_to(steps: dict[str, float]) -> Callable[[JobEvent], None]:
    over: dict[str, float] = {}
    running: dict[str, float] = {}

    def add(event: JobEvent) -> None:
        """A step that begins again, for another table or side, adds to what it has taken."""
        if event.seconds < running.get(event.step, 0.0):
            over[event.step] = steps[event.step]
        running[event.step] = event.seconds
        steps[event.step] = over.get(event.step, 0.0) + event.seconds

    return add
