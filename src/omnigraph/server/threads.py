"""Threads in which the server works, so that the event loop never waits for it.

Short pieces of work run few at a time, however many callers wait: more threads only take Python's lock from each
other. Work that has run for a while does not count among the few, since it waits for a store or computes without
the lock; so a long query keeps nobody waiting. A thread that is done goes on with what waits, without being woken.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Final, Generic, TypeVar

from omnigraph.read.limits import Cancellation

R = TypeVar("R")
_PAUSE: Final = 0.002


@dataclass(slots=True, eq=False)
class _Job(Generic[R]):
    """A piece of work, and who waits for it."""

    work: Callable[[], R]
    context: contextvars.Context
    stop: Cancellation | None
    future: asyncio.Future[R]
    started: float = 0.0
    result: Any = None
    failure: BaseException | None = None

    def run(self) -> None:
        """In a thread: do it."""
        try:
            self.result = self.context.run(self.work)
        except BaseException as error:  # noqa: BLE001  it is raised where the work is awaited
            self.failure = error

    def settle(self) -> None:
        """In the event loop: tell who waits for it, if somebody still does."""
        if self.future.done():
            return
        if self.failure is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.failure)


class Threads:
    """A pool of up to ``count`` threads, in which ``together`` pieces of work run at a time that have run for less
    than ``short`` seconds. One event loop uses it."""

    def __init__(self, name: str, count: int, together: int | None = None, short: float = 0.01) -> None:
        self._name = name
        self._short = short
        self._count = count
        self._together = count if together is None else min(together, count)
        self._threads: list[threading.Thread] = []
        self._called: SimpleQueue[bool] = SimpleQueue()
        """One entry wakes one thread: true if there is work, false if there will be none any more."""
        self._lock = threading.Lock()
        self._waiting: deque[_Job[Any]] = deque()
        self._running: set[_Job[Any]] = set()
        self._long: set[_Job[Any]] = set()
        """Those of the running that have run for long."""
        self._awake = 0
        """How many threads were called and have not gone to sleep again, but for those with long work."""
        self._done: deque[_Job[Any]] = deque()
        self._is_loop_called = False
        self._looking: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[[], R], stop: Cancellation | None = None) -> R:
        """Run work in a thread. If the awaiting task is cancelled, ``stop`` is, and the thread is left to end."""
        try:
            return await self.begin(work, stop)
        except asyncio.CancelledError:
            if stop is not None:
                stop.cancel()
            raise

    def begin(self, work: Callable[[], R], stop: Cancellation | None = None) -> asyncio.Future[R]:
        """What work will give, which is run in a thread as soon as there is one for it."""
        loop = asyncio.get_running_loop()
        job = _Job(work, contextvars.copy_context(), stop, loop.create_future())
        with self._lock:
            self._waiting.append(job)
            is_called = self._call(loop)
        if not is_called and self._looking is None:
            self._looking = loop.call_later(self._short, self._look, loop)
        return job.future

    def stop(self) -> None:
        """Stop what can be stopped."""
        with self._lock:
            jobs = [*self._waiting, *self._running]
        for job in jobs:
            if job.stop is not None:
                job.stop.cancel()

    async def close(self) -> None:
        """Stop what can be stopped, and wait for the rest."""
        self.stop()
        while self._waiting or self._running:
            await asyncio.sleep(_PAUSE)
        for _ in self._threads:
            self._called.put(False)
        for thread in self._threads:
            await asyncio.to_thread(thread.join)

    def _call(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Wake a thread for work that waits, if one may work; the lock is held."""
        busy = self._awake + len(self._long)
        if self._awake >= self._together or busy >= self._count:
            return False
        self._awake += 1
        if busy == len(self._threads):
            name = f"omnigraph-{self._name}_{busy}"
            self._threads.append(threading.Thread(target=self._work, args=(loop,), name=name, daemon=True))
            self._threads[-1].start()
        self._called.put(True)
        return True

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        """Let work that has run for a while make room, as long as other work waits."""
        self._looking = None
        with self._lock:
            begun = time.monotonic() - self._short
            long = {job for job in self._running if job.started <= begun} - self._long
            self._long |= long
            self._awake -= len(long)
            for _ in range(len(self._waiting)):
                if not self._call(loop):
                    break
            if self._waiting:
                self._looking = loop.call_later(self._short, self._look, loop)

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        """In a thread: do what waits each time it is called, until there is nothing more to come."""
        while self._called.get():
            while (job := self._next()) is not None:
                job.run()
                if not self._note(job, loop):
                    break
                del job

    def _next(self) -> _Job[Any] | None:
        """In a thread: the work that has waited for longest; None, and the thread goes to sleep, if none waits."""
        with self._lock:
            if not self._waiting:
                self._awake -= 1
                return None
            job = self._waiting.popleft()
            job.started = time.monotonic()
            self._running.add(job)
            return job

    def _note(self, job: _Job[Any], loop: asyncio.AbstractEventLoop) -> bool:
        """In a thread: let the event loop know that work is done. Is this thread to go on with other work?"""
        with self._lock:
            self._running.discard(job)
            goes_on = job not in self._long or self._awake < self._together
            if job in self._long:
                self._long.discard(job)
                self._awake += goes_on
            self._done.append(job)
            is_called, self._is_loop_called = self._is_loop_called, True
        if not is_called:
            loop.call_soon_threadsafe(self._settle)
        return goes_on

    def _settle(self) -> None:
        """Tell who waits for what is done."""
        with self._lock:
            self._is_loop_called = False
            done, self._done = self._done, deque()
        for job in done:
            job.settle()
