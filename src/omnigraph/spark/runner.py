"""Running the tasks of a job on Spark: a list of tasks goes out, one small result per task comes back.

Rows never pass through here. A task and its result are a few hundred bytes each, so that the JVM only schedules
and the Python workers do everything else. Only DataFrame operations are used, so that it works over Spark Connect
too.
"""

from __future__ import annotations

import pickle
import re
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from ulid import ULID

from omnigraph.bulk.meters import Meters, Partial, Place
from omnigraph.bulk.runner import Engine, JobEvent, Listener, Reporter, TaskResult, with_partial
from omnigraph.errors import JobCancelled, JobFailed, OmniError, StorageError
from omnigraph.read.limits import Cancellation
from omnigraph.spark.sessions import cores, is_connect

if TYPE_CHECKING:
    from pyspark import Accumulator, SparkContext
    from pyspark.sql import SparkSession

Task = TypeVar("Task")
Value = TypeVar("Value")
_POLL_SECONDS: Final = 0.2
_LAST_TASKS_SECONDS: Final = 30.0
"""How long the runner waits for the tasks of a step that failed or was cancelled."""
_LOCAL: Final = re.compile(r"local(\[[^,\]]*(,\s*(?P<attempts>\d+))?\])?")
_CRASHED: Final = "Python worker exited unexpectedly"
_UNANSWERED: Final = re.compile(r"An error occurred while calling \S+")
"""All that Py4J says if Java ends during a call; of an error in Java it says more."""
_MISSING: Final = re.compile(r"No module named '([A-Za-z_]+)")


