"""Whose turn it is to hold a lock: threads of one process in line, and what they leave to each other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from typing import Final, Protocol

from omnigraph.errors import OmniError
from omnigraph.storage.locking.patience import Patience
from omnigraph.storage.locking.pauses import Pauses

LONGEST_HOLD: Final = 1.0
"""For how many seconds threads of one process hand a lock on to each other before other processes get a chance."""

AWAITED: Final = 0.01
"""How many seconds the thread with the lock waits for others that are preparing changes, to commit them along."""

_HANDED_ON: Final = 16
"""So many commits they make in any case, however long a request takes."""


class Place(Enum):
    """How waiting for one's turn ends."""

    MINE = auto()
    ANSWERED = auto()
    """Another thread has done, or has tried to do, what was offered."""
    LATE = auto()
    """Patience was over first."""


class Held(Protocol):
    """A lock that is held."""

    def verify(self) -> None:
        """Raise LockLost if the lock has been given to another holder."""


class CommitLock:
    """The locks one writer holds while it commits."""

    settled: object = None
    """What its holder knows of the branch, and what stays true while the lock is held. A lock is handed on to the
    next thread only together with that."""

    def __init__(
        self,
        held: Sequence[Held],
        turns: Turns | None = None,
        is_wanted: Callable[[], bool] = lambda: False,
    ) -> None:
        self._held = held
        self._turns = turns
        self._is_wanted = is_wanted
        self._deferred: list[Callable[[], object]] = []
        self.commits = 0
        """How many commits were made under this lock; its holder counts them."""

    def offers(self) -> list[object]:
        """What threads in line offer to have done by the holder of the lock, the first in line first."""
        return [] if self._turns is None else self._turns.offers()

    def await_offers(self, most: int) -> None:
        """Wait a moment for threads that will wait in line, until none is about to come or so many have."""
        if self._turns is not None:
            self._turns.await_offers(most)

    def accept(self, offer: object) -> bool:
        """Take a thread out of the line to do what it offers; False if it does not wait any more.

        The thread waits until it is answered, however long that takes.
        """
        return self._turns is not None and self._turns.accept(offer)

    def answer(self, offer: object) -> None:
        """Let a thread go on whose offer was accepted."""
        if self._turns is not None:
            self._turns.answer(offer)

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


class Hold:
    """One time of holding a branch's lock, which threads may hand on to each other."""

    def __init__(self, taking: AbstractContextManager[Sequence[Held]], turns: Turns) -> None:
        self._taken = taking
        self._turns = turns
        self.lock = CommitLock(taking.__enter__(), turns, self._is_wanted)
        self._until = time.monotonic() + LONGEST_HOLD
        self._times = 0

    def _is_wanted(self) -> bool:
        return self._turns.is_awaited and not self._is_over

    @property
    def _is_over(self) -> bool:
        return max(self._times, self.lock.commits) > _HANDED_ON and time.monotonic() > self._until

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


class _Waiter:
    """A thread in line, and what it offers to have done by another."""

    def __init__(self, offer: object) -> None:
        self.offer = offer
        self.called = threading.Event()
        self.is_accepted = False


