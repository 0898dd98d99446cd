"""Graphs as a batch sink: `df.write.format("omnigraph")`. One write is one commit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from ulid import ULID

from omnigraph.bulk.load.checking.joins import NoJoins
from omnigraph.bulk.load.job import LoadEngine, commit_reports
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.load.staging.stager import SliceReport
from omnigraph.bulk.runner import LocalRunner
from omnigraph.errors import RequestError
from omnigraph.formats.columnar import check_columns, read_columns
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.state import MAIN
from omnigraph.recovery.jobs import running
from omnigraph.spark.datasource.opening import entity_of, opened, telling
from omnigraph.spark.datasource.source import check_options
from omnigraph.spark.datasource.staging import StagedPart, Staging, parts_of

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_OPTIONS: Final = ("path", "type", "edge", "branch", "merge", "exists", "actor", "message")


class GraphWriter(DataSourceArrowWriter):
    """Writes a DataFrame of one type. Spark makes it when a write is planned, and sends it to tasks and commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        check_options(options, _OPTIONS)
        self._options = dict(options)
        self._job = str(ULID())
        self._mode = _mode(options, overwrite=overwrite)
        repository = opened(options, read_only=False)
        entity = entity_of(options, repository.catalog(options.get("branch", MAIN)))
        self._title = f"<DataFrame of {entity.name}>"
        check_columns(entity, schema.fieldNames(), self._title)
        self._read = partial(read_columns, entity)
        self._staging = Staging.of(repository, options.get("branch", MAIN), "load", options.get("actor"))
        has_rows = self._staging.pins[entity.table_key].row_count > 0
        self._is_ignored = has_rows and _where_rows_exist(options, entity, overwrite=overwrite)

    @telling()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """On a worker: stage the rows of a partition."""
        if self._is_ignored:
            return StagedPart(self._job, self._staging.folders, SliceReport(0))
        context = TaskContext.get()
        partition = 0 if context is None else context.partitionId()
        outcome = self._staging.stage(self._job, self._read, self._title, partition, iterator)
        return StagedPart(self._job, self._staging.folders, outcome)

    @telling()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """In a process of Spark without a session: commit everything that was staged, or nothing."""
        if self._is_ignored:
            return
        repository, staging = opened(self._options, read_only=False), self._staging
        options = LoadOptions(
            self._mode, staging.branch.name, actor=staging.actor, message=self._options.get("message")
        )
        with running(repository, staging.record(self._job)) as job:
            reports = staging.reports(repository, parts_of(messages))
            plan = staging.plan_of(self._job)
            engine = LoadEngine(LocalRunner(job=self._job), NoJoins())
            commit_reports(repository, engine, job, staging.branch, plan, reports, options, self._title)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  all are of one job
        """In a process of Spark without a session: remove the staged files."""
        self._staging.discard(opened(self._options, read_only=False), {self._job})


def _where_rows_exist(options: Mapping[str, str], entity: EntityType, *, overwrite: bool) -> bool:
    """Is a write left out because the type has rows? The option `exists` stands for Spark's modes `error` and
    `ignore`, which Spark 4.3 itself refuses for sources in Python."""
    exists = options.get("exists", "append").lower()
    if exists not in ("append", "error", "ignore"):
        raise RequestError(f"the option 'exists' is append, error or ignore, not '{exists}'")
    if exists != "append" and overwrite:
        raise RequestError("the option 'exists' goes with mode('append'): an overwrite replaces the whole table")
    if exists == "error":
        raise RequestError(f"{entity.name} has rows already, and option('exists', 'error') refuses to add to them")
    return exists == "ignore"


def _mode(options: Mapping[str, str], *, overwrite: bool) -> Mode:
    """The mode of the load: Spark's save mode, or a merge for an append with the option `merge`."""
    merge = options.get("merge", "false").lower()
    if merge not in ("true", "false"):
        raise RequestError(f"the option 'merge' is true or false, not '{merge}'")
    if merge == "true" and overwrite:
        raise RequestError("the option 'merge' goes with mode('append'): an overwrite replaces the whole table")
    return Mode.OVERWRITE if overwrite else Mode.MERGE if merge == "true" else Mode.APPEND
