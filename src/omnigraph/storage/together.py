"""Requests that do not depend on each other, made at the same time."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeVar, overload

from omnigraph.storage.address import Address, Scheme

One = TypeVar("One")
Two = TypeVar("Two")

_SHARES: Final = os.cpu_count() or 1
"""How many threads share work that keeps processors busy."""


@overload
def side_by_side(address: Address, one: Callable[[], One], two: Callable[[], Two], /) -> tuple[One, Two]: ...
@overload
def side_by_side(address: Address, *calls: Callable[[], Any]) -> tuple[Any, ...]: ...
def side_by_side(address: Address, *calls: Callable[[], Any]) -> tuple[Any, ...]:
    """The results of calls that ask the store of a graph, in their order.

    On an object store they run at the same time, and all of them come to an end before the first error is raised.
    Anywhere else a request takes less than a thread, and they run one after the other.
    """
    if address.scheme is not Scheme.S3 or len(calls) < 2:
        return tuple(call() for call in calls)
    return at_once(*calls)


def at_once(*calls: Callable[[], Any]) -> tuple[Any, ...]:
    """The results of calls that run at the same time wherever they go: on a disk that pays where each waits until
    something has reached it. All of them come to an end before the first error is raised."""
    results: list[Any] = [None] * len(calls)
    failures: dict[int, BaseException] = {}

    def run(place: int) -> None:
        try:
            results[place] = calls[place]()
        except BaseException as error:  # noqa: BLE001  it is raised in the thread of the caller
            failures[place] = error

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(1, len(calls))]
    for thread in threads:
        thread.start()
    run(0)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[min(failures)]
    return tuple(results)


def in_shares(work: Callable[[One], Two], items: Sequence[One], threads: int = _SHARES) -> list[Two]:
    """What a piece of work makes of each item, in their order, with as many threads as there are processors, or
    as many as are given."""
    shares = min(threads, len(items))
    if shares < 2:
        return [work(item) for item in items]
    made: tuple[list[Two], ...] = at_once(*(partial(_each, work, items[share::shares]) for share in range(shares)))
    return [made[place % shares][place // shares] for place in range(len(items))]


def _each(work: Callable[[One], Two], items: Sequence[One]) -> list[Two]:
    return [work(item) for item in items]
