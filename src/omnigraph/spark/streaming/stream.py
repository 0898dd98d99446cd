"""Structured Streaming into a graph: each micro-batch is one commit, and is committed once.

Spark records the input of a batch before it runs the batch, and records that it is done afterwards. A driver that
dies in between runs the batch again with the same input. The graph itself knows which batches it has: the commit
of a batch and the mark of its number are one version of the manifest (`manifest.streams`), and the mark is
compared under the branch's commit lock.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.bulk.load.job import LoadEngine, load
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.pieces import require_shared
from omnigraph.embed.client import EmbeddingClient, configured_client
from omnigraph.errors import BatchDone, RequestError, SourceUnusable
from omnigraph.failpoints import hit
from omnigraph.formats.columnar import check_columns
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import edge_type, node_type
from omnigraph.manifest.repository import Repository, open_existing
from omnigraph.manifest.state import MAIN
from omnigraph.manifest.streams import Batch, check_stream_name, require_next
from omnigraph.recovery.heal import heal
from omnigraph.settings import BulkSettings, Settings
from omnigraph.spark.loads.frames import FrameRows, FrameSource, LoadableFrame
from omnigraph.spark.loads.joins import SparkJoins
from omnigraph.spark.runner import SparkRunner
from omnigraph.spark.sessions import is_connect
from omnigraph.spark.streaming.records import RecordFrame, check_record_columns
from omnigraph.storage.address import Address, parse_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

QUERY_ID = "sql.streaming.queryId"
"""The local property in which Spark passes the id of a streaming query, as its checkpoint has it, to its jobs."""


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """The branch of a stream, and what its rows are: of one type, or records that name their type."""

    name: str
    branch: str = MAIN
    type: str | None = None
    edge: str | None = None
    records: bool = False
    mode: Mode = Mode.MERGE
    actor: str | None = None
    settings: BulkSettings = field(default_factory=BulkSettings)

    def __post_init__(self) -> None:
        check_stream_name(self.name)
        if (self.type is not None) + (self.edge is not None) + self.records != 1:
            raise RequestError("what are the rows of the stream? give one of type, edge and records")
        if self.mode is Mode.OVERWRITE:
            raise RequestError("a stream adds to a graph: its mode is merge or append")

    def entity(self, catalog: Catalog) -> EntityType | None:
        """The type of all rows, unless they are records."""
        if self.type is not None:
            return node_type(catalog, self.type)
        return None if self.edge is None else edge_type(catalog, self.edge)

    def batch_title(self, number: int) -> str:
        """The name of a batch in errors and commit messages."""
        return f"batch {number} of stream {self.name}"

    def load_options(self, batch: Batch) -> LoadOptions:
        """The options of the load that commits a batch."""
        message = self.batch_title(batch.number)
        return LoadOptions(
            self.mode, self.branch, actor=self.actor, message=message, batch=batch, settings=self.settings
        )

    def check(self, catalog: Catalog, types: list[tuple[str, str]]) -> None:
        """Refuse columns that do not fit."""
        entity = self.entity(catalog)
        if entity is None:
            check_record_columns(types, f"stream {self.name}")
        else:
            check_columns(entity, [column for column, _ in types], f"stream {self.name}")


@dataclass(slots=True)
class BatchWriter:
    """Writes micro-batches to a graph, for `foreachBatch`. Spark Connect pickles it and runs it on the server."""

    address: Address
    options: StreamOptions
    checkpoint: str
    embedder: EmbeddingClient | None = None
    error: Exception | None = None
    _opened: Repository | None = field(default=None, repr=False)
    _query: str | None = None

    def __getstate__(self) -> tuple[Any, ...]:
        return self.address, self.options, self.checkpoint, self.embedder

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.address, self.options, self.checkpoint, self.embedder = state
        self.error = self._opened = self._query = None

    @property
    def repository(self) -> Repository:
        if self._opened is None:
            self._opened = open_existing(self.address, read_only=False)
        return self._opened

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Commit a batch, unless it is done. One that breaks a rule stops the query; nothing of it is there."""
        try:
            self._write(frame, number)
        except Exception as error:
            self.error = error
            raise

    def _write(self, frame: DataFrame, number: int) -> None:
        options, repository = self.options, self.repository
        spark = frame.sparkSession
        batch, title = Batch(options.name, number, self._query_id(spark)), options.batch_title(number)
        entity = options.entity(repository.catalog(options.branch))
        source: LoadableFrame
        source = RecordFrame(frame, title) if entity is None else FrameSource(entity, frame, title)
        runner = SparkRunner(spark)
        engine = LoadEngine(runner, SparkJoins(runner), [FrameRows(runner, source)])
        try:
            require_open(repository, options.branch, batch)
            load(repository, (), options.load_options(batch), self.embedder, lambda: engine)
        except BatchDone:
            return
        hit("stream.after_commit")

    def _query_id(self, spark: SparkSession) -> str:
        """The id of the query, from Spark; over Spark Connect, from the checkpoint."""
        if self._query is None and not is_connect(spark):
            self._query = spark.sparkContext.getLocalProperty(QUERY_ID)
        if self._query is None:
            (row,) = spark.read.text(f"{self.checkpoint.rstrip('/')}/metadata").collect()
            self._query = str(json.loads(row.value)["id"])
        return self._query