class SparkRunner:
    """Runs the steps of one job in a session, reports progress to a listener, and can be cancelled."""

    engine: Final = Engine.SPARK

    def __init__(
        self,
        spark: SparkSession,
        *,
        job: str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.spark = spark
        self.job = job or str(ULID())
        self.reporter = Reporter(listener)
        self.cancellation = cancellation
        with self._of_session("starting"):
            self.cores = cores(spark)
            self._attempts = max_attempts(spark)

    @contextmanager
    def _of_session(self, step: str) -> Iterator[None]:
        """Ask the session for something: a Java that has ended is a failure of the job."""
        try:
            yield
        except Exception as error:
            raise JobFailed(self.job, step, reason_of(error)) from error

    def run(self, step: str, work: Callable[[Task], TaskResult[Value]], tasks: Sequence[Task]) -> list[Value]:
        """Run a function on each task of a step, on the workers; the values in the order of the tasks.

        An `OmniError` of a task is raised here, the first one if several tasks fail; if it is a StorageError,
        Spark has retried the task. Any other exception of a task is retried as well, and in the end a JobFailed.
        """
        if not tasks:
            return []
        from pyspark import cloudpickle

        with self._of_session(step):
            counters = _Counters.of(self.spark)
        sent = zlib.compress(cloudpickle.dumps(list(tasks)), 1)  # type: ignore[no-untyped-call]
        with closing(Meters(len(tasks))) as meters:
            function = _task_function(work, sent, counters, self._attempts, meters.place(0).path)
            with self.watched(step, len(tasks), counters, meters):
                numbers = self.spark.range(0, len(tasks), 1, len(tasks))
                collected = numbers.mapInArrow(function, "task long, value binary").toArrow()
        values: list[Any] = [None] * len(tasks)
        for index, packed in zip(collected["task"].to_pylist(), collected["value"].to_pylist(), strict=True):
            values[index] = pickle.loads(packed)  # noqa: S301  made by our own tasks
        for value in values:
            if isinstance(value, OmniError):
                raise value
        return values

    @contextmanager
    def watched(
        self, step: str, tasks: int = 0, counters: _Counters | None = None, meters: Meters | None = None
    ) -> Iterator[None]:
        """Run Spark actions as a step of this job: they are reported, can be cancelled, and fail as JobFailed."""
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise JobCancelled(self.job)
        tag = f"omnigraph-{self.job}"
        over = threading.Event()
        self.reporter.begin()
        watcher = threading.Thread(
            target=self._watch, args=(tag, JobEvent(self.job, step, 0, tasks), counters, meters, over), daemon=True
        )
        watcher.start()
        try:
            with _tagged(self.spark, tag):
                yield
        except OmniError:
            raise
        except Exception as error:
            if self.cancellation is not None and self.cancellation.is_cancelled:
                raise JobCancelled(self.job) from None
            raise JobFailed(self.job, step, reason_of(error)) from error
        finally:
            over.set()
            watcher.join()
        if self.cancellation is not None and self.cancellation.is_cancelled:
            raise JobCancelled(self.job)

    def _watch(
        self,
        tag: str,
        event: JobEvent,
        counters: _Counters | None,
        meters: Meters | None,
        over: threading.Event,
    ) -> None:
        """Report progress to the listener until the step is over; stop its tasks if the job is cancelled."""
        start = time.monotonic()
        finished = False
        while not finished:
            finished = over.wait(_POLL_SECONDS)
            if self.cancellation is not None and self.cancellation.is_cancelled:
                with suppress(Exception):  # a Java that has ended runs no tasks
                    _interrupt(self.spark, tag)
            done, rows, size = (0, 0, 0) if counters is None else counters.values()
            done = event.tasks if finished else done
            now = replace(event, done=done, rows=rows, bytes=size, seconds=time.monotonic() - start)
            is_partial = meters is not None and not finished
            self.reporter.tell(with_partial(now, meters.partial() if meters and is_partial else Partial()))


class _Counters:
    """Accumulators that finished tasks add to. Spark Connect has none, and the counts stay zero."""

    def __init__(self, accumulators: Sequence[Accumulator[int]]) -> None:
        self.accumulators = accumulators

    @classmethod
    def of(cls, spark: SparkSession) -> _Counters:
        if is_connect(spark):
            return cls(())
        return cls([spark.sparkContext.accumulator(0) for _ in range(3)])

    def add(self, result: TaskResult[Any]) -> None:
        for accumulator, amount in zip(self.accumulators, (1, result.rows, result.bytes), strict=False):
            accumulator.add(amount)

    def values(self) -> tuple[int, int, int]:
        if not self.accumulators:
            return 0, 0, 0
        tasks, rows, size = (accumulator.value for accumulator in self.accumulators)
        return tasks, rows, size


@contextmanager
def _tagged(spark: SparkSession, tag: str) -> Iterator[None]:
    """Tag the Spark jobs of this thread. If one fails, wait until none of its tasks runs any more.

    Spark reports a failure while other tasks still run, and needs some seconds to end them; they would stage files
    for a job that is over. Tags of a session are known to one thread only, so those of the context are used. Spark
    Connect has tags for all threads, but does not list running tasks.
    """
    connected = is_connect(spark)
    (spark.addTag if connected else spark.sparkContext.addJobTag)(tag)
    try:
        yield
    except BaseException:
        with suppress(Exception):
            _interrupt(spark, tag)
            if not connected:
                _wait_for_tasks(spark.sparkContext, tag)
        raise
    finally:
        with suppress(Exception):
            (spark.removeTag if connected else spark.sparkContext.removeJobTag)(tag)


def _interrupt(spark: SparkSession, tag: str) -> None:
    """Cancel the Spark jobs with a tag."""
    if is_connect(spark):
        spark.interruptTag(tag)
    else:
        spark.sparkContext.cancelJobsWithTag(tag)


def _wait_for_tasks(context: SparkContext, tag: str) -> None:
    """Wait until no task of the Spark jobs with a tag runs, or the time is over."""
    by_tag: Any = context._jsc.sc().statusTracker()
    tracker, deadline = context.statusTracker(), time.monotonic() + _LAST_TASKS_SECONDS
    while time.monotonic() < deadline:
        jobs = [tracker.getJobInfo(number) for number in by_tag.getJobIdsForTag(tag)]
        stages = [tracker.getStageInfo(number) for job in jobs if job is not None for number in job.stageIds]
        if not any(stage.numActiveTasks for stage in stages if stage is not None):
            return
        time.sleep(_POLL_SECONDS)


def max_attempts(spark: SparkSession) -> int:
    """How often Spark attempts a task before it gives up."""
    local = _LOCAL.fullmatch(spark.conf.get("spark.master", "local") or "")
    if local is not None:
        return int(local["attempts"] or 1)
    return int(spark.conf.get("spark.task.maxFailures", "4") or 4)


def _task_function(
    work: Callable[[Task], TaskResult[Value]], sent: bytes, counters: _Counters, attempts: int, meters: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that workers run: unpack the tasks, run those of a partition, pack their values."""

    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tasks: list[Task] | None = None
        for batch in indexes:
            tasks = pickle.loads(zlib.decompress(sent)) if tasks is None else tasks  # noqa: S301  made by the driver
            for index in batch.column(0).to_pylist():
                result: TaskResult[Any]
                try:
                    with Place(meters, index).noted():
                        result = work(tasks[index])
                except OmniError as error:
                    if isinstance(error, StorageError) and _attempt() < attempts:
                        raise
                    result = TaskResult(error)
                counters.add(result)
                yield pa.RecordBatch.from_pydict(
                    {
                        "task": pa.array([index], pa.int64()),
                        "value": pa.array([pickle.dumps(result.value)], pa.binary()),
                    }
                )

    return batches


def _attempt() -> int:
    """The number of the attempt at a task that a worker makes, from 1."""
    from pyspark import TaskContext

    context = TaskContext.get()
    return 1 if context is None else context.attemptNumber() + 1


def reason_of(error: BaseException) -> str:
    """The cause of a failed Spark action, without the stack traces of three languages around it."""
    text = str(error)
    if (
        isinstance(error, ConnectionError)
        or type(error).__name__ == "Py4JNetworkError"
        or _UNANSWERED.fullmatch(text)
    ):
        return "Spark's Java process has ended; perhaps it had too little memory (spark.driver.memory)"
    missing = _MISSING.search(text)
    if missing is not None:
        return f"the workers' Python has no {missing[1]}; install omnigraph there, or set PYSPARK_PYTHON"
    if _CRASHED in text:
        return "a worker's Python ended without an error, each time; perhaps it had too little memory"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    raised = [line for line in lines if _looks_raised(line)]
    others = [line for line in lines if not line.startswith(("at ", "... "))]
    return (raised or others or [type(error).__name__])[-1][:500]


def _looks_raised(line: str) -> bool:
    """Is a line of a traceback its last one, `SomeError: reason`?"""
    head = line.partition(":")[0]
    return " " not in head and head.endswith(("Error", "Exception", "Interrupt", "Exit", "Warning"))
