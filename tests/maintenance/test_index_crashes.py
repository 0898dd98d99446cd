"""Kill the builder anywhere: its indexes are there or they are not, no row changes, and the next run ends it."""

from __future__ import annotations

from itertools import product

import pytest
from tests.maintenance.looks import ensure, ids, indexed
from tests.maintenance.victims import kill_at
from tests.recovery.scenes import (
    BEGINNING,
    CITY,
    KNOWS,
    LIVES_IN,
    PERSON,
    WRITES,
    Contents,
    as_read,
    assert_settled,
    contents,
    found_city,
    new_graph,
    with_city,
)
from tests.recovery.test_windows import ALREADY_VISIBLE, DONE, MOVED_NOTHING, OUTCOMES, ROLLED_BACK, ROLLED_FORWARD
from tests.recovery.victims import kill_at as kill_healer_at
from tests.stores import Store

from omnigraph import Graph
from omnigraph.recovery.heal import RECOVERY_ACTOR

pytestmark = pytest.mark.long

NODE_INDEXES = {"id_btree", "name_btree"}
EDGE_INDEXES = {"id_btree", "src_btree", "dst_btree"}
EXPECTED = {
    "main": {PERSON: NODE_INDEXES, CITY: NODE_INDEXES, KNOWS: EDGE_INDEXES, LIVES_IN: EDGE_INDEXES},
    "dev": {PERSON: NODE_INDEXES, KNOWS: EDGE_INDEXES},
}
"""The tables of each branch that are its own, and what is built for them."""


def scene(store: Store, branch: str) -> tuple[Graph, Contents]:
    """A graph to index; on a branch, one that has written to some of its tables."""
    graph = new_graph(store)
    if branch == "main":
        return graph, BEGINNING
    WRITES["mutation"].run(graph, branch)
    return graph, WRITES["mutation"].effect(BEGINNING)


def built(graph: Graph, branch: str) -> dict[str, set[str]]:
    """The indexes of each of a branch's tables that has any."""
    found = {key: set(indexed(graph, key, branch)) for key in graph.snapshot(branch).tables}
    return {key: names for key, names in found.items() if names}


@pytest.mark.parametrize(("failpoint", "branch"), [*product(OUTCOMES, EXPECTED)])
def test_a_builder(local_store: Store, failpoint: str, branch: str) -> None:
    graph, before = scene(local_store, branch)
    kill_at(failpoint, local_store, branch)
    assert as_read(local_store, branch) == contents(graph, branch) == before
    assert built(graph, branch) == (EXPECTED[branch] if failpoint in ALREADY_VISIBLE else {})
    found_city(graph, branch)
    check_outcome(graph, branch, before, OUTCOMES[failpoint], moved=failpoint not in MOVED_NOTHING)
    check_again(graph, branch)


def check_outcome(graph: Graph, branch: str, before: Contents, outcome: str, *, moved: bool = True) -> None:
    """What the next write found, and what it left on record."""
    assert_settled(graph)
    assert contents(graph, branch) == with_city(before)
    happened = outcome in (ROLLED_FORWARD, DONE)
    assert built(graph, branch) == (EXPECTED[branch] if happened else {})
    due = outcome in (ROLLED_FORWARD, ROLLED_BACK)
    recorded = [(r.recovery_kind, r.writer_kind, r.recovery_for_actor, r.branch) for r in graph.recoveries()]
    assert recorded == ([(outcome, "ensure_indices", "victim", branch)] if due else [])
    kinds = [(commit.kind, commit.actor_id) for commit in graph.commits(branch)]
    assert (("ensure_indices", "victim") in kinds) == happened
    assert (("recovery", RECOVERY_ACTOR) in kinds) == (outcome == ROLLED_BACK and moved)
    assert {len(r.table_outcomes) for r in graph.recoveries()} <= {len(EXPECTED[branch])}


def check_again(graph: Graph, branch: str) -> None:
    """What was interrupted can be done again, and then there is nothing more to do."""
    before, recoveries = contents(graph, branch), graph.recoveries()
    ensure(graph, branch)
    assert contents(graph, branch) == before
    found = built(graph, branch)
    assert {key: found[key] for key in EXPECTED[branch]} == EXPECTED[branch]
    assert ids(graph, PERSON, "name = 'Ada'", branch) == ["Ada"]
    assert ensure(graph, branch).commit is None
    assert graph.recoveries() == recoveries
    assert_settled(graph)


@pytest.mark.parametrize(
    ("died", "healer_died", "healer"),
    [
        ("write.between_tables", "recovery.after_restore", "open"),
        ("write.between_tables", "recovery.after_publish", "next write"),
        ("write.between_tables", "recovery.record_audit", "refresh"),
        ("write.after_tables", "publish.before_commit", "next write"),
        ("write.after_tables", "recovery.after_audit", "open"),
    ],
)
@pytest.mark.parametrize("branch", EXPECTED)
def test_its_recovery(local_store: Store, died: str, healer_died: str, healer: str, branch: str) -> None:
    """Whoever comes to help is killed too; the end is the same."""
    graph, before = scene(local_store, branch)
    kill_at(died, local_store, branch)
    kill_healer_at(healer_died, healer, local_store, "mutation", branch)
    assert as_read(local_store, branch) == before
    found_city(graph, branch)
    check_outcome(graph, branch, before, OUTCOMES[died])
    check_again(graph, branch)


def test_the_next_builder_heals_too(local_store: Store) -> None:
    """Two die one after the other; the third undoes the one, finishes the other, and builds what is left."""
    graph = new_graph(local_store)
    kill_at("write.between_tables", local_store, "main")
    kill_at("write.after_tables", local_store, "main")
    report = ensure(graph)
    assert report.commit is None
    assert built(graph, "main") == EXPECTED["main"]
    assert [r.recovery_kind for r in graph.recoveries()] == [ROLLED_BACK, ROLLED_FORWARD]
    assert contents(graph) == BEGINNING
    assert_settled(graph)
