"""Runners: what runs the tasks of a job, in this process or on Spark.

A job is a sequence of steps; each step is a function and its tasks. Tasks and their results are small and can be
pickled, so that the same job runs on threads here and on the workers of a cluster.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from omnigraph.bulk.engines import Engine as Engine
from omnigraph.bulk.meters import Meters, Partial, checked
from omnigraph.errors import JavaUnavailable, JobCancelled, MissingExtra
from omnigraph.manifest.ids import fresh_id

if TYPE_CHECKING:
    from omnigraph.read.limits import Cancellation

Task = TypeVar("Task")
Value = TypeVar("Value")
_MAX_THREADS: Final = 4
_WAITING_THREADS: Final = 1
"""So many threads more than cores run tasks: one task or another waits for the disk, or for Lance."""
_POLL_SECONDS: Final = 0.2
"""How often the progress of running tasks is looked at."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """The progress of a job. ``done`` counts the finished tasks of the current step; ``rows`` and ``bytes`` are
    what tasks have done so far, and ``share`` is how much of the step that is, from 0 to 1, if that is known."""

    job: str
    step: str
    done: int
    tasks: int
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0
    share: float | None = None


Listener = Callable[[JobEvent], None]
"""Hears of the progress of a job. One that raises an Exception is not called again, and the job goes on."""


class Reporter:
    """Tells a listener how far a step is, as often as there is something new to tell."""

    def __init__(self, listener: Listener | None) -> None:
        self.listener = listener
        self._told: JobEvent | None = None

    def begin(self) -> None:
        """A step begins, perhaps once more."""
        self._told = None

    def tell(self, event: JobEvent) -> None:
        """Pass an event on if it says more than the last one of its step."""
        told = self._told
        if told is not None and told.step == event.step:
            # Between the end of a task and its result its rows are in neither count; progress never goes back.
            share = None if event.share is None else max(event.share, told.share or 0.0)
            most = {name: max(getattr(told, name), getattr(event, name)) for name in ("done", "rows", "bytes")}
            event = replace(event, **most, share=share)
            if event == replace(told, seconds=event.seconds):
                return
        self._told = event
        if self.listener is None:
            return
        try:
            self.listener(event)
        except Exception as error:  # noqa: BLE001  whatever it is, it is not the job that failed
            self.listener = None
            warnings.warn(f"progress is not reported any more: the listener failed with {error!r}", stacklevel=2)


def with_partial(event: JobEvent, partial: Partial) -> JobEvent:
    """The progress of a step with that of its running tasks."""
    if not event.tasks:
        return event
    share = min(1.0, (event.done + partial.tasks) / event.tasks)
    return replace(event, rows=event.rows + partial.rows, bytes=event.bytes + partial.bytes, share=share)


@dataclass(frozen=True, slots=True)
class TaskResult(Generic[Value]):
    """The result of a task, and how many rows and bytes it processed, for the progress of the job."""

    value: Value
    rows: int = 0
    bytes: int = 0


class Runner(Protocol):
    """Runs the steps of one job."""

    @property
    def engine(self) -> Engine:
        """Where the tasks run."""

    @property
    def job(self) -> str:
        """The id of the job, under which its tasks write their files."""

    @property
    def cores(self) -> int:
        """How many tasks run at a time."""

    def run(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Sequence[Task]) -> list[Value]:
        """Run a function on each task of a step; the values of the results, in the order of the tasks."""


class LocalRunner:
    """Runs the steps of one job on a few threads, reports progress to a listener, and can be cancelled."""

    engine: Final = Engine.LOCAL

    def __init__(
        self,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        job: str | None = None,
    ) -> None:
        self.job = job or fresh_id()
        self.cores = min(_MAX_THREADS, os.cpu_count() or 1)
        self._threads = self.cores + _WAITING_THREADS
        self.reporter = Reporter(listener)
        self.cancellation = cancellation

    def require_active(self) -> None:
        """Raise JobCancelled if the caller has cancelled the job."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise JobCancelled(self.job)

    def run(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Sequence[Task]) -> list[Value]:
        """Run a function on each task of a step; the first task that fails stops those that have not begun."""
        stopped = threading.Event()
        self.reporter.begin()

        def require_wanted() -> None:
            if stopped.is_set():
                raise JobCancelled(self.job)
            self.require_active()

        def unless_stopped(number: int, task: Task) -> TaskResult[Value]:
            require_wanted()
            with meters.place(number).noted(), checked(require_wanted):
                return work(task)

        with (
            closing(Meters(len(tasks))) as meters,
            ThreadPoolExecutor(self._threads, "omnigraph-job") as pool,
        ):
            futures = [pool.submit(unless_stopped, number, task) for number, task in enumerate(tasks)]
            try:
                self._wait(step, futures, meters)
            except BaseException:
                stopped.set()
                raise
        return [future.result().value for future in futures]

    def run_each(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Iterable[Task]) -> list[Value]:
        """Run a function on tasks that come one after the other, of which only as many as can run are held."""
        start, stopped = time.monotonic(), threading.Event()
        done = JobEvent(self.job, step, 0, 0)
        values: dict[int, Value] = {}
        pending: dict[Future[TaskResult[Value]], int] = {}
        self.reporter.begin()

        def require_wanted() -> None:
            if stopped.is_set():
                raise JobCancelled(self.job)
            self.require_active()

        def unless_stopped(task: Task) -> TaskResult[Value]:
            require_wanted()
            with checked(require_wanted):
                return work(task)

        def settle() -> None:
            nonlocal done
            for future in wait(pending, return_when=FIRST_COMPLETED)[0]:
                result = future.result()
                values[pending.pop(future)] = result.value
                done = replace(
                    done,
                    done=len(values),
                    rows=done.rows + result.rows,
                    bytes=done.bytes + result.bytes,
                    seconds=time.monotonic() - start,
                )
                self.report(done)

        with ThreadPoolExecutor(self._threads, "omnigraph-job") as pool:
            try:
                for index, task in enumerate(tasks):
                    pending[pool.submit(unless_stopped, task)] = index
                    while len(pending) > self._threads:
                        settle()
                while pending:
                    settle()
            except BaseException:
                stopped.set()
                raise
        return [values[index] for index in sorted(values)]

    def _wait(self, step: str, futures: Sequence[Future[TaskResult[Value]]], meters: Meters) -> None:
        """Wait for all tasks, and report how far they are; raise the first error of one."""
        start, waiting = time.monotonic(), set(futures)
        done = JobEvent(self.job, step, 0, len(futures))
        while waiting:
            finished, waiting = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
            for future in finished:
                result = future.result()
                done = replace(
                    done, done=done.done + 1, rows=done.rows + result.rows, bytes=done.bytes + result.bytes
                )
                self.report(with_partial(replace(done, seconds=time.monotonic() - start), meters.partial()))
            if not finished:
                self.require_active()
                self.report(with_partial(replace(done, seconds=time.monotonic() - start), meters.partial()))

    def report(self, event: JobEvent) -> None:
        """Tell the listener, if there is one."""
        self.reporter.tell(event)


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """Where a job may run: the engine that the caller named, and how a runner on Spark is started.

    ``is_spark_given`` says that the caller passed a session or an address, which selects Spark for every job that
    can use it.
    """

    engine: Engine
    start_spark: Callable[[], Runner]
    is_spark_given: bool = False
    listener: Listener | None = None
    cancellation: Cancellation | None = None

    @property
    def needs_spark(self) -> bool:
        """Does the caller want Spark, whatever the size of the job?"""
        return self.engine is Engine.SPARK or (self.engine is Engine.AUTO and self.is_spark_given)

    def start(self) -> Runner:
        """A runner for a large job: on Spark, or in this process if the caller wants that or has no Spark."""
        if self.engine is not Engine.LOCAL:
            try:
                return self.start_spark()
            except (MissingExtra, JavaUnavailable):
                if self.needs_spark:
                    raise
        return self.local()

    def local(self) -> LocalRunner:
        """A runner in this process."""
        return LocalRunner(self.listener, self.cancellation)
