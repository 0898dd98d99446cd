"""The threads in which a server works: few at a time, more if some take long, and all of them come to an end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from tests.processes import PATIENCE

from omnigraph.read.limits import Cancellation
from omnigraph.server.threads import Threads


def test_short_work_runs_few_at_a_time_in_its_order() -> None:
    begun: list[int] = []

    def work(number: int) -> Callable[[], int]:
        return lambda: begun.append(number) or number  # type: ignore[func-returns-value]

    async def run() -> list[int]:
        threads = Threads("test", 8, together=1)
        answers = await asyncio.gather(*(threads.run(work(number)) for number in range(100)))
        await threads.close()
        return answers

    assert asyncio.run(run()) == begun == list(range(100))


def test_work_that_takes_long_makes_room_for_other_work() -> None:
    """Seven callers wait for what the eighth one does, which comes last."""
    done = threading.Event()

    async def run() -> list[bool]:
        threads = Threads("test", 8, together=1)
        waiting = [threads.run(lambda: done.wait(PATIENCE)) for _ in range(7)]
        answers = await asyncio.gather(*waiting, threads.run(lambda: done.set() or True))  # type: ignore[func-returns-value]
        assert await asyncio.gather(*(threads.run(lambda: True) for _ in range(20))) == [True] * 20
        await threads.close()
        return answers

    assert all(asyncio.run(run()))


def test_no_more_than_all_threads_work_at_a_time() -> None:
    lock, together, most = threading.Lock(), 0, 0
    gate = threading.Barrier(3)

    def work() -> None:
        nonlocal together, most
        with lock:
            together += 1
            most = max(most, together)
        gate.wait(PATIENCE)
        with lock:
            together -= 1

    async def run() -> None:
        threads = Threads("test", 3, together=1)
        await asyncio.gather(*(threads.run(work) for _ in range(12)))
        await threads.close()

    asyncio.run(run())
    assert most == 3


def test_failures_are_raised_where_the_work_is_awaited() -> None:
    def fail() -> None:
        raise ValueError("it failed")

    async def run() -> None:
        threads = Threads("test", 2)
        with pytest.raises(ValueError, match="it failed"):
            await threads.run(fail)
        assert await threads.run(lambda: "it goes on") == "it goes on"
        await threads.close()

    asyncio.run(run())


def test_who_no_longer_waits_stops_the_work() -> None:
    stop, begun = Cancellation(), threading.Event()

    def work() -> None:
        begun.set()
        while not stop.is_cancelled:
            pass

    async def run() -> None:
        threads = Threads("test", 2)
        waiting = asyncio.ensure_future(threads.run(work, stop))
        await asyncio.to_thread(begun.wait, PATIENCE)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await threads.close()

    asyncio.run(run())
    assert stop.is_cancelled


def test_closing_stops_what_can_be_stopped_and_waits_for_the_rest() -> None:
    """What waits is still done: it may be a write that somebody was told of."""
    stop, done = Cancellation(), []

    def endless() -> None:
        while not stop.is_cancelled:
            pass

    async def run() -> None:
        threads = Threads("test", 1)
        waiting = [threads.begin(endless, stop), *(threads.begin(lambda: done.append(1)) for _ in range(3))]
        await threads.close()
        await asyncio.gather(*waiting)

    asyncio.run(run())
    assert done == [1, 1, 1]
