"""Copies of a graph that was cleaned have everything that is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.maintenance.cleanup.worlds import NOW, add, connect, create, names
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import HistoryReclaimed


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = create(local_store)
    add(graph, "Ada")
    graph.tag("v1")
    graph.create_branch("dev")
    add(graph, "Bo", branch="dev")
    for name in ("Cy", "Di", "Ed"):
        add(graph, name)
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    return graph


@pytest.mark.parametrize("history", [True, False])
def test_a_clone(graph: Graph, tmp_path: Path, history: bool) -> None:
    graph.clone(tmp_path / "copy", history=history)
    copy = connect(Store(str(tmp_path / "copy")))
    if history:
        assert names(copy, at="v1") == {"Ada"}
    with pytest.raises(HistoryReclaimed):
        names(copy, at=graph.commits()[1].graph_commit_id)
    copy.merge("dev")
    assert names(copy) == {"Ada", "Bo", "Cy", "Di", "Ed"}


def test_a_backup(graph: Graph, tmp_path: Path) -> None:
    graph.backup(tmp_path / "backups")
    add(graph, "Flo")
    graph.cleanup(keep=1, grace=NOW, confirm=True)
    graph.backup(tmp_path / "backups")
    restored = omnigraph.restore(tmp_path / "backups", tmp_path / "restored")
    assert restored is not None
    copy = connect(Store(str(tmp_path / "restored")))
    assert names(copy, at="v1") == {"Ada"}
    assert names(copy) == {"Ada", "Cy", "Di", "Ed", "Flo"}
    assert copy.cleanup(keep=1, grace=NOW, confirm=True).branches[0].also_kept == 1
    assert names(connect(Store(str(tmp_path / "restored"))), at="v1") == {"Ada"}
