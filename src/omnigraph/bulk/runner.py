"""Runners: what carries out the tasks of a job, in this process or on Spark.

A job is a list of passes; each pass is a function and its tasks. Tasks and what they bring back are small and can
be pickled, so that the same job runs on threads here and on the workers of a cluster.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from ulid import ULID

from omnigraph.errors import JobCancelled

if TYPE_CHECKING:
    from omnigraph.read.limits import Cancellation

Task = TypeVar("Task")
_THREADS: Final = 4


@dataclass(frozen=True, slots=True)
class JobEvent:
    """How far a job is. ``rows`` and ``bytes`` count what finished tasks have done in this stage."""

    job: str
    stage: str
    done: int
    tasks: int
    rows: int = 0
    bytes: int = 0
    seconds: float = 0.0


Listener = Callable[[JobEvent], None]


@dataclass(frozen=True, slots=True)
class Done:
    """What a task brings back: its outcome, and how much it did, for whoever watches."""

    outcome: Any
    rows: int = 0
    bytes: int = 0


class Engine(StrEnum):
    """Where something runs: in this process, on Spark, or wherever its size says."""

    AUTO = "auto"
    LOCAL = "local"
    SPARK = "spark"


class Runner(Protocol):
    """Carries out the passes of one job."""

    @property
    def engine(self) -> Engine:
        """Where its tasks run."""

    @property
    def job(self) -> str:
        """The id under which the job writes its files."""

    def run(self, stage: str, work: Callable[[Task], Done], tasks: Sequence[Task]) -> list[Any]:
        """Do the work for each task; the outcomes in the order of the tasks."""


class LocalRunner:
    """Carries out the passes of one job on a few threads, reports progress to a listener, and can be cancelled."""

    engine: Final = Engine.LOCAL

    def __init__(
        self,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
        job: str | None = None,
    ) -> None:
        self.job = job or str(ULID())
        self.listener = listener
        self.cancellation = cancellation

    def check(self) -> None:
        """Raise if somebody cancelled."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise JobCancelled(self.job)

    def run(self, stage: str, work: Callable[[Task], Done], tasks: Sequence[Task]) -> list[Any]:
        """Do the work for each task; the outcomes in the order of the tasks. A failure stops the others."""
        start, rows, size = time.monotonic(), 0, 0
        stopped = threading.Event()

        def unless_stopped(task: Task) -> Done:
            if stopped.is_set():
                raise JobCancelled(self.job)
            self.check()
            return work(task)

        with ThreadPoolExecutor(min(_THREADS, os.cpu_count() or 1), "omnigraph-job") as pool:
            futures = [pool.submit(unless_stopped, task) for task in tasks]
            try:
                for count, future in enumerate(as_completed(futures), 1):
                    done = future.result()
                    rows, size = rows + done.rows, size + done.bytes
                    self.tell(JobEvent(self.job, stage, count, len(tasks), rows, size, time.monotonic() - start))
            except BaseException:
                stopped.set()
                raise
        return [future.result().outcome for future in futures]

    def tell(self, event: JobEvent) -> None:
        """Tell the listener how far the job is, if there is one."""
        if self.listener is not None:
            self.listener(event)


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """Where a job may run: the engine that the caller named, and the way to Spark.

    ``is_spark_given`` says that the caller gave a session or an address, and so wants Spark for what can use it.
    """

    engine: Engine
    start_spark: Callable[[], Runner]
    is_spark_given: bool = False
    listener: Listener | None = None
    cancellation: Cancellation | None = None

    def local(self) -> LocalRunner:
        """A runner in this process."""
        return LocalRunner(self.listener, self.cancellation)
