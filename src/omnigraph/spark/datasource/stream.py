"""Graphs as a streaming sink: `df.writeStream.format("omnigraph")`. Each batch is one commit, exactly once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from ulid import ULID

from omnigraph.bulk.load.checking.joins import NoJoins
from omnigraph.bulk.load.job import LoadEngine, commit_reports
from omnigraph.bulk.load.staging.stager import BlockReader
from omnigraph.bulk.runner import LocalRunner
from omnigraph.errors import BatchDone, NotOnSpark, RequestError, StreamOutOfStep
from omnigraph.failpoints import hit
from omnigraph.formats.columnar import read_columns
from omnigraph.lang.diagnostics import suggest
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import MAIN
from omnigraph.manifest.streams import Batch
from omnigraph.recovery.jobs import running
from omnigraph.spark.datasource.opening import STORAGE, opened, telling
from omnigraph.spark.datasource.staging import StagedPart, Staging, parts_of
from omnigraph.spark.streaming.records import read_values
from omnigraph.spark.streaming.stream import QUERY_ID, StreamOptions, load_mode, require_open

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

BATCH_ID: Final = "streaming.sql.batchId"
_OPTIONS: Final = ("path", "stream", "type", "edge", "records", "mode", "branch", "actor", "checkpointlocation")


class GraphSink(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one query. Spark makes one when the query starts, and one for each commit."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._given = dict(options)
        self._run = str(ULID())
        self._options = _stream_options(options)
        if overwrite:
            raise RequestError("a stream adds to a graph: its output mode is append or update, not complete")
        repository = self._repository()
        catalog = repository.catalog(self._options.branch)
        self._options.check(catalog, [(column.name, column.dataType.simpleString()) for column in schema])
        self._staging = Staging.of(repository, self._options.branch, "stream", self._options.actor)
        entity = self._options.entity(catalog)
        self._read: BlockReader
        self._read = partial(read_values, catalog) if entity is None else partial(read_columns, entity)

    @telling()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """On a worker: stage the rows of a partition."""
        context = TaskContext.get()
        number = None if context is None else context.getLocalProperty(BATCH_ID)
        if context is None or number is None:
            raise NotOnSpark("a streaming sink without micro-batches", "use a trigger that makes some")
        job, title = _job_of(self._run, number), self._options.batch_title(int(number))
        outcome = self._staging.stage(job, self._read, title, context.partitionId(), iterator)
        return StagedPart(job, self._staging.folders, outcome, context.getLocalProperty(QUERY_ID))

    @telling()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """In a process of Spark without a session: commit a batch, unless it is done."""
        parts, staging, options = parts_of(messages), self._staging, self._options
        batch = Batch(options.name, batchId, parts[0].query if parts else None)
        title = options.batch_title(batchId)
        job_id = parts[0].job if parts else str(ULID())
        repository = self._repository()
        load_options = options.load_options(batch)
        try:
            with running(repository, staging.record(job_id)) as job:
                require_open(repository, options.branch, batch)
                self._require_same_branch(parts, batch)
                reports = staging.reports(repository, parts)
                plan, engine = staging.plan_of(job_id), LoadEngine(LocalRunner(job=job_id), NoJoins())
                commit_reports(repository, engine, job, staging.branch, plan, reports, load_options, title)
        except BatchDone:
            return
        hit("stream.after_commit")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """In a process of Spark without a session: remove the staged files of a batch that was not committed."""
        self._staging.discard(self._repository(), {part.job for part in parts_of(messages)})

    def _repository(self) -> Repository:
        return opened(self._given, read_only=False)

    def _require_same_branch(self, parts: Sequence[StagedPart], batch: Batch) -> None:
        """Refuse files that were staged for a branch that has been deleted and created again since."""
        if any(part.folders != self._staging.folders for part in parts):
            reason = "the branch is not the one that this query started with; start it again"
            raise StreamOutOfStep(batch.stream, self._staging.branch.name, batch.number, reason)


def _job_of(run: str, number: str) -> str:
    """The job of one batch of one run of a query. All tasks of the batch derive the same name."""
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    digest = hashlib.sha256(f"{run} {number}".encode()).digest()
    return run[:10] + "".join(alphabet[byte % 32] for byte in digest[:16])


def _stream_options(options: Mapping[str, str]) -> StreamOptions:
    for name in options:
        if name not in _OPTIONS and not name.startswith(STORAGE):
            raise RequestError(f"there is no option '{name}'; {suggest(name, _OPTIONS)}")
    if not options.get("path"):
        raise RequestError("which graph? give its address: start(path) or option('path', …)")
    if "stream" not in options:
        raise RequestError("what is the stream called? give it a name that stays: option('stream', …)")
    records = options.get("records", "false").lower()
    if records not in ("true", "false"):
        raise RequestError(f"the option 'records' is true or false, not '{records}'")
    return StreamOptions(
        options["stream"],
        options.get("branch", MAIN),
        options.get("type"),
        options.get("edge"),
        records == "true",
        load_mode(options.get("mode", "merge")),
        options.get("actor"),
    )
