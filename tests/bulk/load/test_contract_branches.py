"""Loads into branches, and loads while others write."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    write,
)
from tests.bulk.scenarios import SCHEMA, WORLD
from tests.recovery.racers import once

import omnigraph
from omnigraph import failpoints
from omnigraph.errors import BranchNotFound, ConstraintViolation, KeyConflict, ManifestConflict
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("local", "tasks")


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path / "g", SCHEMA, WORLD)


def names(graph: Graph) -> list[str]:
    return [branch.name for branch in graph.branches()]


def people(graph: Graph, branch: str = "main") -> list[str]:
    return [row["id"] for row in rows_of(graph, branch)["node:Person"]]


def test_a_branch_is_forked_for_a_load_and_is_written_to_again(tmp_path: Path) -> None:
    first = write(tmp_path / "1.jsonl", [node("Person", name="dee"), edge("Knows", "dee", "ada", id="k1")])
    second = write(tmp_path / "2.jsonl", [node("Person", name="dee", age=3), node("Event", id="e1", title="new")])
    third = write(
        tmp_path / "3.jsonl", [node("Person", name="eve"), edge("Knows", "eve", "eve"), edge("Leads", "eve", "b")]
    )
    found: list[Any] = []
    for engine in ENGINES:
        graph = new_graph(tmp_path / engine, SCHEMA, WORLD)
        before = rows_of(graph)
        found.append(
            [
                outcome(graph, first, "merge", branch="review", from_="main", engine=engine, actor="me"),
                outcome(graph, second, "merge", branch="review", engine=engine),
                outcome(graph, first, "merge", branch="deep/er", from_="review", engine=engine),
                outcome(graph, third, "overwrite", branch="review", from_="main", engine=engine),
            ]
        )
        assert rows_of(graph) == before
        assert left_behind(graph) == []
    assert found[0] == found[1]
    assert [step["branch"] for step in found[1]] == [
        ("review", "main", True),
        ("review", None, False),
        ("deep/er", "review", True),
        ("review", "main", False),
    ]


@pytest.mark.parametrize(
    ("records", "mode"),
    [
        (["{"], "append"),
        ([node("Person", name="x", age=-1)], "append"),
        ([node("Person", name="ada")], "append"),
        ([edge("Knows", "ada", "nobody")], "merge"),
        ([node("Person", name="x")], "overwrite"),
    ],
)
def test_a_load_that_fails_leaves_no_branch(records: list[Any], mode: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", records)
    found = []
    for engine in ENGINES:
        graph = new_graph(tmp_path / engine, SCHEMA, WORLD)
        found.append(outcome(graph, path, mode, branch="review", from_="main", engine=engine))
        assert names(graph) == ["main"]
        assert left_behind(graph) == []
    assert found[0] == found[1]


def test_a_branch_that_is_missing(graph: Graph, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [])
    for engine in ENGINES:
        with pytest.raises(BranchNotFound):
            load_with(engine, graph, path, mode="append", branch="review")
        with pytest.raises(BranchNotFound):
            load_with(engine, graph, path, mode="append", branch="review", from_="nowhere")


def test_blobs_go_to_a_branch(tmp_path: Path) -> None:
    origin = new_graph(tmp_path / "origin", EVERY_TYPE, difficult_things(10))
    origin.export(tmp_path / "all.jsonl")
    graph = new_graph(tmp_path / "g", EVERY_TYPE)
    load_by_tasks(graph, tmp_path / "all.jsonl", mode="append", branch="review", from_="main")
    assert rows_of(graph, "review") == rows_of(origin)
    assert rows_of(graph)["node:Thing"] == []
    load_by_tasks(graph, tmp_path / "all.jsonl", mode="merge", branch="other", from_="review")
    assert rows_of(graph, "other") == rows_of(origin)
    assert names(graph) == ["main", "other", "review"]


def test_a_branch_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    path = write(tmp_path / "x.jsonl", [node("Person", name="ada", age=3), node("Person", name="dee")])
    found = []
    for engine in ("local", "spark"):
        graph = new_graph(tmp_path / engine, SCHEMA, WORLD)
        found.append(outcome(graph, path, "merge", branch="review", from_="main", engine=engine, spark=spark))
        assert left_behind(graph) == []
    assert found[0] == found[1]


@pytest.mark.parametrize("where", ["load.after_stage", "load.after_check", "write.after_stage"])
def test_somebody_adds_what_the_load_needs(graph: Graph, tmp_path: Path, where: str) -> None:
    """Checks run against the newest state, so a row that was missing before does not matter any more."""
    path = write(tmp_path / "x.jsonl", [node("Person", name="dee", age=4), edge("Knows", "dee", "ada", id="k7")])
    other = omnigraph.open(graph.address)
    change = [node("Person", name="dee", mail="dee@x"), node("Person", name="eve")]
    with failpoints.armed(where, once(lambda: other.load(change, mode="append"))):
        done = load_by_tasks(graph, path, mode="merge")
    assert dict(done.nodes) == {"Person": 1}
    [dee] = [row for row in rows_of(graph)["node:Person"] if row["id"] == "dee"]
    assert (dee["age"], dee["mail"]) == (4, None)
    assert people(graph) == ["ada", "bo", "cy", "dee", "eve"]
    assert graph.snapshot().tables["node:Person"].row_count == 5
    assert left_behind(graph) == []


@pytest.mark.parametrize("where", ["load.after_stage", "load.after_check", "write.after_stage"])
def test_somebody_takes_what_the_load_needs(graph: Graph, tmp_path: Path, where: str) -> None:
    other = omnigraph.open(graph.address)

    def disturb() -> None:
        other.mutate('query q() { insert Person { name: "dee", mail: "dee@x" } }')
        other.mutate('query q() { delete Person where name = "cy" }')

    records = [node("Person", name="eve", mail="dee@x"), edge("Knows", "ada", "cy", id="k8")]
    path = write(tmp_path / "x.jsonl", records)
    with failpoints.armed(where, once(disturb)), pytest.raises(ConstraintViolation) as raised:
        load_by_tasks(graph, path, mode="merge")
    assert [(v.rule, v.line) for v in raised.value.violations] == [("unique", 1), ("endpoint", 2)]
    taken = write(tmp_path / "y.jsonl", [node("Person", name="fay")])
    meanwhile = once(lambda: other.load([node("Person", name="fay")], mode="append"))
    with failpoints.armed(where, meanwhile), pytest.raises(KeyConflict):
        load_by_tasks(graph, taken, mode="append")
    assert left_behind(graph) == []


def test_an_overwrite_that_is_overtaken(graph: Graph, tmp_path: Path) -> None:
    """Before it looks at the branch it replaces what is there; after that nothing may change, as in process."""
    path = write(tmp_path / "x.jsonl", [node("Event", id="e1"), node("Event", id="e2"), node("Event", id="e3")])
    other = omnigraph.open(graph.address)
    for where in ("load.after_stage", "load.after_check"):
        with failpoints.armed(where, once(lambda: other.load([node("Event", title="gone")], mode="append"))):
            load_by_tasks(graph, path, mode="overwrite")
        assert [row["id"] for row in rows_of(graph)["node:Event"]] == ["e1", "e2", "e3"]
    for engine in ENGINES:
        meanwhile = once(lambda: other.load([node("Event", id="e3")], mode="merge"))
        with failpoints.armed("write.after_stage", meanwhile), pytest.raises(ManifestConflict) as raised:
            load_with(engine, graph, path, mode="overwrite")
        assert raised.value.table_key == "node:Event"
    fewer = write(tmp_path / "y.jsonl", [node("Event", id="e1"), node("Event", id="e2")])
    for engine in ENGINES:
        meanwhile = once(lambda: other.load([edge("Hosts", "b", "e3", id="h3")], mode="merge"))
        with failpoints.armed("write.after_stage", meanwhile), pytest.raises(ManifestConflict) as raised:
            load_with(engine, graph, fewer, mode="overwrite")
        assert raised.value.table_key == "edge:Hosts"
        other.mutate('query q() { delete Hosts where to = "e3" }')
    assert left_behind(graph) == []


@pytest.mark.parametrize("where", ["load.after_stage", "load.after_check"])
def test_the_parent_moves_before_the_branch_is_there(graph: Graph, tmp_path: Path, where: str) -> None:
    """The branch starts at the parent's newest state; if the load does not fit there, there is no branch."""
    path = write(tmp_path / "x.jsonl", [node("Person", name="dee")])
    other = omnigraph.open(graph.address)
    with failpoints.armed(
        "load.after_stage", once(lambda: other.load([node("Person", name="eve")], mode="append"))
    ):
        load_by_tasks(graph, path, mode="append", branch="review", from_="main")
    assert people(graph, "review") == ["ada", "bo", "cy", "dee", "eve"]
    overtaking = once(lambda: other.load([node("Person", name="fay")], mode="append", branch="review"))
    taken = write(tmp_path / "y.jsonl", [node("Person", name="fay")])
    with failpoints.armed(where, overtaking), pytest.raises(KeyConflict):
        load_by_tasks(graph, taken, mode="append", branch="review")
    taken = write(tmp_path / "z.jsonl", [node("Person", name="gil")])
    meanwhile = once(lambda: other.load([node("Person", name="gil")], mode="append"))
    with failpoints.armed("load.after_stage", meanwhile), pytest.raises(KeyConflict):
        load_by_tasks(graph, taken, mode="append", branch="later", from_="main")
    assert names(graph) == ["main", "review"]
    assert left_behind(graph) == []


