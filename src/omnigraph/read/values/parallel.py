"""Work in several threads. NumPy releases the interpreter's lock while it computes, so parts of an array can be
worked on at the same time; small work stays in the calling thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from typing import Final, TypeVar

_MOST: Final = 8
Made = TypeVar("Made")
_here: Final = threading.local()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_threads(), thread_name_prefix="omnigraph-read", initializer=_mark)


def _mark() -> None:
    """Note that the calling thread is one of the pool's."""
    _here.is_pooled = True


@cache
def _threads() -> int:
    return max(1, min(_MOST, os.cpu_count() or 1))


def begun(work: Callable[[], Made]) -> Future[Made]:
    """Work that a thread begins now, for a result that is needed later."""
    return _pool().submit(copy_context().run, work)


def parts_of(size: int, parallel_from: int) -> int:
    """Into how many parts work on that many elements is cut: one for each thread, or one if they are too few."""
    return _threads() if size >= parallel_from else 1


def in_parallel(work: Callable[[int, int], None], ranges: Iterable[tuple[int, int]]) -> None:
    """Do the work for each range, in threads if there are several; the first failure is raised.

    A thread of the pool does it alone: it could wait for threads that all wait like itself.
    """
    pieces = [(low, high) for low, high in ranges if low < high]
    if len(pieces) <= 1 or getattr(_here, "is_pooled", False):
        for low, high in pieces:
            work(low, high)
        return
    futures = [_pool().submit(copy_context().run, work, low, high) for low, high in pieces]
    for future in futures:
        future.result()
