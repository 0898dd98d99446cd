"""One contract for all sources, engines and modes: the same rows, counts, errors and bad records.

The graph has a set of types for each source, so that one load brings all sources at once. What JSON Lines in the
memory of this process come to is what every source has to come to, and what the sources come to in this process is
what they have to come to as files that its threads stage, by tasks, and on Spark.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.bulk.loading import Outcome, left_behind, outcome, small_slices
from tests.bulk.sources import HELD, Rows, file

import omnigraph
from omnigraph import Source
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = """
node Airport# { code: String @key  name: String? @unique  height: I32?  @range(height, -500..9000) }
edge Flies#: Airport# -> Airport# """
EDGES = ("{ miles: I32?  @key(src, dst) }", "@card(0..2) { miles: I32? }")
"""Of the edges of every other source: the key, or how many there may be."""
FILES = ("csv", "csv.gz", "csv.zst", "tsv", "tsv.gz", "parquet", "parquet.gz", "arrow", "arrow.zst", "arrows")
SOURCES = (*FILES, "jsonl.zst", *HELD)
SOME = ("csv.gz", "parquet.gz", "arrow", "pandas", "generator")
"""Those whose rows take different ways to a task: for Spark, where every one of them costs seconds."""


@dataclass(frozen=True)
class Case:
    """Rows that are loaded for each source."""

    airports: Rows
    flights: Rows = ()


def flight(start: str, end: str, miles: int | None = None) -> Mapping[str, Any]:
    return {"origin": start, "dest": end, "miles": miles}


BEFORE = Case(
    [{"code": "AMS", "name": "Schiphol", "height": -3}, {"code": "JFK", "name": None, "height": 13}],
    [flight("AMS", "JFK", 2), flight("JFK", "AMS", 3)],
)
CASES = {
    "good": Case(
        [
            {"code": "NRT", "name": 'Narita; "Tokyo", 成田', "height": 41},
            {"code": "TLS", "name": None, "height": None},
            {"code": "LPB", "name": "El Alto", "height": 4061},
        ],
        [flight("NRT", "TLS", 6000), flight("TLS", "NRT"), flight("NRT", "LPB", 6000)],
    ),
    "again": Case(
        [
            {"code": "AMS", "name": None, "height": -4},
            {"code": "NRT", "name": "Schiphol", "height": 41},
            {"code": "NRT", "name": "Schiphol", "height": 40},
        ],
        [flight("NRT", "AMS", 5780), flight("NRT", "AMS", 4)],
    ),
    "wrong": Case(
        [
            {"code": "ONE", "name": "one", "height": 1},
            {"code": "TWO", "name": "one", "height": 9001},
            {"code": "SIX", "name": "six", "height": -501},
            {"code": "TEN", "name": "Schiphol", "height": None},
        ],
        [flight("ONE", "XXX"), flight("YYY", "XXX"), *(flight("ONE", end) for end in ("TWO", "ONE", "SIX"))],
    ),
    "twice": Case(
        [{"code": "ONE", "name": "a", "height": 1}, {"code": "ONE", "name": "b", "height": 2}],
        [flight("ONE", "ONE"), flight("ONE", "ONE")],
    ),
}
UNREADABLE = Case(
    [{"code": "ONE", "name": "a", "height": "high"}, {"code": "TWO", "name": "b", "height": "7"}],
    [flight("ONE", "TWO", 7), {"origin": None, "dest": "TWO", "miles": 8}],
)


class World:
    """A graph with types for every source, and a fresh branch for every load."""

    def __init__(self, place: Path, sources: Sequence[str]) -> None:
        self.place = place
        self.kinds = sources
        texts = (TYPES.replace("#", str(n)) + EDGES[n % 2] for n in range(len(sources)))
        schema = "".join(texts)
        omnigraph.init(place / "g", schema)
        self.graph(BulkSettings()).load(**self.records(BEFORE), mode="append")
        self._numbers = count()

    def graph(self, settings: BulkSettings) -> Graph:
        return omnigraph.open(self.place / "g", settings=Settings(bulk=settings))

    def records(self, case: Case) -> dict[str, Any]:
        """A case for all types, each as a file of JSON Lines."""
        return self._given(case, lambda name, rows, _: file(self.place, name, rows, "jsonl"))

    def sources(self, case: Case) -> dict[str, Any]:
        """A case for all types, each from its own kind of source."""
        return self._given(case, self._source)

    def _source(self, name: str, rows: Rows, number: int) -> Any:
        kind = self.kinds[number]
        if kind in HELD:
            return HELD[kind](rows)
        format_name, _, packing = kind.partition(".")
        return file(self.place, name, rows, format_name, f".{packing}" if packing else "")

    def _given(self, case: Case, make: Any) -> dict[str, Any]:
        given: dict[str, Any] = {"nodes": {}, "edges": {}}
        for number in range(len(self.kinds)):
            given["nodes"][f"Airport{number}"] = make(f"airports{number}", case.airports, number)
            flights = make(f"flights{number}", case.flights, number)
            given["edges"][f"Flies{number}"] = Source(flights, from_="origin", to="dest")
        return given

    def tried(
        self, given: Mapping[str, Any], mode: str, engine: str, settings: BulkSettings, **options: Any
    ) -> Outcome:
        """What a load into a branch of its own comes to, with the bad records that it wrote down."""
        graph, branch = self.graph(settings), f"b{next(self._numbers)}"
        bad = self.place / "bad.jsonl"
        if options.get("skip_bad"):
            options["bad_records"] = str(bad)
        graph.create_branch(branch)
        found = outcome(graph, None, mode, engine=engine, branch=branch, shown=str(self.place), **given, **options)
        assert left_behind(graph) == []
        if bad.exists():
            entries = [json.loads(line) for line in bad.read_text().splitlines()]
            found["bad records"] = sorted(entries, key=repr)
            bad.unlink()
        found.pop("branch", None)
        found.pop("branches", None)
        return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"), SOURCES)


