"""Runners: what runs the tasks of a job, in this process or on Spark.

A job is a sequence of steps; each step is a function and its tasks. Tasks and their results are small and can be
pickled, so that the same job runs on threads here and on the workers of a cluster.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

from omnigraph.bulk.engines import Engine as Engine
from omnigraph.errors import JavaUnavailable, JobCancelled, MissingExtra
from omnigraph.manifest.ids import fresh_id

if TYPE_CHECKING:
    from omnigraph.read.limits import Cancellation

Task = TypeVar("Task")
Value = TypeVar("Value")
_MAX_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class JobEvent:
    """The progress of a job. ``done``, ``rows`` and ``bytes`` count the finished tasks of the current step."""

    job: str
    step: str
    done: int
    tasks: int
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0


Listener = Callable[[JobEvent], None]


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
        self.listener = listener
        self.cancellation = cancellation

    def require_active(self) -> None:
        """Raise JobCancelled if the caller has cancelled the job."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise JobCancelled(self.job)

    def run(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Sequence[Task]) -> list[Value]:
        """Run a function on each task of a step; the first task that fails stops those that have not begun."""
        return self.run_each(step, work, tasks, len(tasks))

    def run_each(
        self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Iterable[Task], total: int = 0
    ) -> list[Value]:
        """Run a function on tasks that come one after the other, of which only as many as can run are held.

        ``total`` is how many there are, 0 if that is not known.
        """
        start, rows, size = time.monotonic(), 0, 0
        stopped = threading.Event()
        values: dict[int, Value] = {}
        pending: dict[Future[TaskResult[Value]], int] = {}

        def unless_stopped(task: Task) -> TaskResult[Value]:
            if stopped.is_set():
                raise JobCancelled(self.job)
            self.require_active()
            return work(task)

        def settle() -> None:
            nonlocal rows, size
            done, _ = wait(pending, return_when=FIRST_COMPLETED)
            for future in done:
                result = future.result()
                values[pending.pop(future)] = result.value
                rows, size = rows + result.rows, size + result.bytes
                seconds = time.monotonic() - start
                self.report(JobEvent(self.job, step, len(values), total, rows, size, seconds))

        with ThreadPoolExecutor(self.cores, "omnigraph-job") as pool:
            try:
                for index, task in enumerate(tasks):
                    pending[pool.submit(unless_stopped, task)] = index
                    while len(pending) > self.cores:
                        settle()
                while pending:
                    settle()
            except BaseException:
                stopped.set()
                raise
        return [values[index] for index in sorted(values)]

    def report(self, event: JobEvent) -> None:
        """Pass an event to the listener, if there is one."""
        if self.listener is not None:
            self.listener(event)


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