class Arrival:
    """A thread that prepares a change and will wait in line for its turn."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._is_over = False
        turns.note_arriving(1)

    @property
    def is_crowded(self) -> bool:
        """Are there other threads, which commit or prepare changes as well, or did until just now?"""
        return self._turns.is_taken or self._turns.arriving > 1 or self._turns.expected > 0

    def end(self) -> None:
        """The thread waits in line, has its turn, or has given up."""
        if not self._is_over:
            self._is_over = True
            self._turns.note_arriving(-1)

    def __enter__(self) -> Arrival:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Turns:
    """A mutex that threads get in the order in which they asked, and the lock that they hand on to each other."""

    def __init__(self) -> None:
        self._mutex = threading.RLock()
        self._came = threading.Condition(self._mutex)
        self.expected = 0
        """How many threads waited in line when one of them began to commit for all."""
        self.arriving = 0
        """How many threads prepare changes and will wait in line."""
        self.pauses = Pauses()
        self._queue: deque[_Waiter] = deque()
        self._accepted: list[_Waiter] = []
        self._taken = False
        self._handed: Hold | None = None
        self._letting_go: threading.Timer | None = None

    def note_arriving(self, change: int) -> None:
        """Count a thread that begins to prepare a change, or one that has come."""
        with self._mutex:
            self.arriving += change
            if change < 0:
                self._came.notify_all()

    def await_offers(self, most: int) -> None:
        """Wait a moment until as many threads wait in line as the last time and no other is about to come, or so
        many wait in line."""

        def are_there() -> bool:
            waiting = len(self._queue)
            return waiting >= most or (not self.arriving and waiting >= self.expected)

        with self._mutex:
            self._came.wait_for(are_there, AWAITED)
            self.expected = min(most, len(self._queue))

    def take(self, patience: Patience, offer: object = None, arrival: Arrival | None = None) -> Place:
        """Wait for one's turn, or until another thread has done what is offered."""
        with self._mutex:
            if arrival is not None:
                arrival.end()
            self.pauses.note_begin()
            if not self._taken:
                self._taken = True
                if self._letting_go is not None:
                    self._letting_go.cancel()
                return Place.MINE
            mine = _Waiter(offer)
            self._queue.append(mine)
            self._came.notify_all()
        try:
            mine.called.wait(patience.left)
            place = self._place(mine)
        except BaseException:
            if self._place(mine) is Place.MINE:
                self.end(self.handed_on())
            raise
        if place is Place.ANSWERED:
            mine.called.wait()
        return place

    def _place(self, mine: _Waiter) -> Place:
        """How far a waiter has come. If it is in line still, it leaves the line."""
        with self._mutex:
            if mine.is_accepted:
                return Place.ANSWERED
            if not mine.called.is_set():
                self._queue.remove(mine)
                return Place.LATE
            return Place.MINE

    def offers(self) -> list[object]:
        """What threads in line offer, the first in line first."""
        with self._mutex:
            return [waiter.offer for waiter in self._queue if waiter.offer is not None]

    def accept(self, offer: object) -> bool:
        """Take the thread with an offer out of the line; False if it has left."""
        with self._mutex:
            for waiter in self._queue:
                if waiter.offer is offer:
                    waiter.is_accepted = True
                    self._queue.remove(waiter)
                    self._accepted.append(waiter)
                    return True
        return False

    def answer(self, offer: object) -> None:
        """Let the thread go on whose offer was accepted; nothing happens if it has been answered."""
        with self._mutex:
            for waiter in self._accepted:
                if waiter.offer is offer:
                    self._accepted.remove(waiter)
                    waiter.called.set()
                    return

    @property
    def is_taken(self) -> bool:
        """Is it a thread's turn now?"""
        return self._taken

    @property
    def is_awaited(self) -> bool:
        """Does another thread wait for its turn?"""
        return bool(self._queue)

    def handed_on(self) -> Hold | None:
        """The lock that the thread before left to the one whose turn it is."""
        hold, self._handed = self._handed, None
        return hold

    def hand_on(self, hold: Hold) -> bool:
        """Give the turn, and the lock, to the next one in line; False if the lock has to be released first."""
        if not self._queue or not hold.may_go_on():
            return False
        with self._mutex:
            if self._queue:
                self._handed = hold
                self._queue.popleft().called.set()
                return True
        return False

    def linger(self, hold: Hold, seconds: float) -> bool:
        """Keep the lock a moment for the next thread that asks; False if it has to be released.

        The thread that releases it then is waited for when the process ends.
        """
        if not hold.may_go_on():
            return False
        with self._mutex:
            self._handed = hold
            if self._queue:
                self._queue.popleft().called.set()
            else:
                self._taken = False
                self._letting_go = threading.Timer(seconds, self._let_go, (hold,))
                self._letting_go.start()
        return True

    def let_go(self) -> None:
        """Release a lock that is kept for the next thread; nothing happens if a thread has it."""
        with self._mutex:
            hold, timer = None if self._taken else self._handed, self._letting_go
        if hold is not None and timer is not None:
            timer.cancel()
            self._let_go(hold)

    def _let_go(self, hold: Hold) -> None:
        """Release a lock for which no thread has asked."""
        with self._mutex:
            if self._taken or self._handed is not hold:
                return
            self._handed, self._taken = None, True
        self.end(hold)

    def end(self, hold: Hold | None) -> None:
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
                self._queue.popleft().called.set()
            else:
                self._taken = False
