"""Loads that are killed, from every kind of source: the old rows or the new ones, and nothing that stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.bulk.loading import left_behind, load_by_tasks, rows_of
from tests.bulk.sources import HELD, file
from tests.cli.command import MAIN
from tests.processes import PATIENCE, see_killed
from tests.sampling import sampled

import omnigraph
from omnigraph.graph import Graph
from omnigraph.settings import BulkSettings, Settings

SCHEMA = """
node Airport { code: String @key  height: I32? }
edge Flies: Airport -> Airport { miles: I32?  @key(src, dst) }
"""
AIRPORTS = [{"code": "AMS", "height": -3}, {"code": "JFK", "height": 13}, {"code": "NRT", "height": 41}]
FLIGHTS = [{"from": "AMS", "to": "JFK", "miles": 3635}, {"from": "JFK", "to": "NRT", "miles": 6745}]
KINDS = ("csv", "parquet", "arrow", "generator")
BEFORE_COMMIT = ("job.after_record", "load.after_stage", "load.after_check", "write.after_lock")
AROUND_COMMIT = (
    "write.after_sidecar",
    "write.between_tables",
    "write.after_tables",
    "publish.before_commit",
    "publish.after_commit",
    "write.after_publish",
    "write.after_sidecar_delete",
)


def opened(place: Path) -> Graph:
    """The graph, with every load as a job that stages files."""
    return omnigraph.open(place / "g.omni", settings=Settings(bulk=BulkSettings(small_load=0)))


def sources(place: Path, kind: str) -> dict[str, Any]:
    """The rows of both types from a kind of source."""
    if kind in HELD:
        return {"nodes": {"Airport": HELD[kind](AIRPORTS)}, "edges": {"Flies": HELD[kind](FLIGHTS)}}
    airports, flights = file(place, "airports", AIRPORTS, kind), file(place, "flights", FLIGHTS, kind)
    return {"nodes": {"Airport": airports}, "edges": {"Flies": flights}}


def load(place: Path, kind: str) -> None:
    opened(place).load(**sources(place, kind), mode="merge")


def load_tasks(place: Path, kind: str) -> None:
    load_by_tasks(opened(place), **sources(place, kind), mode="merge")


def ingest(place: Path) -> None:
    """A small load into a branch that it forks, in the memory of this process."""
    omnigraph.open(place / "g.omni").ingest([{"type": "Airport", "data": {"code": "TLS"}}], "review")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a graph that has one of the airports."""
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    graph.load([{"type": "Airport", "data": {"code": "AMS", "height": 0}}], mode="append")
    return tmp_path


def check_left(place: Path) -> None:
    """The graph is as before or as after; cleaning up leaves nothing, and the load can be done again."""
    heights = {row["code"]: row["height"] for row in rows_of(opened(place))["node:Airport"]}
    new = {row["code"]: row["height"] for row in AIRPORTS}
    assert heights in ({"AMS": 0}, new)
    opened(place).clean_jobs()
    load(place, "table")
    graph = opened(place)
    rows = rows_of(graph)
    assert {row["code"]: row["height"] for row in rows["node:Airport"]} == new
    assert len(rows["edge:Flies"]) == len(FLIGHTS)
    assert left_behind(graph) == []
    assert graph.jobs() == []


CASES = [(failpoint, kind) for kind in KINDS for failpoint in (*BEFORE_COMMIT, *AROUND_COMMIT)]


@pytest.mark.parametrize(("failpoint", "kind"), sampled(CASES, 4))
def test_a_load_in_this_process(place: Path, failpoint: str, kind: str) -> None:
    see_killed(failpoint, load, place, kind)
    check_left(place)


@pytest.mark.parametrize("kind", sampled(("generator", "table"), 1))
def test_rows_that_are_written_down_for_tasks(place: Path, kind: str) -> None:
    see_killed("load.after_spool", load_tasks, place, kind)
    assert any(path.is_file() for path in (place / "g.omni" / "__jobs").rglob("rows/*"))
    check_left(place)


INGEST_AT = ("branch_create.before_ref", "branch_create.after_ref", "write.after_lock", "write.after_sidecar")


@pytest.mark.parametrize("failpoint", sampled(INGEST_AT, 2))
def test_a_small_load_into_a_branch_of_its_own(place: Path, failpoint: str) -> None:
    """The branch belongs to the job: it is removed with it, and the next attempt makes or finds its own."""
    see_killed(failpoint, ingest, place)
    graph = opened(place)
    assert [job.record.forks for job in graph.jobs()] == [True]
    graph.clean_jobs()
    assert graph.jobs() == []
    if failpoint != "write.after_sidecar":
        assert [branch.name for branch in graph.branches()] == ["main"]
    ingest(place)
    assert sorted(row["code"] for row in rows_of(opened(place), "review")["node:Airport"]) == ["AMS", "TLS"]
    assert left_behind(opened(place)) == []


def test_a_small_load_that_forks_leaves_no_record(place: Path) -> None:
    ingest(place)
    graph = opened(place)
    assert graph.jobs() == []
    assert left_behind(graph) == []
    assert [branch.name for branch in graph.branches()] == ["main", "review"]


SLOW = """
import time
from omnigraph import failpoints
failpoints._armed["load.after_stage"] = lambda: (print("staged", flush=True), time.sleep(1))
"""
"""A load that waits for a moment once it has staged its files, and says so."""


def interrupted(place: Path, *words: str) -> tuple[int, str]:
    """Run a load as a user does, and send it Ctrl-C when its files are staged; how it ended, and what it said."""
    command = [sys.executable, "-c", SLOW + MAIN, "load", str(place / "g.omni"), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "staged\n"
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


@pytest.mark.parametrize("engine", [pytest.param("local"), pytest.param("spark", marks=pytest.mark.long)])
def test_ctrl_c(place: Path, engine: str) -> None:
    airports = file(place, "airports", AIRPORTS, "csv")
    skipping = ("--skip-bad",)  # so that a load of this size is a job
    code, said = interrupted(
        place, "--node", f"Airport={airports}", "--mode", "merge", "--engine", engine, *skipping
    )
    assert code == 130, said
    assert "nothing was committed" in said
    assert "Traceback" not in said
    graph = opened(place)
    assert [row["height"] for row in rows_of(graph)["node:Airport"]] == [0]
    assert left_behind(graph) == []
    assert graph.jobs() == []


ON_SPARK = """
import sys
from pathlib import Path
from tests.crash.test_loads import FLIGHTS, opened, sources
place = Path(sys.argv[1])
nodes = sources(place, "csv")["nodes"]
opened(place).load(nodes=nodes, edges={"Flies": iter(FLIGHTS)}, mode="merge", engine="spark")
"""


@pytest.mark.long
def test_a_load_on_spark_from_csv_and_a_generator(place: Path) -> None:
    command = [sys.executable, "-c", ON_SPARK, str(place)]
    armed = os.environ | {"OMNIGRAPH_FAILPOINTS": "load.after_check=kill", "OMNIGRAPH_SPARK_MASTER": "local[2]"}
    done = subprocess.run(command, env=armed, cwd=Path(__file__).parents[2], check=False, timeout=PATIENCE)
    assert done.returncode == -signal.SIGKILL
    assert left_behind(opened(place)) != []
    check_left(place)
