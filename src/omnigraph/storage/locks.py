"""Who may commit: locks across threads and processes that die with their holder.

Each branch has a commit lock, for one writer at a time. Those locks are parts of the lock of the graph, which is
held as a whole to change the schema or the branches. Readers take neither.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final, Protocol

from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.layout import fnv1a64
from omnigraph.storage.locking.filelocks import FileLocks
from omnigraph.storage.locking.holders import HeldLock as HeldLock
from omnigraph.storage.locking.patience import TIME_TO_LIVE, Patience
from omnigraph.storage.locking.process import require_process
from omnigraph.storage.locking.turns import Arrival as Arrival
from omnigraph.storage.locking.turns import CommitLock as CommitLock
from omnigraph.storage.locking.turns import Held as Held
from omnigraph.storage.locking.turns import Place
from omnigraph.storage.objects import ObjectStore

if TYPE_CHECKING:
    from omnigraph.storage.locking.turns import Turns

DEFAULT_WAIT: Final = 60.0
"""How long a writer waits for all the locks it needs before it gives up, in seconds."""

LINGERING: Final = 0.03
"""For how many seconds a process keeps the lock of a contended branch after a write. If its next write comes by
then, it begins where this one ended. After as many commits as threads hand on, others get their turn."""

_LOCKED_FIRST: Final = 7
"""How many writes to a contended branch take the lock before they prepare, until one tries without again."""

_TRYING: Final = 0
"""What is left of that number while one tries."""

_STAGING: Final = (os.cpu_count() or 1) + 1
"""How many threads of a process write files to a disk at a time: more would take processors from each other."""

_GRAPH: Final = "graph"
_BRANCH: Final = "branch-"
_MAINTENANCE: Final = "maintenance"


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
            from omnigraph.storage.locking.leases import LeaseLocks

            self._backend = LeaseLocks(objects, time_to_live)
        self._address = str(address)
        self._process = os.getpid()
        self._turns: dict[str, Turns] = {}
        self._contended: dict[str, int] = {}
        self._wait = wait
        self._is_local = address.scheme is Scheme.LOCAL
        self._staging = threading.BoundedSemaphore(_STAGING) if self._is_local else None

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
        with self._turn(branch, None) as lock:
            assert lock is not None  # noqa: S101  nothing was offered
            yield lock

    @contextmanager
    def turn_or_answer(
        self, branch: str, offer: object, arrival: Arrival | None = None
    ) -> Iterator[CommitLock | None]:
        """As `turn`, for a piece of work that the thread that has the lock may do along with its own; None if it
        did, or has tried to. An ``arrival`` comes to its end as soon as the thread is in line."""
        with self._turn(branch, offer, arrival) as lock:
            yield lock

    def arriving(self, branch: str) -> Arrival:
        """Say that this thread prepares a change of a branch, and will soon wait for its turn."""
        from omnigraph.storage.locking.turns import Turns

        return Arrival(self._turns.setdefault(branch_lock(branch), Turns()))

    @contextmanager
    def _turn(self, branch: str, offer: object, arrival: Arrival | None = None) -> Iterator[CommitLock | None]:
        from omnigraph.storage.locking.turns import Hold, Turns

        require_process(self._process, self._address)
        name, patience = branch_lock(branch), Patience(self._wait)
        turns = self._turns.setdefault(name, Turns())
        match turns.take(patience, offer, arrival):
            case Place.LATE:
                raise patience.timeout(branch, "another thread of this process")
            case Place.ANSWERED:
                yield None
                return
        hold = turns.handed_on()
        is_kept = hold is not None
        try:
            if hold is None:
                hold = Hold(self._backend.part(_GRAPH, name, branch, patience), turns)
            yield hold.lock
        except BaseException:
            turns.end(hold)
            raise
        turns.pauses.note_end()
        if turns.hand_on(hold):
            return
        seconds = self._lingering(turns) if self._is_busy(branch, is_kept) else 0.0
        if not (seconds and turns.linger(hold, seconds)):
            turns.end(hold)

    def _lingering(self, turns: Turns) -> float:
        """For how many seconds a lock is kept for the next write. On an object store, where to take it again takes
        longer than that, always for the same time."""
        return turns.pauses.worth_waiting(LINGERING) if self._is_local else LINGERING

    def _is_busy(self, branch: str, is_kept: bool) -> bool:
        """Is a branch contended, after a write to it? One that tried without the lock, and got it afresh with
        nothing changed, says that it is not; one whose process had kept the lock says nothing."""
        if self._contended.get(branch) == _TRYING:
            if is_kept:
                self.note_contention(branch)
            else:
                self._contended.pop(branch, None)
        return branch in self._contended

    def staging(self) -> AbstractContextManager[object]:
        """Wait until few enough threads of this process stage small changes. On an object store, where most of
        that is waiting for answers, any number of them may."""
        return nullcontext() if self._staging is None else self._staging

    @contextmanager
    def control(self) -> Iterator[CommitLock]:
        """Hold the whole graph, to change its branches or its schema."""
        from omnigraph.storage.locking.turns import Turns

        require_process(self._process, self._address)
        patience = Patience(self._wait)
        turns = self._turns.setdefault(_GRAPH, Turns())
        if turns.take(patience) is Place.LATE:
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
        self._contended[branch] = _LOCKED_FIRST + 1

    def is_contended(self, branch: str) -> bool:
        """Have others lately been faster? Now and then it is tried again whether they still are."""
        left = self._contended.get(branch, _TRYING)
        if left > _TRYING:
            self._contended[branch] = left - 1
        return left - 1 > _TRYING

    def let_go(self) -> None:
        """Release the locks that are kept for the next write of this process."""
        if os.getpid() == self._process:
            for turns in list(self._turns.values()):
                turns.let_go()

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