def test_a_branch_that_others_use_stays(graph: Graph, tmp_path: Path) -> None:
    """The load made the branch, somebody wrote to it, and then the load failed: it is theirs now."""
    path = write(tmp_path / "x.jsonl", [node("Person", name="dee")])
    other = omnigraph.open(graph.address)
    meanwhile = once(lambda: other.load([node("Person", name="dee")], mode="append", branch="review"))
    with failpoints.armed("load.after_check", meanwhile), pytest.raises(KeyConflict):
        load_by_tasks(graph, path, mode="append", branch="review", from_="main")
    assert names(graph) == ["main", "review"]
    assert people(graph, "review") == ["ada", "bo", "cy", "dee"]


def test_a_load_that_is_interrupted_takes_its_branch_back(graph: Graph, tmp_path: Path) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    path = write(tmp_path / "x.jsonl", [node("Person", name="dee")])
    for where in ("load.after_stage", "load.after_check", "write.after_stage"):
        with failpoints.armed(where, interrupt), pytest.raises(KeyboardInterrupt):
            load_by_tasks(graph, path, mode="append", branch="review", from_="main")
        assert names(graph) == ["main"]
    assert graph.jobs() == []


def test_a_branch_that_somebody_else_forks_meanwhile_is_loaded_into(graph: Graph, tmp_path: Path) -> None:
    path = write(tmp_path / "x.jsonl", [node("Person", name="dee")])
    other = omnigraph.open(graph.address)
    meanwhile = once(lambda: other.ingest([node("Person", name="eve")], "review"))
    with failpoints.armed("load.after_stage", meanwhile):
        done = load_by_tasks(graph, path, mode="merge", branch="review", from_="main")
    assert (done.branch_created, done.base_branch) == (False, "main")
    assert people(graph, "review") == ["ada", "bo", "cy", "dee", "eve"]
    assert left_behind(graph) == []


