"""Running the stages of a job in this process, in the way in which `tasks.Runner` runs them on Spark."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ulid import ULID

from omnigraph.errors import JobCancelled
from omnigraph.pipeline.tasks import Done, JobEvent, Listener

if TYPE_CHECKING:
    from omnigraph.read.limits import Cancellation

Task = TypeVar("Task")
_THREADS: Final = 4


class LocalRunner:
    """Runs the stages of one job on a few threads, tells a listener how far they are, and stops when told to."""

    def __init__(self, listener: Listener | None = None, cancellation: Cancellation | None = None) -> None:
        self.job = str(ULID())
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
