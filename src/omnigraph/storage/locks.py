"""Who may commit: locks across threads and processes that die with their holder.

Two kinds of locks guard a graph. The graph lock is shared by data writers and exclusive for whoever changes the
schema or the branches. Each branch has a commit lock on top, for one writer at a time. Readers take neither.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, Protocol

from omnigraph.errors import LockTimeout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.filelocks import FileLocks
from omnigraph.storage.layout import fnv1a64
from omnigraph.storage.leases import TIME_TO_LIVE, LeaseLocks
from omnigraph.storage.objects import ObjectStore

DEFAULT_WAIT: Final = 60.0
"""How long a writer waits for a lock before it gives up, in seconds."""

_GRAPH: Final = "graph"


class Held(Protocol):
    """A lock that is held."""

    def verify(self) -> None:
        """Raise LockLost if the lock has been given to somebody else."""


class Backend(Protocol):
    """How locks are taken on one kind of store."""

    def exclusive(self, name: str, wait: float) -> AbstractContextManager[Held]:
        """Hold a lock alone."""

    def shared(self, name: str, wait: float) -> AbstractContextManager[Held]:
        """Hold a lock together with other sharers."""


class CommitLock:
    """The locks one writer holds while it commits."""

    def __init__(self, held: list[Held]) -> None:
        self._held = held

    def verify(self) -> None:
        """Raise LockLost unless everything is still held; called before each durable step."""
        for lock in self._held:
            lock.verify()


class Locks:
    """The locks of one graph, first come first served among the threads of this process."""

    def __init__(
        self,
        address: Address,
        objects: ObjectStore,
        wait: float = DEFAULT_WAIT,
        time_to_live: float = TIME_TO_LIVE,
    ) -> None:
        self._backend: Backend
        if address.scheme is Scheme.LOCAL:
            self._backend = FileLocks(address.root)
        else:
            self._backend = LeaseLocks(objects, time_to_live)
        self._turns: defaultdict[str, _Turns] = defaultdict(_Turns)
        self._wait = wait

    @contextmanager
    def commit(self, branch: str) -> Iterator[CommitLock]:
        """Hold the right to commit to one branch."""
        name = f"branch-{fnv1a64(branch)}"
        with ExitStack() as stack:
            stack.enter_context(self._turn(name, branch))
            graph = stack.enter_context(self._backend.shared(_GRAPH, self._wait))
            own = stack.enter_context(self._backend.exclusive(name, self._wait))
            yield CommitLock([graph, own])

    @contextmanager
    def control(self) -> Iterator[CommitLock]:
        """Hold the whole graph, to change its branches or its schema."""
        with self._turn(_GRAPH, _GRAPH), self._backend.exclusive(_GRAPH, self._wait) as graph:
            yield CommitLock([graph])

    @contextmanager
    def _turn(self, name: str, shown: str) -> Iterator[None]:
        turns = self._turns[name]
        if not turns.take(self._wait):
            raise LockTimeout(shown, self._wait, "another thread of this process")
        try:
            yield
        finally:
            turns.give_back()


class _Turns:
    """A mutex that threads get in the order in which they asked."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[threading.Event] = deque()
        self._taken = False

    def take(self, wait: float) -> bool:
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Event()
            self._queue.append(mine)
        if mine.wait(wait):
            return True
        with self._mutex:
            if mine.is_set():
                return True
            self._queue.remove(mine)
            return False

    def give_back(self) -> None:
        with self._mutex:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._taken = False
