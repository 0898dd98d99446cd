"""Who may commit: locks across threads and processes that die with their holder.

Each branch has a commit lock, for one writer at a time. Those locks are parts of the lock of the graph, which is
held as a whole to change the schema or the branches. Readers take neither.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Final, Protocol

from omnigraph.errors import OmniError
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

LONGEST_HOLD: Final = 1.0
"""For how many seconds threads of one process hand a lock on to each other before other processes get a chance."""

_HANDED_ON: Final = 16
"""So often they do in any case, however long a request takes."""

_LOCKED_FIRST: Final = 7
"""How many writes to a contended branch take the lock before they prepare, until one tries without again."""

_GRAPH: Final = "graph"
_BRANCH: Final = "branch-"
_MAINTENANCE: Final = "maintenance"


class Held(Protocol):
    """A lock that is held."""

    def verify(self) -> None:
        """Raise LockLost if the lock has been given to another holder."""


class Backend(Protocol):
    """How locks are taken on one kind of store."""

    def alone(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[Held]:
        """Hold a lock that is no part of another. Errors call it by the name that is shown."""

    def whole(self, name: str, parts: str, shown: str, patience: Patience) -> AbstractContextManager[Held]:
        """Hold a lock while no process holds one of its parts, whose names begin with ``parts``."""

    def part(
        self, whole: str, name: str, shown: str, patience: Patience
    ) -> AbstractContextManager[Sequence[Held]]:
        """Hold a part of a lock while no process holds the whole."""

    def discard(self, name: str) -> None:
        """Remove what is left of a lock that is not needed again."""

    def is_held(self, name: str) -> bool:
        """Does a living process hold a lock alone? Only looks, and writes nothing."""

    def seems_held(self, name: str) -> bool:
        """Does a process hold a lock, which may be dead where that takes time to find out?"""

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The locks that are held. With ``watch`` it is found out which holders live, where that takes time."""

    @property
    def silence(self) -> float:
        """For how many seconds a lock must not be had before its holder is known to be alive."""


class CommitLock:
    """The locks one writer holds while it commits."""

    settled: object = None
    """What its holder knows of the branch, and what stays true while the lock is held. A lock is handed on to the
    next thread only together with that."""

    def __init__(self, held: Sequence[Held], is_wanted: Callable[[], bool] = lambda: False) -> None:
        self._held = held
        self._is_wanted = is_wanted
        self._deferred: list[Callable[[], object]] = []

    def defer(self, work: Callable[[], object]) -> bool:
        """Leave the last piece of work to the thread that gets the lock next; False if no thread waits for it.

        It is done at the latest before the lock is released.
        """
        if self._is_wanted():
            self._deferred.append(work)
            return True
        return False

    def take_deferred(self) -> list[Callable[[], object]]:
        """The work that was left to this thread, which has to do it now."""
        deferred, self._deferred = self._deferred, []
        return deferred

    def finish(self) -> None:
        """Do what was left to this thread, and forget what is known of the branch, because no write follows."""
        for work in self.take_deferred():
            work()
        self.settled = None

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
        self._contended: dict[str, int] = {}
        self._wait = wait

    @contextmanager
    def commit(self, branch: str) -> Iterator[CommitLock]:
        """Hold the right to commit to one branch, with no write in flight on it by this process."""
        with self.turn(branch) as lock:
            lock.finish()
            yield lock
            lock.finish()

    @contextmanager
    def turn(self, branch: str) -> Iterator[CommitLock]:
        """Hold the right to commit to one branch, for a write that begins where the thread before it ended.

        Threads of this process that wait for the same branch get the lock handed on, for a while: it is not
        released and taken again in between. What the lock says about the branch is true, and the last piece of the
        thread before may be left to this one.
        """
        require_process(self._process, self._address)
        name, patience = branch_lock(branch), Patience(self._wait)
        turns = self._turns.setdefault(name, _Turns())
        if not turns.take(patience):
            raise patience.timeout(branch, "another thread of this process")
        hold = turns.handed_on()
        try:
            if hold is None:
                hold = _Hold(self._backend.part(_GRAPH, name, branch, patience), turns)
            yield hold.lock
        except BaseException:
            turns.end(hold)
            raise
        if not turns.hand_on(hold):
            turns.end(hold)

    @contextmanager
    def control(self) -> Iterator[CommitLock]:
        """Hold the whole graph, to change its branches or its schema."""
        require_process(self._process, self._address)
        patience = Patience(self._wait)
        turns = self._turns.setdefault(_GRAPH, _Turns())
        if not turns.take(patience):
            raise patience.timeout(_GRAPH, "another thread of this process")
        try:
            with self._backend.whole(_GRAPH, _BRANCH, _GRAPH, patience) as graph:
                yield CommitLock([graph])
        finally:
            turns.give_back()

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
        with self._backend.alone(f"job-{job}", f"job {job}", patience) as own:
            try:
                yield CommitLock([own])
            finally:
                if os.getpid() == self._process:
                    self._backend.discard(f"job-{job}")

    def is_alive(self, job: str) -> bool:
        """Does a job hold its lock?"""
        require_process(self._process, self._address)
        return self._backend.is_held(f"job-{job}")

    def seems_held(self, branch: str) -> bool:
        """Does it look as if a writer held the right to commit to a branch? It may be dead."""
        turns = self._turns.get(branch_lock(branch))
        return (turns is not None and turns.is_taken) or self._backend.seems_held(branch_lock(branch))

    def note_contention(self, branch: str) -> None:
        """A writer of this process has prepared a change in vain, because others wrote to the branch meanwhile."""
        self._contended[branch] = _LOCKED_FIRST

    def is_contended(self, branch: str) -> bool:
        """Have others lately been faster? Now and then it is tried again whether they still are."""
        left = self._contended.get(branch, 0)
        if left:
            self._contended[branch] = left - 1
        return left > 0

    def is_committing(self, branch: str) -> bool:
        """Does a living writer hold the right to commit to a branch?"""
        return self._backend.is_held(branch_lock(branch)) or self._backend.is_held(_GRAPH)

    def holders(self, *, watch: bool) -> list[HeldLock]:
        """The locks that are held, and by whom. With ``watch`` it is found out which holders are alive; on an
        object store that takes as long as a lease lives."""
        return self._backend.holders(watch=watch)


