"""Graphs of older releases: read as they are, and brought up to date by the first writer, come what may."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import lance
import pytest
from tests.manifest.legacy import ACTORS, HISTORIES, PERSON, VERSIONS, LegacyGraph, write_graph, write_long_graph
from tests.manifest.support import files, publish

import omnigraph
from omnigraph.errors import BranchInUse, UpgradeRequired
from omnigraph.graph import Graph
from omnigraph.manifest.stamp import EVOLVED_SCHEMA_VERSION, INTERNAL_SCHEMA_VERSION
from omnigraph.storage import layout

STAMPS = pytest.mark.parametrize("stamp", [1, 2, 3])


def shown(graph: Graph) -> dict[str, Any]:
    """Everything a user sees of a graph, but for the manifest versions a migration adds."""
    branches = graph.branches()
    return {
        "branches": [(branch.name, branch.parent, branch.fork_version) for branch in branches],
        "tables": {branch.name: graph.snapshot(branch.name).tables for branch in branches},
        "commits": {branch.name: graph.commits(branch.name, limit=1000) for branch in branches},
        "states": {id_: graph.snapshot(at=id_).tables for id_ in HISTORIES["main"]},
        "versions": {
            (branch.name, version): graph.snapshot(branch.name, at=version).tables
            for branch in branches
            for version in (1, 2, 3)
        },
    }


def read(root: Path) -> dict[str, Any]:
    return shown(omnigraph.open(root, read_only=True))


def stamps(root: Path) -> set[int]:
    graph = omnigraph.open(root, read_only=True)
    return {graph.snapshot(branch.name).internal_schema_version for branch in graph.branches()}


@STAMPS
class TestReadOnly:
    def test_nothing_is_written(self, tmp_path: Path, stamp: int) -> None:
        before = files(write_graph(tmp_path, stamp))
        read(tmp_path)
        assert files(tmp_path) == before

    def test_the_tables_of_every_branch_are_there(self, tmp_path: Path, stamp: int) -> None:
        tables = read(write_graph(tmp_path, stamp))["tables"]
        assert {
            branch: {key: pin.table_version for key, pin in pins.items()} for branch, pins in tables.items()
        } == VERSIONS
        assert {pin.table_branch for pin in tables["dev"].values()} == {None, "dev"}
        assert tables["main"][PERSON].location == layout.table_location(PERSON)

    def test_runs_are_not_branches_and_parents_are_known(self, tmp_path: Path, stamp: int) -> None:
        branches = read(write_graph(tmp_path, stamp))["branches"]
        assert branches == [("main", None, None), ("dev", "main", 2), ("dev.of-dev", "dev", 3)]

    def test_every_branch_has_its_own_history(self, tmp_path: Path, stamp: int) -> None:
        commits = read(write_graph(tmp_path, stamp))["commits"]
        assert {name: [c.graph_commit_id for c in found] for name, found in commits.items()} == HISTORIES
        merge, first = commits["main"][0], commits["main"][-1]
        assert (merge.parents, merge.branch, merge.manifest_version) == (("A4", "B3"), "main", 5)
        assert (first.parents, first.actor_id) == ((), "ada")
        assert {c.graph_commit_id: c.actor_id for c in commits["dev"] if c.actor_id} == ACTORS

    def test_a_page_of_history_goes_on_where_the_last_one_ended(self, tmp_path: Path, stamp: int) -> None:
        graph = omnigraph.open(write_graph(tmp_path, stamp), read_only=True)
        assert [c.graph_commit_id for c in graph.commits("dev", limit=2, after="B4")] == ["B3", "A2"]


@STAMPS
class TestReadWrite:
    def test_the_first_writer_brings_it_up_to_date_and_nobody_sees_a_difference(
        self, tmp_path: Path, stamp: int
    ) -> None:
        before = read(write_graph(tmp_path, stamp))
        graph = omnigraph.open(tmp_path)
        assert shown(graph) == before
        assert read(tmp_path) == before
        assert stamps(tmp_path) == {INTERNAL_SCHEMA_VERSION}

    def test_the_second_writer_finds_nothing_to_do(self, tmp_path: Path, stamp: int) -> None:
        omnigraph.open(write_graph(tmp_path, stamp))
        before = files(tmp_path)
        omnigraph.open(tmp_path)
        assert files(tmp_path) == before

    def test_the_key_is_marked_and_the_runs_are_swept(self, tmp_path: Path, stamp: int) -> None:
        omnigraph.open(write_graph(tmp_path, stamp))
        manifest = lance.dataset(str(tmp_path / layout.MANIFEST))
        assert manifest.schema.field("object_id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}
        assert sorted(manifest.branches.list()) == ["dev", "dev.of-dev"]

    def test_the_history_goes_on_from_each_branchs_own_head(self, tmp_path: Path, stamp: int) -> None:
        repository = omnigraph.open(write_graph(tmp_path, stamp))._repository
        for name, history in HISTORIES.items():
            head = publish(repository, PERSON, branch=repository.branches.find(name).ref).head
            assert head is not None
            assert head.parents == (history[0],)
        graph = omnigraph.open(tmp_path)
        assert [c.graph_commit_id for c in graph.commits("dev")[1:]] == HISTORIES["dev"]

    def test_branches_are_branches_like_any_other(self, tmp_path: Path, stamp: int) -> None:
        graph = omnigraph.open(write_graph(tmp_path, stamp))
        with pytest.raises(BranchInUse):
            graph.delete_branch("dev")
        graph.delete_branch("dev.of-dev")
        graph.delete_branch("dev")
        assert [branch.name for branch in graph.branches()] == ["main"]
        again = graph.create_branch("dev")
        assert again.native != "dev"
        assert [c.graph_commit_id for c in graph.commits("dev")] == HISTORIES["main"]


def open_and_die(root: Path, failpoint: str) -> bool:
    """Open a graph for writing in a process that dies at a failpoint; did it?"""
    code = "import sys, omnigraph; omnigraph.open(sys.argv[1])"
    environment = os.environ | {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"}
    ended = subprocess.run([sys.executable, "-c", code, str(root)], env=environment, check=False)
    assert ended.returncode in (0, -signal.SIGKILL)
    return ended.returncode != 0


@pytest.mark.long
class TestCrashes:
    def test_killed_between_any_two_steps_it_goes_on_from_there(self, tmp_path: Path) -> None:
        before = read(write_graph(tmp_path, stamp=1))
        deaths = 0
        while open_and_die(tmp_path, "migrate.between_steps"):
            deaths += 1
            assert read(tmp_path) == before
        assert deaths == 3 * 3, "three branches, three steps"
        assert stamps(tmp_path) == {INTERNAL_SCHEMA_VERSION}

    def test_killed_within_a_step_it_runs_the_step_again(self, tmp_path: Path) -> None:
        before = read(write_graph(tmp_path, stamp=3))
        for _ in range(3):
            for failpoint in ("publish.before_stage", "publish.before_commit", "publish.after_commit"):
                assert open_and_die(tmp_path, failpoint)
                assert read(tmp_path) == before
        assert not open_and_die(tmp_path, "publish.before_stage")
        assert stamps(tmp_path) == {INTERNAL_SCHEMA_VERSION}
        assert read(tmp_path) == before


@pytest.mark.parametrize("read_only", [True, False])
def test_a_graph_from_the_future_is_refused_and_left_alone(tmp_path: Path, read_only: bool) -> None:
    future = LegacyGraph(tmp_path, EVOLVED_SCHEMA_VERSION + 1)
    future.start()
    before = files(tmp_path)
    with pytest.raises(UpgradeRequired) as caught:
        omnigraph.open(tmp_path, read_only=read_only)
    assert (caught.value.found, caught.value.known) == (EVOLVED_SCHEMA_VERSION + 1, EVOLVED_SCHEMA_VERSION)
    assert files(tmp_path) == before


def test_the_whole_of_a_long_history_stays_reachable(tmp_path: Path) -> None:
    write_long_graph(tmp_path, commits=200)
    expected = [f"A{number}" for number in range(200, 0, -1)]
    assert [c.graph_commit_id for c in omnigraph.open(tmp_path, read_only=True).commits(limit=999)] == expected
    graph = omnigraph.open(tmp_path)
    assert [c.graph_commit_id for c in graph.commits(limit=999)] == expected
    assert graph.commit("A7").manifest_version == 7
    assert graph.snapshot(at="A7").tables[PERSON].table_version == 7
    head = publish(graph._repository, PERSON).head
    assert head is not None
    assert head.parents == ("A200",)
