"""Graphs as a streaming sink: `df.writeStream.format("omnigraph")`.

Tasks stage the rows of a micro-batch as data files; Spark hands what they report to `commit`, in a process of its
own beside the driver, without a session. There everything is asked and committed in memory, exactly once, as
`pipeline.stream` does. No process lives as long as a batch, so nobody holds the lock of the batch's job while its
files wait: `commit` takes it, and looks whether they are all still there.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from ulid import ULID

from omnigraph.embed.client import configured_client
from omnigraph.errors import BatchDone, JobFailed, NotOnSpark, OmniError, RequestError, StreamOutOfStep
from omnigraph.failpoints import hit
from omnigraph.lang.diagnostics import suggest
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import MAIN
from omnigraph.manifest.streams import Batch
from omnigraph.pipeline.columnar import read_columns
from omnigraph.pipeline.datasource import STORAGE, opened
from omnigraph.pipeline.frameloads import BlockReader, in_order, stage_rows
from omnigraph.pipeline.load import commit_reports, destination
from omnigraph.pipeline.local import LocalRunner
from omnigraph.pipeline.pinned import require_shared
from omnigraph.pipeline.staging import SliceReport, StagePlan
from omnigraph.pipeline.stream import QUERY_ID, StreamOptions, load_mode, require_open
from omnigraph.pipeline.streamrecords import read_values
from omnigraph.pipeline.tasks import Done, Runner
from omnigraph.recovery.jobs import JobRecord, announce, running
from omnigraph.storage import layout
from omnigraph.storage.objects import open_objects
from omnigraph.write.base import capture
from omnigraph.write.engines import LoadOptions

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Task = TypeVar("Task")
BATCH_ID: Final = "streaming.sql.batchId"
_WRITTEN: Final = ("path", "stream", "type", "edge", "records", "mode", "branch", "actor", "checkpointlocation")


@dataclass
class StagedPart(WriterCommitMessage):
    """What a task staged of a batch: under which job, for which folders, and what came of it."""

    job: str
    query: str | None
    folders: frozenset[str]
    outcome: SliceReport | OmniError


class GraphSink(DataSourceStreamArrowWriter):
    """Writes the micro-batches of one query. Spark makes one when the query starts, and one for each commit."""

    def __init__(self, given: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        self._given = dict(given)
        self._run = str(ULID())
        self._options = _options(given)
        if overwrite:
            raise RequestError("a stream adds to a graph: its output mode is append or update, not complete")
        repository = self._repository()
        self._address = repository.address
        require_shared(self._address)
        self._options.check(
            repository.catalog, [(column.name, column.dataType.simpleString()) for column in schema]
        )
        self._branch = repository.branches.find(self._options.branch)
        base = capture(repository, self._branch)
        targets = {key: destination(repository, base, self._branch, key) for key in base.state.tables}
        self._plan = StagePlan("", base.catalog, targets, configured_client())
        self._locations = {key: pin.location for key, pin in sorted(base.state.tables.items())}
        entity = self._options.entity(base.catalog)
        self._read: BlockReader
        self._read = partial(read_values, base.catalog) if entity is None else partial(read_columns, entity)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StagedPart:
        """On a worker: stage the rows of a partition."""
        context = TaskContext.get()
        number = None if context is None else context.getLocalProperty(BATCH_ID)
        if context is None or number is None:
            raise NotOnSpark("a streaming sink without micro-batches", "use a trigger that makes some")
        record = self._record(_job_of(self._run, number))
        outcome = stage_rows(
            replace(self._plan, job=record.job),
            self._read,
            self._options.batch_title(int(number)),
            context.partitionId(),
            self._announced(record, iterator),
        )
        return StagedPart(record.job, context.getLocalProperty(QUERY_ID), self._folders, outcome)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  Spark's name
        """Beside the driver: commit a batch, unless it is done."""
        parts = _parts(messages)
        query = parts[0].query if parts else None
        batch, title = Batch(self._options.name, batchId, query), self._options.batch_title(batchId)
        record = self._record(parts[0].job if parts else str(ULID()))
        repository, options = self._repository(), self._options
        given = LoadOptions(options.mode, options.branch, actor=options.actor, message=title, batch=batch)
        try:
            with running(repository, record) as job:
                require_open(repository, options.branch, batch)
                reports = self._staged(repository, parts, batch)
                runner = _HereRunner(record.job)
                plan = replace(self._plan, job=record.job)
                commit_reports(repository, runner, job, self._branch, plan, reports, given)
        except BatchDone:
            return
        hit("stream.after_commit")

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: ARG002, N803
        """Beside the driver: remove what tasks staged of a batch that was not committed."""
        repository = self._repository()
        for job in {part.job for part in _parts(messages)}:
            record = self._record(job)
            if repository.objects.has(record.key):
                with running(repository, record):
                    pass

    @property
    def _folders(self) -> frozenset[str]:
        return frozenset(target.folder for target in self._plan.targets.values())

    def _repository(self) -> Repository:
        return opened(self._given, read_only=False)

    def _record(self, job: str) -> JobRecord:
        branch: Branch = self._branch
        locations = tuple(sorted(self._locations.values()))
        now = dt.datetime.now(dt.UTC)
        return JobRecord(job, "stream", branch.name, branch.native, locations, self._options.actor, now)

    def _announced(self, record: JobRecord, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows, of which the first come after the job is written down."""
        is_known = False
        for batch in batches:
            if batch.num_rows and not is_known:
                announce(open_objects(self._address), record)
                is_known = True
            yield batch

    def _staged(self, repository: Repository, parts: Sequence[StagedPart], batch: Batch) -> list[SliceReport]:
        """What tasks staged, if it is for the branch as it is now, and all of it is there."""
        if any(part.folders != self._folders for part in parts):
            reason = "the branch is not the one that this query started with; start it again"
            raise StreamOutOfStep(batch.stream, self._branch.name, batch.number, reason)
        reports = in_order(part.outcome for part in parts)
        for file in (file for report in reports for file in report.files):
            folder = layout.native_prefix(self._locations[file.table_key], self._branch.native)
            if not repository.objects.has(f"{folder}/data/{file.name}"):
                raise JobFailed(parts[0].job, "committing", f"staged file {file.name} was removed meanwhile")
        return reports