@pytest.fixture(scope="module")
def small_world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("small"), SOME)


IN_MEMORY = BulkSettings()
STAGED = BulkSettings(small_load=0, rows_per_file=2)
SLICED = small_slices(40, rows_per_file=2)
QUICK = [("again", "merge")]
LONG = [
    ("wrong", "append"),
    ("good", "append"),
    ("good", "merge"),
    ("good", "overwrite"),
    ("again", "append"),
    ("wrong", "merge"),
    ("wrong", "overwrite"),
    ("twice", "append"),
]


@pytest.mark.parametrize(
    ("case", "mode"), [*QUICK, *(pytest.param(case, mode, marks=pytest.mark.long) for case, mode in LONG)]
)
def test_sources_modes_and_engines_of_this_process(world: World, case: str, mode: str) -> None:
    rows, all_told = CASES[case], {"max_errors": 1000}
    expected = world.tried(world.records(rows), mode, "local", IN_MEMORY, **all_told)
    found = world.tried(world.sources(rows), mode, "local", IN_MEMORY, **all_told)
    assert without_places(found) == without_places(expected)
    for engine, settings in (("local", STAGED), ("tasks", SLICED)):
        assert world.tried(world.sources(rows), mode, engine, settings, **all_told) == found, engine


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "options"),
    [
        (CASES["wrong"], {"skip_bad": True}),
        (CASES["wrong"], {"max_errors": 3}),
        (UNREADABLE, {"max_errors": 3}),
        (UNREADABLE, {"skip_bad": True}),
    ],
)
def test_bad_rows_in_this_process(world: World, case: Case, options: dict[str, Any]) -> None:
    found = [
        world.tried(world.sources(case), "merge", engine, settings, **options)
        for engine, settings in (("local", STAGED), ("tasks", SLICED))
    ]
    assert found[0] == found[1]
    assert "error" in found[0] or found[0]["bad records"]


ON_SPARK = [
    ("rows of every kind", CASES["good"], "append"),
    ("rows that are there", CASES["again"], "merge"),
    ("rows that replace all", CASES["good"], "overwrite"),
    ("rules that are broken", CASES["wrong"], "append"),
    ("rows that cannot be read", UNREADABLE, "append"),
]


@pytest.mark.parametrize(("case", "mode"), [pytest.param(*rest, id=name) for name, *rest in ON_SPARK])
def test_sources_and_modes_on_spark(small_world: World, spark: SparkSession, case: Case, mode: str) -> None:
    expected = small_world.tried(small_world.sources(case), mode, "local", STAGED)
    assert small_world.tried(small_world.sources(case), mode, "spark", STAGED, spark=spark) == expected


@pytest.mark.parametrize("case", [CASES["wrong"], UNREADABLE], ids=["wrong", "unreadable"])
def test_bad_rows_on_spark(tmp_path: Path, spark: SparkSession, case: Case) -> None:
    """Of few sources, as every rule of every type is a join of its own there."""
    world = World(tmp_path, ("csv.gz", "generator"))
    expected = world.tried(world.sources(case), "merge", "local", STAGED, skip_bad=True)
    assert world.tried(world.sources(case), "merge", "spark", STAGED, spark=spark, skip_bad=True) == expected


def without_places(found: Outcome) -> Outcome:
    """An outcome in which sources have no names, and rows are counted without the header of their file."""
    if "error" not in found or found["error"][0] != "ConstraintViolation":
        return found
    name, total, listed = found["error"]
    told = [(line if line is None else line - headers(source), *rest) for source, line, *rest in listed]
    return {**found, "error": (name, total, sorted(told, key=repr))}


def headers(source: str | None) -> int:
    return int(source is not None and (".csv" in source or ".tsv" in source))