def branch_lock(branch: str) -> str:
    """The name of a branch's commit lock."""
    return f"{_BRANCH}{fnv1a64(branch)}"


class _Hold:
    """One time of holding a branch's lock, which threads may hand on to each other."""

    def __init__(self, taking: AbstractContextManager[Sequence[Held]], turns: _Turns) -> None:
        self._taken = taking
        self._turns = turns
        self.lock = CommitLock(taking.__enter__(), self._is_wanted)
        self._until = time.monotonic() + LONGEST_HOLD
        self._times = 0

    def _is_wanted(self) -> bool:
        return self._turns.is_awaited and not self._is_over

    @property
    def _is_over(self) -> bool:
        return self._times > _HANDED_ON and time.monotonic() > self._until

    def may_go_on(self) -> bool:
        """May another thread take it over? Other processes wait as well, so it comes to an end."""
        self._times += 1
        if self.lock.settled is None or self._is_over:
            return False
        try:
            self.lock.verify()
        except OmniError:
            return False
        return True

    def end(self) -> None:
        """Do what was left to the next thread, and release the lock."""
        try:
            self.lock.finish()
        finally:
            self._taken.__exit__(None, None, None)


class _Turns:
    """A mutex that threads get in the order in which they asked, and the lock that they hand on to each other."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._queue: deque[threading.Event] = deque()
        self._taken = False
        self._handed: _Hold | None = None

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
                self.end(self.handed_on())
            raise
        return self._is_called(mine)

    def _is_called(self, mine: threading.Event) -> bool:
        """Has a waiter got its turn? If not, it leaves the queue."""
        with self._mutex:
            if not mine.is_set():
                self._queue.remove(mine)
            return mine.is_set()

    @property
    def is_taken(self) -> bool:
        """Is it a thread's turn now?"""
        return self._taken

    @property
    def is_awaited(self) -> bool:
        """Does another thread wait for its turn?"""
        return bool(self._queue)

    def handed_on(self) -> _Hold | None:
        """The lock that the thread before left to the one whose turn it is."""
        hold, self._handed = self._handed, None
        return hold

    def hand_on(self, hold: _Hold) -> bool:
        """Give the turn, and the lock, to the next one in line; False if the lock has to be released first."""
        if not self._queue or not hold.may_go_on():
            return False
        with self._mutex:
            if self._queue:
                self._handed = hold
                self._queue.popleft().set()
                return True
        return False

    def end(self, hold: _Hold | None) -> None:
        """Release a lock, then let the next one in line have its turn."""
        try:
            if hold is not None:
                hold.end()
        finally:
            self.give_back()

    def give_back(self) -> None:
        """Let the next one in line have its turn."""
        with self._mutex:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._taken = False