class _HereRunner(Runner):
    """Runs stages on threads of this process, which has no Spark session."""

    def __init__(self, job: str) -> None:
        self.job = job
        self._threads = LocalRunner()

    def __getattr__(self, name: str) -> Any:
        """What a stage wants of a session, it wants because keys do not fit into memory."""
        raise NotOnSpark(f"checking so many keys in a streaming sink ({name})", "use Graph.stream, which can")

    def run(self, stage: str, work: Callable[[Task], Done], tasks: Sequence[Task]) -> list[Any]:
        return self._threads.run(stage, work, tasks)


def _parts(messages: Sequence[WriterCommitMessage | None]) -> list[StagedPart]:
    return [message for message in messages if isinstance(message, StagedPart)]


def _job_of(run: str, number: str) -> str:
    """The job of one batch of one run of a query: all tasks of the batch know it, and no other batch has it."""
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    digest = hashlib.sha256(f"{run} {number}".encode()).digest()
    return run[:10] + "".join(alphabet[byte % 32] for byte in digest[:16])


def _options(given: Mapping[str, str]) -> StreamOptions:
    for name in given:
        if name not in _WRITTEN and not name.startswith(STORAGE):
            raise RequestError(f"there is no option '{name}'; {suggest(name, _WRITTEN)}")
    if not given.get("path"):
        raise RequestError("which graph? give its address: start(path) or option('path', …)")
    if "stream" not in given:
        raise RequestError("what is the stream called? give it a name that stays: option('stream', …)")
    records = given.get("records", "false").lower()
    if records not in ("true", "false"):
        raise RequestError(f"the option 'records' is true or false, not '{records}'")
    return StreamOptions(
        given["stream"],
        given.get("branch", MAIN),
        given.get("type"),
        given.get("edge"),
        records == "true",
        load_mode(given.get("mode", "merge")),
        given.get("actor"),
    )
