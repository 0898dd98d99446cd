"""Revert, cherry-pick and reset: new commits that undo or repeat others."""

from __future__ import annotations

import pytest
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, write
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, MergeConflicts, PreconditionFailed, ReadOnlyGraph, SnapshotNotFound


@pytest.fixture
def graph(local_store: Store) -> Graph:
    graph = omnigraph.init(local_store.uri, SCHEMA)
    graph.load(BASE, mode="append")
    return graph


def head(graph: Graph, branch: str = "main") -> str:
    return graph.commits(branch)[0].graph_commit_id


class TestRevert:
    @pytest.mark.parametrize("operation", ["add node", "remove node", "add edge", "remove edge", "set age"])
    def test_it_undoes_a_commit(self, graph: Graph, operation: str) -> None:
        before = content(graph, graph.snapshot())
        write(graph, "main", operation, 1)
        undone = head(graph)
        write(graph, "main", "set city", 0) if operation != "remove node" else None
        done = graph.revert(undone, actor="ada")
        assert done.commit is not None
        assert (done.commit.kind, done.commit.message) == ("revert", f"revert {undone}")
        after = content(graph, graph.snapshot())
        for row in (*before["node:Person"].values(), *after["node:Person"].values()):
            row["city"] = None
        assert after == before

    def test_what_was_changed_since_is_a_conflict(self, graph: Graph) -> None:
        write(graph, "main", "set age", 1)
        undone = head(graph)
        write(graph, "main", "set age", 2)
        with pytest.raises(MergeConflicts, match="both branches changed age of 'Alice'"):
            graph.revert(undone)
        assert graph.revert(undone, resolve="theirs").changes == {
            "node:Person": {"insert": 0, "update": 1, "delete": 0}
        }

    def test_a_node_that_has_edges_by_now_stays(self, graph: Graph) -> None:
        write(graph, "main", "add node", 1)
        undone = head(graph)
        graph.mutate('query q() { insert Knows { from: "Eve", to: "Bob" } }')
        with pytest.raises(MergeConflicts, match="orphan_edge"):
            graph.revert(undone)

    def test_a_merge_can_be_undone_and_merged_again(self, graph: Graph) -> None:
        graph.create_branch("dev")
        write(graph, "dev", "add node", 1)
        graph.merge("dev")
        before = content(graph, graph.snapshot())
        merge = head(graph)
        graph.revert(merge)
        graph.revert(head(graph))
        assert content(graph, graph.snapshot()) == before

    def test_refusals(self, graph: Graph) -> None:
        first = graph.commits()[-1].graph_commit_id
        with pytest.raises(InvalidArgument, match="created the graph"):
            graph.revert(first)
        with pytest.raises(SnapshotNotFound):
            graph.revert("01ARZ3NDEKTSV4RRFFQ69G5FAV")
        write(graph, "main", "set age", 1)
        with pytest.raises(PreconditionFailed):
            graph.revert(head(graph), if_commit=first)
        with pytest.raises(ReadOnlyGraph):
            omnigraph.open(graph.address, read_only=True).revert(head(graph))


def test_cherry_pick(graph: Graph) -> None:
    graph.create_branch("dev")
    write(graph, "dev", "add node", 1)
    picked = head(graph, "dev")
    write(graph, "dev", "set age", 2)
    done = graph.cherry_pick(picked)
    assert done.commit is not None
    assert [c.id for c in graph.diff("dev")] == ["Alice"]
    assert graph.cherry_pick(picked).commit is None


def test_reset(graph: Graph) -> None:
    before, then = content(graph, graph.snapshot()), head(graph)
    for operation in ("add node", "remove node", "set city"):
        write(graph, "main", operation, 1)
    commits = len(graph.commits())
    assert graph.reset(then).commit is not None
    assert content(graph, graph.snapshot()) == before
    assert (len(graph.commits()), graph.reset(then).commit) == (commits + 1, None)
