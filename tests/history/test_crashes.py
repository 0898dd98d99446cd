"""Merges, reverts, cherry-picks and resets that are killed are wholly there or not at all, and can be repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest
from tests.history.model import State, merged_state
from tests.history.test_diff import content
from tests.history.truth import BASE, SCHEMA, write
from tests.processes import see_killed
from tests.recovery.scenes import assert_settled
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, OUTCOMES, ROLLED_FORWARD
from tests.recovery.victims import connect
from tests.sampling import sampled
from tests.stores import Store
from tests.torture.clients import short_leases

import omnigraph
from omnigraph import Graph
from omnigraph.history.merging.plans import MergeResult
from omnigraph.history.merging.undo import UndoResult

MEET = 'query q() { insert Person { name: "Gus" }  insert Knows { from: "Gus", to: "Dan" } }'
"""One commit of two tables."""


def a_graph(store: Store) -> Graph:
    """Main and dev have each changed nodes and edges; `fork` has not written, so that it shares all tables."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load(BASE, mode="append")
    graph.create_branch("dev")
    graph.create_branch("fork")
    graph.mutate(MEET, branch="dev")
    write(graph, "dev", "remove edge", 0)
    write(graph, "main", "add node", 2)
    graph.mutate('query q() { insert Person { name: "Hal" }  insert Knows { from: "Hal", to: "Eve" } }')
    return graph


def state(graph: Graph, branch: str, back: int = 0) -> State:
    """What a branch holds, or held so many commits ago."""
    return content(graph, graph.commits(branch)[back].graph_commit_id)


@dataclass(frozen=True)
class Operation:
    """What is done to which branch, and what that must come to."""

    branch: str
    run: Callable[[Graph], MergeResult | UndoResult]
    expected: Callable[[Graph], State]


OPERATIONS = {
    "merge": Operation(
        "main",
        lambda g: g.merge("dev"),
        lambda g: merged_state(state(g, "fork"), state(g, "main"), state(g, "dev"))[0],
    ),
    "merge into a branch that shares its tables": Operation(
        "fork", lambda g: g.merge("dev", "fork"), lambda g: state(g, "dev")
    ),
    "revert": Operation(
        "main",
        lambda g: g.revert(g.commits("main", kind="mutation")[0].graph_commit_id),
        lambda g: state(g, "main", 1),
    ),
    "cherry-pick": Operation(
        "main",
        lambda g: g.cherry_pick(g.commits("dev")[1].graph_commit_id),
        lambda g: merged_state(state(g, "fork"), state(g, "main"), state(g, "dev", 1))[0],
    ),
    "reset": Operation(
        "dev", lambda g: g.reset(g.commits("fork")[0].graph_commit_id, "dev"), lambda g: state(g, "fork")
    ),
}


def perform(store: Store, name: str) -> None:
    """In a process that is going to be killed; on an object store its locks are free a second later."""
    with short_leases():
        OPERATIONS[name].run(connect(store))


@pytest.mark.parametrize(("name", "failpoint"), sampled(product(OPERATIONS, OUTCOMES), 4))
def test_on_a_disk(local_store: Store, name: str, failpoint: str) -> None:
    check_killed(local_store, name, failpoint)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", ["write.after_lock", "write.between_tables", "write.after_tables"])
@pytest.mark.parametrize("name", OPERATIONS)
def test_on_an_object_store(s3_store: Store, name: str, failpoint: str) -> None:
    check_killed(s3_store, name, failpoint)


def check_killed(store: Store, name: str, failpoint: str) -> None:
    graph, operation = a_graph(store), OPERATIONS[name]
    branch = operation.branch
    before, after = state(graph, branch), operation.expected(graph)
    see_killed(failpoint, perform, store, name)
    reader = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    assert content(reader, reader.snapshot(branch)) == (after if failpoint in ALREADY_VISIBLE else before)
    again = omnigraph.open(store.uri, storage_options=store.options)
    is_done = OUTCOMES[failpoint] in (DONE, ROLLED_FORWARD)
    assert content(again, again.snapshot(branch)) == (after if is_done else before)
    assert (operation.run(again).commit is None) == is_done
    assert content(again, again.snapshot(branch)) == after
    again.mutate(
        'query q() { insert Person { name: "Ida" }  insert Knows { from: "Ida", to: "Dan" } }', branch=branch
    )
    assert_settled(again)


LINEAGE_ONLY = {
    "write.after_stage": False,
    "write.after_lock": False,
    "write.after_sidecar": False,
    "write.after_tables": False,
    "publish.before_commit": False,
    "publish.after_commit": True,
    "write.after_publish": True,
}
"""Where a merge is killed that changes no table, and whether it has happened. It needs no sidecar."""


@pytest.mark.parametrize(("failpoint", "is_done"), sampled(LINEAGE_ONLY.items(), 3))
def test_a_merge_that_changes_no_row(local_store: Store, failpoint: str, is_done: bool) -> None:
    graph = a_graph(local_store)
    graph.optimize(branch="dev")
    graph.merge("dev", "fork")
    graph.load([{"type": "Person", "data": {"name": "Dan", "age": 30}}], mode="merge", branch="fork")
    before, source = state(graph, "dev"), graph.commits("fork")[0].graph_commit_id
    see_killed(failpoint, merge_fork, local_store)
    again = omnigraph.open(local_store.uri)
    assert (source in {parent for commit in again.commits("dev") for parent in commit.parents}) == is_done
    assert again.merge("fork", "dev").outcome == ("already_up_to_date" if is_done else "fast_forward")
    assert state(again, "dev") == before
    assert_settled(again)


def merge_fork(store: Store) -> None:
    connect(store).merge("fork", "dev")