def require_open(repository: Repository, branch: str, batch: Batch) -> None:
    """Raise BatchDone, before anything is staged, for a batch that is committed. Interrupted writes are healed."""
    heal(repository, branch)
    found = repository.branches.find(branch)
    require_next(repository.manifest.latest(found.native).streams, found.name, found.native, batch)


def stream(
    graph: Repository | str | os.PathLike[str],
    frame: DataFrame,
    *,
    name: str,
    checkpoint: str | os.PathLike[str],
    type: str | None = None,  # noqa: A002  what it is called
    edge: str | None = None,
    records: bool = False,
    mode: Literal["merge", "append"] = "merge",
    branch: str = MAIN,
    available_now: bool = False,
    processing_time: str | None = None,
    actor: str | None = None,
    storage_options: Mapping[str, str] | None = None,
    embedder: EmbeddingClient | None = None,
    settings: Settings | None = None,
) -> StreamingQuery:
    """Start to write a streaming DataFrame to a graph, each micro-batch as one commit, exactly once.

    Its rows are nodes of ``type``, edges of type ``edge``, or, with ``records``, JSON records in a column `value`.
    The name of the stream and the ``checkpoint`` belong together: a restart with both goes on where it stopped.
    ``available_now`` stops when all present input is in the graph; ``processing_time`` is the time between
    batches.
    """
    if available_now and processing_time is not None:
        raise RequestError("available_now runs once, processing_time for ever; give one of them")
    repository = graph if isinstance(graph, Repository) else _open(graph, storage_options)
    options = StreamOptions(
        name, branch, type, edge, records, load_mode(mode), actor, (settings or Settings()).bulk
    )
    repository.require_writable()
    require_shared(repository.address)
    repository.branches.find(branch)
    if not getattr(frame, "isStreaming", False):
        raise SourceUnusable(f"stream {name}", "it is not a streaming DataFrame; spark.readStream makes one")
    options.check(repository.catalog(branch), frame.dtypes)
    writer = BatchWriter(repository.address, options, os.fspath(checkpoint), embedder or configured_client())
    query = frame.writeStream.foreachBatch(writer).option("checkpointLocation", writer.checkpoint)
    if available_now:
        query = query.trigger(availableNow=True)
    elif processing_time is not None:
        query = query.trigger(processingTime=processing_time)
    started = query.start()
    if is_connect(frame.sparkSession):
        return started
    from omnigraph.spark.streaming.query import GraphQuery

    return GraphQuery(started, writer)


def _open(uri: str | os.PathLike[str], storage_options: Mapping[str, str] | None) -> Repository:
    return open_existing(parse_address(uri, storage_options), read_only=False)


def load_mode(mode: str) -> Mode:
    """The mode of a stream, by its name."""
    try:
        return Mode(mode)
    except ValueError:
        raise RequestError(f"there is no mode '{mode}'; a stream's is merge or append") from None
