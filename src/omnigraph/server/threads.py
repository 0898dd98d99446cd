"""Threads in which the engine runs, so that the event loop never waits for it."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from omnigraph.read.limits import Cancellation

R = TypeVar("R")


class Threads:
    """A pool of threads. What runs in one can be stopped by its cancellation, or else runs to its end."""

    def __init__(self, name: str, count: int) -> None:
        self._pool = ThreadPoolExecutor(count, f"omnigraph-{name}")
        self._running: set[Cancellation] = set()

    async def run(self, work: Callable[[], R], stop: Cancellation | None = None) -> R:
        """Run work in a thread. If the awaiting task is cancelled, ``stop`` is, and the thread is left to end."""
        context = contextvars.copy_context()
        running = asyncio.get_running_loop().run_in_executor(self._pool, context.run, work)
        if stop is not None:
            self._running.add(stop)
            running.add_done_callback(lambda _: self._running.discard(stop))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if stop is not None:
                stop.cancel()
            running.add_done_callback(_ignore_outcome)
            raise

    def stop(self) -> None:
        """Stop what can be stopped."""
        for one in list(self._running):
            one.cancel()

    async def close(self) -> None:
        """Stop what can be stopped, and wait for the rest."""
        self.stop()
        await asyncio.to_thread(self._pool.shutdown)


def _ignore_outcome(running: asyncio.Future[Any]) -> None:
    """Take note of an outcome that no task awaits any more, so that the loop does not complain."""
    if not running.cancelled():
        running.exception()
