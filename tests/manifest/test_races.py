"""One winner: many processes publish at once, and what was acknowledged is there, once, in one chain."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from tests.manifest.racers import SHARED, Report, creating, on_own_branch, with_lock, without_lock
from tests.manifest.support import create_branch, new_graph, schema
from tests.processes import children, start_together
from tests.sampling import quick_and_long
from tests.stores import Store

from omnigraph.errors import GraphExists
from omnigraph.graph import Graph
from omnigraph.manifest.publisher import COMMIT_TAIL
from omnigraph.manifest.repository import Repository, _refuse_existing, open_existing

RACERS = 8
ON_AN_OBJECT_STORE = int(os.environ.get("OMNIGRAPH_RACE_CHANGES", "10"))
"""Changes per process on the S3 server, where each takes long; `make torture` asks for the full 200."""


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
    acknowledged = Counter(dict.fromkeys(tables, 1))
    for report in reports:
        acknowledged.update({key: len(ids) for key, ids in report.acknowledged.items()})
        assert set(report.lost) <= {f"ExpectedVersionMismatch {SHARED}"}
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


@pytest.mark.long
def test_on_a_disk(local_store: Store) -> None:
    run(local_store, with_lock, changes=200)


@pytest.mark.long
def test_on_an_object_store(s3_store: Store) -> None:
    run(s3_store, with_lock, changes=ON_AN_OBJECT_STORE)


@pytest.mark.parametrize("changes", quick_and_long(8, 20))
def test_on_a_disk_by_compare_and_swap_alone(local_store: Store, changes: int) -> None:
    run(local_store, without_lock, changes=changes)


def test_one_of_many_creates_the_graph(shared_store: Store) -> None:
    with children(*((creating, shared_store, number) for number in range(4))) as racers:
        start_together(racers)
        told = [child.hear() for child in racers]
    assert sorted(told) == ["created", *["there is one"] * 3]
    graph = Graph(open_existing(shared_store.address, read_only=True))
    (commit,) = graph.commits()
    assert commit.actor_id == f"racer-{told.index('created')}"
    assert len(graph.snapshot().tables) == len(graph.catalog.nodes) == 2


@pytest.mark.parametrize("moment", ["has", "exists"])
def test_a_creation_that_ends_while_another_one_looks_is_a_graph(moment: str, local_store: Store) -> None:
    """Not half a graph: whichever of its files the other one has looked for by then."""
    repository = Repository.at(local_store.address)
    looks: Iterator[Callable[[], object]] = iter([lambda: new_graph(local_store, schema(1))])

    class Interrupted:
        """The objects of a store, of which one look lets another process create the graph first."""

        def __getattr__(self, name: str) -> Any:
            if name == moment:
                next(looks, lambda: None)()
            return getattr(repository.objects, name)

    watched = replace(repository, objects=Interrupted())
    with pytest.raises(GraphExists):
        _refuse_existing(watched, force=False)


def test_on_branches_of_their_own(local_store: Store) -> None:
    """Nobody conflicts, and nobody's commits are lost on the way to the archive."""
    repository = new_graph(local_store, schema(1))
    names = ["a", "b", "c", "d"]
    for name in names:
        create_branch(repository, name)
    changes = COMMIT_TAIL + 10
    with children(*((on_own_branch, local_store, name, changes) for name in names)) as racers:
        start_together(racers)
        published = {name: json.loads(child.hear()) for name, child in zip(names, racers, strict=True)}
    graph = Graph(open_existing(local_store.address, read_only=True))
    for name in names:
        history = [commit.graph_commit_id for commit in graph.commits(name, limit=10**6)]
        assert history[:-1] == published[name][::-1]


@pytest.mark.long
def test_on_an_object_store_by_compare_and_swap_alone(s3_store: Store) -> None:
    run(s3_store, without_lock, changes=4)
