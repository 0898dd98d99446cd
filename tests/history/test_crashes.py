"""A merge or a revert that is killed anywhere is wholly there or not at all, and can be repeated."""

from __future__ import annotations

import pytest
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, write
from tests.processes import see_killed
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph


def a_graph(store: Store) -> Graph:
    """Two branches that have changed nodes and edges, so that a merge moves two tables."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    write(graph, "dev", "add node", 1)
    write(graph, "dev", "add edge", 0)
    write(graph, "main", "set age", 2)
    return graph


def merge_dev(store: Store) -> None:
    omnigraph.open(store.uri, storage_options=store.options).merge("dev")


def revert_dev(store: Store) -> None:
    graph = omnigraph.open(store.uri, storage_options=store.options)
    graph.revert(graph.commits()[0].graph_commit_id)


@pytest.mark.parametrize("failpoint", sampled(OUTCOMES, 5))
def test_a_merge(failpoint: str, local_store: Store) -> None:
    graph = a_graph(local_store)
    before, source = content(graph, graph.snapshot()), graph.commits("dev")[0].graph_commit_id
    see_killed(failpoint, merge_dev, local_store)
    reader = omnigraph.open(local_store.uri, read_only=True)
    assert (content(reader, reader.snapshot()) != before) == (failpoint in ALREADY_VISIBLE)
    again = omnigraph.open(local_store.uri)
    is_done = OUTCOMES[failpoint] in (DONE, ROLLED_FORWARD)
    assert (content(again, again.snapshot()) != before) == is_done
    assert again.merge("dev").outcome == ("already_up_to_date" if is_done else "merged")
    merges = [commit for commit in again.commits() if commit.kind == "merge"]
    assert len(merges) == 1
    assert merges[0].parents[-1] == source
    assert [change.id for change in again.diff("dev")] == ["Alice"]


@pytest.mark.parametrize("failpoint", sampled(OUTCOMES, 2))
def test_a_revert(failpoint: str, local_store: Store) -> None:
    graph = a_graph(local_store)
    before = content(graph, graph.snapshot())
    graph.merge("dev")
    after = content(graph, graph.snapshot())
    see_killed(failpoint, revert_dev, local_store)
    again = omnigraph.open(local_store.uri)
    is_done = OUTCOMES[failpoint] in (DONE, ROLLED_FORWARD)
    assert content(again, again.snapshot()) == (before if is_done else after)
