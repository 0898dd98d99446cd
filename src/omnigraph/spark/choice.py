"""Which Spark a caller chose: a session, an address, or none of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from omnigraph.bulk.runner import Engine, JobEvent, Listener, RunnerChoice
from omnigraph.read.limits import Cancellation
from omnigraph.spark.runner import SparkRunner
from omnigraph.spark.sessions import is_started, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """The session that jobs run in, who listens to their progress, and what cancels them."""

    spark: SparkSession | str | None = None
    listener: Listener | None = None
    cancellation: Cancellation | None = None

    def session(self) -> SparkSession:
        """The session, started if there is none yet; the listener hears of that before, as it takes a while."""
        if self.listener is None or is_started(self.spark):
            return spark_session(self.spark)
        begin = JobEvent("", "starting Spark", 0, 1)
        self.listener(begin)
        session = spark_session(self.spark)
        self.listener(replace(begin, done=1))
        return session

    def runner(self, session: SparkSession | None = None) -> SparkRunner:
        """A runner for one job."""
        started = self.session() if session is None else session
        return SparkRunner(started, listener=self.listener, cancellation=self.cancellation)

    def or_local(self, engine: Engine) -> RunnerChoice:
        """This Spark or this process, for a job that can run on either."""
        return RunnerChoice(engine, self.runner, self.spark is not None, self.listener, self.cancellation)
