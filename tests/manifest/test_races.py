"""One winner: many processes publish at once, and what was acknowledged is there, once, in one chain."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

from omnigraph.graph import Graph
from omnigraph.manifest.repository import open_existing
from tests.manifest.racers import SHARED, Report, with_lock, without_lock
from tests.manifest.support import new_graph, schema
from tests.processes import children, start_together
from tests.stores import Store

RACERS = 8


def run(store: Store, racer: Callable[[Store, int, int], None], changes: int) -> None:
    """Let the racers race, then hold what they were told against what is there."""
    new_graph(store, schema(RACERS + 1))
    with children(*((racer, store, number, changes) for number in range(RACERS))) as racers:
        start_together(racers)
        reports = [Report(**json.loads(child.hear())) for child in racers]
        for child in racers:
            child.join()
    graph = Graph(open_existing(store.address, read_only=True))
    _check_tables(graph, reports, changes)
    _check_history(graph, reports)


def _check_tables(graph: Graph, reports: list[Report], changes: int) -> None:
    """Every table moved once for each change that was acknowledged, and only the shared one had losers."""
    tables = graph.snapshot().tables
    acknowledged = Counter({key: 1 for key in tables})
    for report in reports:
        acknowledged.update({key: len(ids) for key, ids in report.acknowledged.items()})
        assert set(report.lost) <= {SHARED}
        assert sum(map(len, report.acknowledged.values())) + sum(report.lost.values()) == changes
    assert {key: pin.table_version for key, pin in tables.items()} == acknowledged


def _check_history(graph: Graph, reports: list[Report]) -> None:
    """The history is one chain without gaps, of exactly the commits that were acknowledged."""
    commits = graph.commits(limit=10**6)[::-1]
    published = [commit.graph_commit_id for commit in commits if commit.kind != "init"]
    told = [id_ for report in reports for ids in report.acknowledged.values() for id_ in ids]
    assert sorted(published) == sorted(told)
    assert [commit.manifest_version for commit in commits] == list(range(1, len(commits) + 1))
    assert [commit.parents for commit in commits[1:]] == [(commit.graph_commit_id,) for commit in commits[:-1]]
    assert graph.snapshot().commit == commits[-1]


def test_on_a_disk(local_store: Store) -> None:
    run(local_store, with_lock, changes=200)


def test_on_an_object_store(s3_store: Store) -> None:
    run(s3_store, with_lock, changes=12)


def test_on_a_disk_by_compare_and_swap_alone(local_store: Store) -> None:
    run(local_store, without_lock, changes=30)


def test_on_an_object_store_by_compare_and_swap_alone(s3_store: Store) -> None:
    run(s3_store, without_lock, changes=6)
