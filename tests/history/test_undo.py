"""Revert, cherry-pick and reset: new commits that undo or repeat others."""

from __future__ import annotations

import random

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


class TestRevertOfSeveral:
    def write_all(self, graph: Graph) -> list[str]:
        for operation, number in (
            ("add node", 1),
            ("set age", 2),
            ("set age", 3),
            ("add edge", 0),
            ("set city", 0),
        ):
            write(graph, "main", operation, number)
        return [commit.graph_commit_id for commit in graph.commits(limit=5)]

    def test_all_of_them_in_one_commit(self, graph: Graph) -> None:
        """Whatever the order they are named in, the newest is undone first."""
        before = content(graph, graph.snapshot())
        for shuffled in range(4):
            commits = self.write_all(graph)
            count = len(graph.commits(limit=1_000))
            done = graph.revert(random.Random(shuffled).sample(commits, 5))
            assert content(graph, graph.snapshot()) == before
            assert done.commit is not None
            assert (done.of, done.commit.message) == (tuple(commits), f"revert {', '.join(commits)}")
            assert len(graph.commits(limit=1_000)) == count + 1
            assert done.changes == {
                "node:Person": {"insert": 0, "update": 1, "delete": 1},
                "edge:Knows": {"insert": 0, "update": 0, "delete": 1},
            }

    def test_it_is_like_reverting_one_after_the_other(self, graph: Graph) -> None:
        graph.create_branch("singly")
        for branch in ("main", "singly"):
            for number in range(1, 5):
                write(graph, branch, "set age", number)
                write(graph, branch, "set city" if number == 2 else "add, remove", 0)
        for branch in ("main", "singly"):
            commits = [c.graph_commit_id for c in graph.commits(branch, kind="mutation") if c.branch == branch][
                :-4
            ]
            if branch == "main":
                graph.revert(commits, branch)
            else:
                for commit in commits:
                    graph.revert(commit, branch)
        assert len(graph.diff("main", "singly")) == 0

    def test_what_was_changed_since_is_a_conflict_and_is_reported_once(self, graph: Graph) -> None:
        commits = self.write_all(graph)
        before = content(graph, graph.snapshot())
        with pytest.raises(MergeConflicts) as raised:
            graph.revert([commits[3], commits[0]])
        (conflict,) = raised.value.conflicts
        assert (conflict.id, conflict.properties) == ("Alice", ("age",))
        assert content(graph, graph.snapshot()) == before
        graph.revert([commits[3], commits[0]], choices={("node:Person", "Alice"): "ours"})
        found = graph.entity("Person", "Alice")
        assert found is not None
        assert (found["age"], found["city"]) == (3, None)

    def test_what_cancels_out_is_no_change(self, graph: Graph) -> None:
        write(graph, "main", "set age", 1)
        write(graph, "main", "set age", 30)
        commits = [commit.graph_commit_id for commit in graph.commits(limit=2)]
        assert graph.revert(commits).commit is None

    def test_a_rule_of_the_schema_is_a_conflict(self, graph: Graph) -> None:
        commits = self.write_all(graph)
        graph.mutate('query q() { insert Knows { from: "Eve", to: "Bob" } }')
        with pytest.raises(MergeConflicts, match="orphan_edge"):
            graph.revert(commits)

    def test_refusals(self, graph: Graph) -> None:
        graph.create_branch("dev")
        write(graph, "dev", "add node", 1)
        elsewhere = head(graph, "dev")
        write(graph, "main", "set age", 1)
        with pytest.raises(InvalidArgument, match="is not in the history of 'main', so there is nothing to undo"):
            graph.revert([head(graph), elsewhere])
        with pytest.raises(InvalidArgument, match="each of them once"):
            graph.revert([head(graph), head(graph)])
        with pytest.raises(InvalidArgument, match="name one commit or several"):
            graph.revert([])
        with pytest.raises(InvalidArgument, match="created the graph"):
            graph.revert([head(graph), graph.commits()[-1].graph_commit_id])
        graph.merge("dev")
        assert graph.revert([elsewhere]).commit is not None


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
