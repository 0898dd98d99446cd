"""Branches that come and go: the next one costs what the first one cost, counted in operations of the store."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.faults import disk
from tests.faults.store import faulty_store
from tests.history.truth import BASE, SCHEMA
from tests.processes import say
from tests.stores import S3Server, Store

import omnigraph
from omnigraph import Graph

WINDOW = 12
"""Costs go up and down a little, because every so many deletions the archive of commits is put together."""


def cycle(graph: Graph, number: int) -> None:
    """Create a branch, write to it and to main, merge it and delete it."""
    branch = f"work/{number}"
    graph.create_branch(branch)
    for name, target in (("Alice", branch), ("Bob", "main")):
        graph.load([{"type": "Person", "data": {"name": name, "age": number}}], mode="merge", branch=target)
    assert graph.merge(branch).outcome == "merged"
    graph.delete_branch(branch)


def costs(store: Store, count: int, begin: Callable[[], None], counted: Callable[[], int]) -> Iterator[int]:
    """How many operations each of so many branches took, with a graph that was opened for it."""
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.load(BASE, mode="append")
    for number in range(count):
        graph = omnigraph.open(store.uri, storage_options=store.options)
        begin()
        cycle(graph, number)
        yield counted()


def check(found: list[int]) -> None:
    """The last branches took no more operations than the first ones; 2% are for renewed leases."""
    first, last = sum(found[:WINDOW]), sum(found[-WINDOW:])
    assert last <= 1.02 * first, found


@pytest.mark.long
def test_in_a_bucket(s3_server: S3Server) -> None:
    with faulty_store(s3_server) as faults:
        check(list(costs(faults.store, 3 * WINDOW, faults.forget, lambda: len(faults.journal()))))


@pytest.mark.long
def test_on_a_disk() -> None:
    check([int(line) for line in disk.heard_from(tell, 8 * WINDOW)])


def tell(count: int) -> None:
    """In a process whose file operations are counted: how many each branch took."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(str(Path(folder, "g")))
        Path(store.uri).mkdir()
        with disk.watched(Path(store.uri), Path(folder, "journal")) as watched:
            for cost in costs(store, count, watched.forget, lambda: sum(map(is_counted, watched.journal()))):
                say(cost)


def is_counted(event: disk.Event) -> bool:
    """Reads and writes are left out: a file takes one for every few thousand bytes."""
    return event.operation not in ("read", "write")
