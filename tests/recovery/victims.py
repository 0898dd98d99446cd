"""Processes that are killed: each runs one thing, which a failpoint ends."""

from __future__ import annotations

from collections.abc import Callable

from tests.processes import see_killed
from tests.recovery.scenes import WRITES, found_city
from tests.stores import Store

import omnigraph
from omnigraph import Graph
from omnigraph.manifest.repository import open_existing


def write(store: Store, name: str, branch: str) -> None:
    """One of the writes."""
    WRITES[name].run(connect(store), branch)


def recover_by_opening(store: Store, name: str, branch: str) -> None:
    omnigraph.open(store.uri, storage_options=store.options)


def recover_by_refreshing(store: Store, name: str, branch: str) -> None:
    connect(store).refresh()


def recover_by_writing(store: Store, name: str, branch: str) -> None:
    found_city(connect(store), branch)


def connect(store: Store) -> Graph:
    """A graph opened for writing, without the recovery that opening brings."""
    return Graph(open_existing(store.address, read_only=False))


TASKS: dict[str, Callable[[Store, str, str], None]] = {
    "write": write,
    "open": recover_by_opening,
    "refresh": recover_by_refreshing,
    "next write": recover_by_writing,
}


def kill_at(failpoint: str, task: str, store: Store, name: str, branch: str) -> None:
    """Run a task in a process of its own and see it die at a failpoint."""
    see_killed(failpoint, TASKS[task], store, name, branch)
