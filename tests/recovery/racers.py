"""Writers that race, as functions for other processes and as actions for threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Barrier
from typing import Any, TypeVar

from tests.processes import hear, ready, say
from tests.recovery.scenes import WRITES
from tests.recovery.victims import connect
from tests.stores import Store

from omnigraph import Graph, failpoints
from omnigraph.errors import OmniError

Item = TypeVar("Item")
LEASE = 1.0

ADD = 'query add($n: String) { insert Person { name: $n }  insert Knows { from: $n, to: "Ada" } }'


def together(action: Callable[[Item], Any], items: Sequence[Item]) -> list[Any]:
    """Do something for each item in a thread of its own, all at once; what each returned, or its error."""
    barrier = Barrier(len(items))

    def run(item: Item) -> Any:
        barrier.wait()
        try:
            return action(item)
        except OmniError as error:
            return error

    with ThreadPoolExecutor(len(items)) as pool:
        return list(pool.map(run, items))


def errors(results: Sequence[Any]) -> list[OmniError]:
    """The errors among results."""
    return [result for result in results if isinstance(result, OmniError)]


def meeting(parties: int) -> Callable[[], None]:
    """An action for a failpoint: of the first so many who come by, nobody goes on before all are there."""
    barrier, turns = Barrier(parties), count()

    def meet() -> None:
        if next(turns) < parties:
            barrier.wait(60)

    return meet


def once(action: Callable[[], object]) -> Callable[[], None]:
    """An action for a failpoint that is taken the first time only."""
    left = [action]

    def act() -> None:
        if left:
            left.pop()()

    return act


def insert_many(store: Store, prefix: str, people: int, branch: str) -> None:
    """In a child: insert people one by one."""
    graph = connect(store)
    ready()
    for number in range(people):
        graph.mutate(ADD, {"n": f"{prefix}{number}"}, branch=branch)


def with_short_leases(graph: Graph, store: Store) -> Graph:
    """The graph with locks that are given to others soon after their holder stops renewing them."""
    return Graph(replace(graph._repository, locks=store.locks(time_to_live=LEASE)))


def write_and_wait(store: Store, failpoint: str, name: str, branch: str) -> None:
    """In a child: write with short leases, but stop at a failpoint until told to go on."""
    graph = with_short_leases(connect(store), store)

    def wait() -> None:
        say("waiting")
        hear()

    with failpoints.armed(failpoint, wait):
        try:
            WRITES[name].run(graph, branch)
        except OmniError as error:
            say(type(error).__name__)
        else:
            say("done")


def claim(store: Store, name: str, seen: str) -> None:
    """In a child: insert a person if the branch is still at a commit."""
    graph = connect(store)
    ready()
    try:
        graph.mutate(ADD, {"n": name}, if_commit=seen)
    except OmniError as error:
        say(type(error).__name__)
    else:
        say("done")
