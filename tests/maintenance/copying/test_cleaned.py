"""Copies of graphs whose history was cleaned up: what was kept is there, and the rest is gone in the same way."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path

import pytest
from tests.maintenance.copying.scenes import glance, names, person, small, states, write_and_merge
from tests.stores import local_store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import HistoryReclaimed

NOW = dt.timedelta(0)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """A graph with a tag and a branch at states that are older than what cleanup leaves of main."""
    graph = small(local_store(tmp_path))
    for number in range(6):
        graph.load([person(f"P{number}")], mode="append")
    graph.cleanup(keep=2, grace=NOW, confirm=True)
    return graph


def test_a_clone_has_what_cleanup_has_left(graph: Graph, tmp_path: Path) -> None:
    seen = states(graph)
    assert any(isinstance(state, str) for state in seen.values()), "some states are gone"
    before = glance(graph)
    graph.clone(tmp_path / "copy")
    graph.backup(tmp_path / "backups")
    shutil.rmtree(graph.address)
    omnigraph.restore(tmp_path / "backups", tmp_path / "restored")
    for name in ("copy", "restored"):
        copy = omnigraph.open(tmp_path / name)
        assert (states(copy), glance(copy)) == (seen, before)
        assert copy.doctor().findings == ()
        assert names(copy) >= {"Ada", "P5"}
        write_and_merge(copy)


def test_an_older_copy_takes_over_what_was_cleaned(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    graph.clone(tmp_path / "copy")
    for number in range(6):
        graph.load([person(f"P{number}")], mode="append")
    graph.cleanup(keep=2, grace=NOW, confirm=True)
    graph.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    assert names(copy) == names(graph)
    assert names(copy, "dev") == names(graph, "dev")
    write_and_merge(copy)


def test_without_history(graph: Graph, tmp_path: Path) -> None:
    graph.clone(tmp_path / "copy", history=False)
    shutil.rmtree(graph.address)
    copy = omnigraph.open(tmp_path / "copy")
    assert copy.doctor().findings == ()
    write_and_merge(copy)


def test_a_branch_whose_ancestor_is_cleaned_at_its_fork_is_not_copied_alone(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(HistoryReclaimed, match="copy all branches"):
        graph.clone(tmp_path / "copy", branch="dev")
    assert not (tmp_path / "copy").exists()


def test_a_copy_can_be_cleaned_up(tmp_path: Path) -> None:
    graph = small(local_store(tmp_path))
    for number in range(4):
        graph.load([person(f"P{number}")], mode="append")
    graph.clone(tmp_path / "copy")
    copy = omnigraph.open(tmp_path / "copy")
    copy.cleanup(keep=1, grace=NOW, confirm=True)
    assert names(copy) == names(graph)
    assert copy.doctor().findings == ()
    write_and_merge(copy)
