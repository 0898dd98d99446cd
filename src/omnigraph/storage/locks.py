"""Who may commit: locks across threads and processes that die with their holder.

Two kinds of locks guard a graph. The graph lock is shared by data writers and exclusive for changes of the schema
or the branches. Each branch has a commit lock on top, for one writer at a time. Readers take neither.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Final, Protocol

from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.layout import fnv1a64
from omnigraph.storage.locking.filelocks import FileLocks
from omnigraph.storage.locking.holders import HeldLock as HeldLock
from omnigraph.storage.locking.leases import TIME_TO_LIVE, LeaseLocks
from omnigraph.storage.locking.patience import Patience
from omnigraph.storage.locking.process import require_process
from omnigraph.storage.objects import ObjectStore

DEFAULT_WAIT: Final = 60.0
"""How long a writer waits for all the locks it needs before it gives up, in seconds."""

_GRAPH: Final = "graph"
_MAINTENANCE: Final = "maintenance"


class Held(Protocol):
    """A lock that is held."""

    def verify(self) -> None:
        """Raise LockLost if the lock has been given to another holder."""


class Backend(Protocol):
    """How locks are taken on one kind of store."""

    def exclusive(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[Held]:
        """Hold a lock alone. Errors call it by the name that is shown."""

    def shared(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[Held]:
        """Hold a lock together with other sharers."""

    def discard(self, name: str) -> None:
        """Remove what is left of a lock that is not needed again."""

    def is_held(self, name: str) -> bool:
        """Does a living process hold a lock alone? Only looks, and writes nothing."""

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The locks that are held. With ``watch`` it is found out which holders live, where that takes time."""

    @property
    def silence(self) -> float:
        """For how many seconds a lock must not be had before its holder is known to be alive."""


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
        self._address = str(address)
        self._process = os.getpid()
        self._turns: dict[str, _Turns] = {}
        self._wait = wait

    @contextmanager
    def commit(self, branch: str) -> Iterator[CommitLock]:
        """Hold the right to commit to one branch."""
        require_process(self._process, self._address)
        name, patience = branch_lock(branch), Patience(self._wait)
        with ExitStack() as stack:
            stack.enter_context(self._turn(name, branch, patience))
            graph = stack.enter_context(self._backend.shared(_GRAPH, _GRAPH, patience))
            own = stack.enter_context(self._backend.exclusive(name, branch, patience))
            yield CommitLock([graph, own])

    @contextmanager
    def control(self) -> Iterator[CommitLock]:
        """Hold the whole graph, to change its branches or its schema."""
        require_process(self._process, self._address)
        patience = Patience(self._wait)
        with self._turn(_GRAPH, _GRAPH, patience), self._backend.exclusive(_GRAPH, _GRAPH, patience) as graph:
            yield CommitLock([graph])

    @contextmanager
    def job(self, job: str) -> Iterator[CommitLock]:
        """Hold the lock that says a job is alive."""
        with self._alone(job, Patience(self._wait)) as lock:
            yield lock

    @contextmanager
    def abandoned(self, job: str) -> Iterator[CommitLock]:
        """Hold the lock of a job that has died; LockTimeout if it lives, as soon as that can be told."""
        with self._alone(job, Patience(self._backend.silence)) as lock:
            yield lock

    @contextmanager
    def maintenance(self) -> Iterator[CommitLock]:
        """Hold the right to maintain the graph; LockTimeout if another one does, as soon as that can be told."""
        if self.is_alive(_MAINTENANCE):
            raise Patience(0).timeout(_MAINTENANCE, "another process")
        with self.abandoned(_MAINTENANCE) as lock:
            yield lock

    @contextmanager
    def _alone(self, job: str, patience: Patience) -> Iterator[CommitLock]:
        require_process(self._process, self._address)
        with self._backend.exclusive(f"job-{job}", f"job {job}", patience) as own:
            try:
                yield CommitLock([own])
            finally:
                if os.getpid() == self._process:
                    self._backend.discard(f"job-{job}")

    def is_alive(self, job: str) -> bool:
        """Does a job hold its lock?"""
        require_process(self._process, self._address)
        return self._backend.is_held(f"job-{job}")

    def is_committing(self, branch: str) -> bool:
        """Does a living writer hold the right to commit to a branch?"""
        return self._backend.is_held(branch_lock(branch)) or self._backend.is_held(_GRAPH)

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The locks that are held, and by whom. With ``watch`` it is found out which holders are alive; on an
        object store that takes as long as a lease lives."""
        return self._backend.holders(watch=watch)

    @contextmanager
    def _turn(self, name: str, shown: str, patience: Patience) -> Iterator[None]:
        turns = self._turns.setdefault(name, _Turns())
        if not turns.take(patience):
            raise patience.timeout(shown, "another thread of this process")
        try:
            yield
        finally:
            turns.give_back()


def branch_lock(branch: str) -> str:
    """The name of a branch's commit lock."""
    return f"branch-{fnv1a64(branch)}"


class _Turns:
    """A mutex that threads get in the order in which they asked."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[threading.Event] = deque()
        self._taken = False

    def take(self, patience: Patience) -> bool:
        """Wait for one's turn; False if patience is over first."""
        with self._mutex:
            if not self._taken:
                self._taken = True
                return True
            mine = threading.Event()
            self._queue.append(mine)
        try:
            mine.wait(patience.left)
        except BaseException:
            if self._is_called(mine):
                self.give_back()
            raise
        return self._is_called(mine)

    def _is_called(self, mine: threading.Event) -> bool:
        """Has a waiter got its turn? If not, it leaves the queue."""
        with self._mutex:
            if not mine.is_set():
                self._queue.remove(mine)
            return mine.is_set()

    def give_back(self) -> None:
        """Let the next one in line have its turn."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._taken = False
