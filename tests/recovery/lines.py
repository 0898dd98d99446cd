"""Threads of one process that wait in line for a branch, so that the first of them commits all their changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tests.recovery.racers import once, together
from tests.recovery.victims import connect
from tests.stores import Store

from omnigraph import Graph, failpoints
from omnigraph.storage.locks import branch_lock
from omnigraph.write.mutations.requests import MutationResult

INSERT = "query add($n: String) { insert Person { name: $n } }"


def in_line(graph: Graph, action: Callable[[str], Any], names: Sequence[str], branch: str = "main") -> list[Any]:
    """Do something for each name in a thread of its own: what each returned, or its error.

    The thread that gets the lock first waits until all others are in line.
    """
    turns = graph._repository.locks._turns

    def wait_for_others() -> None:
        until = time.monotonic() + 60
        while len(turns[branch_lock(branch)].offers()) < len(names) - 1:
            assert time.monotonic() < until, "the others do not come"
            time.sleep(0.001)

    with failpoints.armed("write.after_lock", once(wait_for_others)):
        return together(action, names)


def insert_in_line(graph: Graph, names: Sequence[str], branch: str = "main") -> list[Any]:
    """Insert people in threads that wait in line."""
    return in_line(graph, lambda name: graph.mutate(INSERT, {"n": name}, branch=branch), names, branch)


def insert_behind(graph: Graph, first: str, names: Sequence[str]) -> None:
    """Insert people: this thread the first, and when it has the lock, others in threads that wait in line."""
    turns = graph._repository.locks._turns

    def bring_others() -> None:
        waiting.extend(pool.submit(graph.mutate, INSERT, {"n": name}) for name in names)
        until = time.monotonic() + 60
        while len(turns[branch_lock("main")].offers()) < len(names):
            assert time.monotonic() < until, "the others do not come"
            time.sleep(0.001)

    waiting: list[Future[MutationResult]] = []
    with ThreadPoolExecutor(len(names)) as pool:
        with failpoints.armed("write.after_lock", once(bring_others)), graph._repository.locks.arriving("main"):
            graph.mutate(INSERT, {"n": first})
        for each in waiting:
            each.result()


def insert_and_die(store: Store, names: Sequence[str], branch: str) -> None:
    """In a child that a failpoint kills: insert people in line."""
    insert_in_line(connect(store), names, branch)
