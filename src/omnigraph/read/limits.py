"""How much time and memory a query may take, and the way to stop it from another thread."""

from __future__ import annotations

import os
import threading
import time

from omnigraph.errors import QueryCancelled, QueryMemoryExceeded, QueryTimeout


class Cancellation:
    """Stops the queries that it was passed to, from another thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Stop the queries at their next step."""
        self._event.set()

    @property
    def is_cancelled(self) -> bool:
        return self._event.is_set()


class Limits:
    """The limits of one execution, checked before each step and before each large allocation.

    A query without a memory limit may take what the machine has: more would end the process, not the query.
    """

    def __init__(
        self,
        query: str,
        timeout: float | None = None,
        memory: int | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.query = query
        self.timeout = timeout
        self.memory = machine_memory() if memory is None else memory
        self.cancellation = cancellation
        self.started = time.monotonic()
        self.rows = 0
        self.peak = 0
        self._held = 0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.started

    def check(self) -> None:
        """Raise if the time is up or the query was cancelled."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise QueryCancelled(self.query, self.elapsed, self.rows)
        if self.timeout is not None and self.elapsed > self.timeout:
            raise QueryTimeout(self.query, self.timeout, self.elapsed, self.rows)

    def allocate(self, rows: int, nbytes: int) -> None:
        """Raise if an intermediate result of this size would exceed a limit; called before it is made."""
        self.check()
        self.rows = max(self.rows, rows)
        wanted = self._held + nbytes
        self.peak = max(self.peak, wanted)
        if wanted > self.memory:
            raise QueryMemoryExceeded(self.query, self.memory, wanted, self.rows)

    def hold(self, nbytes: int) -> None:
        """Count part of the result, which stays in memory until the end of the query."""
        self.allocate(0, nbytes)
        self._held += nbytes


def machine_memory() -> int:
    """How many bytes of memory this machine has."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
