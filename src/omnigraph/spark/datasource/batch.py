"""Graphs as a batch sink: `df.write.format("omnigraph")`. One write is one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from ulid import ULID

from omnigraph.bulk.load.job import commit_reports
from omnigraph.bulk.load.joins import NoJoins
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.runner import LocalRunner
from omnigraph.errors import RequestError
from omnigraph.formats.columnar import check_columns, read_columns
from omnigraph.manifest.state import MAIN
from omnigraph.recovery.jobs import running
from omnigraph.spark.datasource.source import check_options, entity_of, opened
from omnigraph.spark.datasource.staging import StagedPart, Staging, parts_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_WRITTEN: Final = ("path", "type", "edge", "branch", "merge", "actor", "message")


class GraphWriter(DataSourceArrowWriter):
    """Writes a DataFrame of one type. Spark makes it when a write is planned, and sends it to tasks and commit."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        check_options(given, _WRITTEN)
        self._given = dict(given)
        self._job = str(ULID())
        self._mode = _mode(given, overwrite=overwrite)
        repository = opened(given, read_only=False)
        entity = entity_of(given, repository.catalog)
        self._title = f"<DataFrame of {entity.name}>"
        check_columns(entity, schema.fieldNames(), self._title)
        self._read = partial(read_columns, entity)
        self._staging = Staging.of(repository, given.get("branch", MAIN), "load", given.get("actor"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """On a worker: stage the rows of a partition."""
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        outcome = self._staging.stage(self._job, self._read, self._title, partition, iterator)
        return StagedPart(self._job, self._staging.folders, outcome)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Beside the driver: commit everything that was staged, or nothing."""
        repository, staging = opened(self._given, read_only=False), self._staging
        options = LoadOptions(
            self._mode, staging.branch.name, actor=staging.actor, message=self._given.get("message")
        )
        with running(repository, staging.record(self._job)) as job:
            reports = staging.reports(repository, parts_of(messages))
            plan = staging.plan_of(self._job)
            runner = LocalRunner(job=self._job)
            commit_reports(repository, runner, NoJoins(), job, staging.branch, plan, reports, options, self._title)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  all are of one job
        """Beside the driver: remove what was staged."""
        self._staging.discard(opened(self._given, read_only=False), {self._job})


def _mode(given: Mapping[str, str], *, overwrite: bool) -> Mode:
    """The mode of the load: Spark's save mode, and `merge` for an append that replaces rows by their ids."""
    merge = given.get("merge", "false").lower()
    if merge not in ("true", "false"):
        raise RequestError(f"the option 'merge' is true or false, not '{merge}'")
    if merge == "true" and overwrite:
        raise RequestError("the option 'merge' goes with mode('append'): an overwrite replaces the whole table")
    return Mode.OVERWRITE if overwrite else Mode.MERGE if merge == "true" else Mode.APPEND