def test_a_driver_that_is_killed_before_the_commit_leaves_its_branch_to_the_job(tmp_path: Path) -> None:
    """`jobs --clean` deletes the branch that the job has made, and nothing that was written to it since."""
    graph = new_graph(tmp_path / "g.omni", SCHEMA, WORLD)
    path = write(tmp_path / "x.jsonl", [node("Person", name="dee")])
    killed = "import os; from tests.bulk.loading import *; from omnigraph import failpoints\n" + (
        "with failpoints.armed('load.after_check', lambda: os._exit(9)):\n"
        f"    load_by_tasks(omnigraph.open({graph.address!r}), {str(path)!r}, mode='merge', "
        "branch=BRANCH, from_='main')"
    )
    for name in ("review", "kept"):
        text = killed.replace("BRANCH", repr(name))
        done = subprocess.run([sys.executable, "-c", text], cwd=Path(__file__).parents[3], check=False)
        assert done.returncode == 9
    graph.mutate('query q() { insert Person { name: "eve" } }', branch="kept")
    assert sorted(branch.name for branch in graph.branches()) == ["kept", "main", "review"]
    assert [job.record.forks for job in graph.jobs()] == [True, True]
    graph.clean_jobs()
    assert sorted(branch.name for branch in graph.branches()) == ["kept", "main"]
    assert people(graph, "kept") == ["ada", "bo", "cy", "eve"]
    assert left_behind(graph) == []
