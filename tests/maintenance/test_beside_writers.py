"""Maintenance beside writers and readers, in this process and in others: none of them fails because of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from tests.history.test_diff import content, person
from tests.maintenance.looks import ids
from tests.maintenance.test_optimize import PERSON, new_graph
from tests.processes import children, ready, start_together
from tests.recovery.racers import once
from tests.recovery.scenes import assert_settled
from tests.recovery.victims import connect
from tests.sampling import quick_and_long, sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph, MaintenancePolicy, failpoints
from omnigraph.errors import ManifestConflict

MAINTENANCE: dict[str, Callable[[Graph], object]] = {
    "optimize": lambda graph: graph.optimize(),
    "indexes": lambda graph: graph.ensure_indices(),
    "maintain": lambda graph: graph.maintain(MaintenancePolicy(small_files=2, index_lag=0)),
}
NAMES = ("p0", "p1", "p2", "p3", "q0")
WRITES: dict[str, Callable[[Graph], object]] = {
    "update": lambda graph: graph.mutate('query q() { update Person set { age: 5 } where name = "p0" }'),
    "delete": lambda graph: graph.mutate('query q() { delete Person where name = "p0" }'),
    "overwrite": lambda graph: graph.load([person(name) for name in NAMES], mode="overwrite"),
    "merge": lambda graph: graph.merge("dev"),
    "reset": lambda graph: graph.reset(graph.commits()[2].graph_commit_id),
}
"""Writes that fail if another writer has changed what they read."""


@pytest.mark.parametrize(("write", "maintenance"), sampled(product(WRITES, MAINTENANCE), 4))
def test_a_write_that_meets_maintenance_is_prepared_again(
    local_store: Store, write: str, maintenance: str
) -> None:
    """No row has changed, so there is nothing to be told about."""
    graph, other = new_graph(local_store), omnigraph.open(local_store.uri)
    graph.create_branch("dev")
    graph.load([person("r0")], mode="append", branch="dev")
    graph.load([person("r1")], mode="append")
    with failpoints.armed("write.after_stage", once(lambda: MAINTENANCE[maintenance](other))):
        WRITES[write](graph)
    kinds = [commit.kind for commit in graph.commits()]
    assert kinds[0] not in ("optimize", "ensure_indices")
    assert kinds[1] in ("optimize", "ensure_indices")
    assert_settled(graph)


def test_a_write_that_meets_maintenance_and_another_write_fails_as_ever(local_store: Store) -> None:
    graph, other = new_graph(local_store), omnigraph.open(local_store.uri)

    def meanwhile() -> None:
        other.optimize()
        other.load([person("p0", age=9)], mode="merge")

    with failpoints.armed("write.after_stage", once(meanwhile)), pytest.raises(ManifestConflict):
        WRITES["update"](graph)
    assert ids(graph, PERSON, "age = 9") == ["p0"]


def write(store: Store, name: str, rounds: int) -> None:
    """Insert, change and delete nodes of a branch of this writer's own; every write has to succeed."""
    graph = connect(store)
    ready()
    for number in range(rounds):
        own = f"{name}{number}"
        graph.load([person(own, age=number), person(f"{own}-gone")], mode="append", branch=name)
        graph.mutate(
            f'query q() {{ update Person set {{ age: {number + 100} }} where name = "{own}" }}', branch=name
        )
        graph.mutate(f'query q() {{ delete Person where name = "{own}-gone" }}', branch=name)


def insert(store: Store, name: str, rounds: int) -> None:
    """Insert nodes into main; every write has to succeed."""
    graph = connect(store)
    ready()
    for number in range(rounds):
        graph.load([person(f"{name}{number}", age=number)], mode="append")


def read(store: Store, rounds: int) -> None:
    """Read old and new states; every read has to succeed."""
    graph = omnigraph.open(store.uri, read_only=True, storage_options=store.options)
    first = graph.snapshot()
    ready()
    rows = content(graph, first)
    for _ in range(rounds):
        found = graph.query("query q() { match { $p: Person } return { count($p) as n } }").rows
        assert found[0]["n"] >= len(rows[PERSON])
        assert content(graph, first) == rows


@pytest.mark.parametrize("rounds", quick_and_long(5, 25))
def test_nothing_fails_beside_it(local_store: Store, rounds: int) -> None:
    check_nothing_fails(local_store, rounds)


@pytest.mark.long
def test_nothing_fails_beside_it_on_an_object_store(s3_store: Store) -> None:
    check_nothing_fails(s3_store, 6)


def check_nothing_fails(store: Store, rounds: int) -> None:
    graph = new_graph(store)
    for name in ("a", "b"):
        graph.create_branch(name)
    before = len(content(graph, graph.snapshot())[PERSON])
    tasks = [(write, store, "a", rounds), (write, store, "b", rounds), (insert, store, "m", rounds)]
    with children(*tasks, (insert, store, "n", rounds), (read, store, rounds), (tend, store, rounds)) as started:
        start_together(started)
        for child in started:
            child.join()
    again = connect(store)
    assert len(content(again, again.snapshot())[PERSON]) == before + 2 * rounds
    for name in ("a", "b"):
        ages = {f"{name}{number}": number + 100 for number in range(rounds)}
        found = content(again, again.snapshot(name))[PERSON]
        assert {each: found[each]["age"] for each in found if each in ages} == ages
        assert len(found) == before + rounds
    assert again.maintain(MaintenancePolicy(small_files=2, index_lag=0)).failures == ()
    assert again.doctor().is_healthy
    assert_settled(again)


def tend(store: Store, rounds: int) -> None:
    """Maintain the graph again and again; no step may fail."""
    graph = connect(store)
    ready()
    for _ in range(rounds):
        report = graph.maintain(MaintenancePolicy(small_files=2, index_lag=0))
        assert report.failures == (), report.failures
