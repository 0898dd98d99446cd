"""Requests for queries on Spark: parameters, a snapshot, a session, and how long the query may take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from omnigraph.bulk.pieces import ROWS_PER_TASK, require_shared
from omnigraph.errors import JobCancelled, NotOnSpark, QueryStopped
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import CompiledRead
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.limits import Cancellation, Limits
from omnigraph.spark.runner import SparkRunner
from omnigraph.spark.sessions import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.spark.queries.execution import Embedder


@dataclass(frozen=True, slots=True)
class Allowed:
    """The limits of a query. A memory limit is refused: the memory of Spark is that of its cluster."""

    timeout: float | None = None
    memory_limit: int | None = None
    cancellation: Cancellation | None = None


def query_on_spark(
    graph: Snapshot,
    query: CompiledRead,
    params: Mapping[str, object] | None,
    allowed: Allowed,
    embedder: Embedder,
    spark: SparkSession | str | None,
    rows_per_task: int = ROWS_PER_TASK,
) -> pa.Table:
    """The rows of a read. The time that a session takes to start does not count."""
    require_shared(graph.address)
    if allowed.memory_limit is not None:
        raise NotOnSpark("a memory limit", "leave it out, and set spark.executor.memory and spark.driver.memory")
    values = bind_parameters(query.name, query.params, params)
    session = spark_session(spark)
    from omnigraph.spark.queries.execution import run_query  # needs what the session says is missing

    limits = Limits(query.name, allowed.timeout, cancellation=allowed.cancellation)
    runner = SparkRunner(session, cancellation=_Stopping(limits))
    try:
        table = run_query(
            session, graph, query, values, embedder=embedder, runner=runner, rows_per_task=rows_per_task
        )
    except JobCancelled:
        limits.check()
        raise
    limits.check()
    return table


class _Stopping(Cancellation):
    """Stops a job when the time of its query is up, or when the query is cancelled."""

    def __init__(self, limits: Limits) -> None:
        super().__init__()
        self._limits = limits

    @property
    def is_cancelled(self) -> bool:
        try:
            self._limits.check()
        except QueryStopped:
            return True
        return super().is_cancelled
