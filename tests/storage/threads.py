"""Doing several things at the same time in one process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
THREADS = 8
PATIENCE = 60.0
"""How long a test waits for another thread before it calls it stuck, in seconds."""


def at_once(work: Callable[[int], T], threads: int = THREADS) -> list[T]:
    """Call a function with 0, 1, 2, … in threads that start at the same moment."""
    barrier = threading.Barrier(threads)

    def start(number: int) -> T:
        barrier.wait(PATIENCE)
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(start, range(threads)))


@contextmanager
def meanwhile(work: Callable[[int], object]) -> Iterator[None]:
    """Call a function with 0, 1, 2, … for as long as the block runs. Its errors are the test's."""
    done = threading.Event()

    def repeat() -> None:
        number = 0
        while not done.is_set():
            work(number)
            number += 1

    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(repeat)
        try:
            yield
        finally:
            done.set()
        running.result()
