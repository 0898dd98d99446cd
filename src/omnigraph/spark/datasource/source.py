"""Graphs as a data source of Spark: `spark.read.format("omnigraph")`, `spark.readStream`, and their sinks.

Filters are not pushed down: Spark 4.3 keeps a pushed filter on the loaded relation, where it leaks into every
other use of the DataFrame. Nor does it tell a source in Python which columns are used. A schema with some of the
columns, or the options `columns` and `filter`, choose what is read instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
)

from omnigraph.bulk.pieces import Piece, pieces_of, require_shared
from omnigraph.errors import RequestError
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.schema.lookup import checked_columns
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN
from omnigraph.spark.datasource.changes import ChangeReader, ChangeSource, wants_changes
from omnigraph.spark.datasource.opening import STORAGE, entity_of, opened, telling
from omnigraph.spark.datasource.queried import OPTIONS, QueryReader, QueryScan
from omnigraph.spark.frames import as_spark, spark_schema, spark_types
from omnigraph.spark.graph import check_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "omnigraph"
_OPTIONS: Final = ("path", "type", "edge", "branch", "snapshot", "columns", "filter", "query")
_LONGEST_VERSION: Final = 20


def register(spark: SparkSession) -> None:
    """Make `format("omnigraph")` known to a session."""
    spark.dataSource.register(OmnigraphSource)


@dataclass(frozen=True, slots=True)
class _TableScan:
    """What a DataFrame reads: some columns and rows of one table of one snapshot."""

    snapshot: Snapshot
    table_key: str
    types: dict[str, str]
    where: str | None


class OmnigraphSource(DataSource):
    """A type of a graph as a table. The snapshot is the one at the time of `load()`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = {name.lower(): value for name, value in options.items()}
        self._scan: _TableScan | QueryScan | None = None

    @classmethod
    def name(cls) -> str:
        return NAME

    @telling()
    def schema(self) -> str:
        if wants_changes(self._options):
            return spark_schema(ChangeSource.of(self._options).types)
        return spark_schema(self._plan().types)

    @telling()
    def reader(self, schema: StructType) -> DataSourceReader:
        if wants_changes(self._options):
            raise RequestError("changes are read as a stream: spark.readStream, with trigger(availableNow=True)")
        scan = self._plan()
        asked = {column.name: column.dataType.simpleString() for column in schema}
        if isinstance(scan, QueryScan):
            if asked != scan.types:
                raise RequestError("the schema of a query's rows is the query's; leave it out")
            return QueryReader(scan)
        for name, kind in asked.items():
            if scan.types.get(name) != kind:
                known = ", ".join(f"{name} {kind}" for name, kind in scan.types.items())
                raise RequestError(
                    f"the schema names columns of the graph, and '{name} {kind}' is none of {known}"
                )
        return OmnigraphReader(replace(scan, types=asked))

    @telling()
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from omnigraph.spark.datasource.batch import GraphWriter

        return GraphWriter(self._options, schema, overwrite=overwrite)

    @telling()
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from omnigraph.spark.datasource.stream import GraphSink

        return GraphSink(self._options, schema, overwrite=overwrite)

    @telling()
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        if not wants_changes(self._options):
            raise RequestError(
                "where does the stream begin? give option('start', …): now, beginning or after:COMMIT"
            )
        source = ChangeSource.of(self._options)
        if schema.fieldNames() != list(source.types):
            raise RequestError("the schema of a stream of changes is the graph's; leave it out")
        return ChangeReader(source)

    def _plan(self) -> _TableScan | QueryScan:
        """Open the graph and pin its state, once. Spark keeps this object for the life of the DataFrame."""
        if self._scan is None and "query" in self._options:
            check_names(self._options, OPTIONS)
            repository = opened(self._options, read_only=True)
            require_shared(repository.address)
            self._scan = QueryScan.of(self._options, _snapshot(repository, self._options))
        if self._scan is None:
            check_options(self._options, _OPTIONS)
            repository = opened(self._options, read_only=True)
            require_shared(repository.address)
            snapshot = _snapshot(repository, self._options)
            entity = entity_of(self._options, snapshot.catalog)
            columns = self._options.get("columns")
            names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
            where = self._options.get("filter")
            check_filter(snapshot, entity, where)
            types = spark_types(entity, checked_columns(entity, names))
            self._scan = _TableScan(snapshot, entity.table_key, types, where)
        return self._scan


class OmnigraphReader(DataSourceReader):
    """Reads a table piece by piece, on the workers."""

    def __init__(self, scan: _TableScan) -> None:
        self._table = scan

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(piece) for piece in pieces_of(self._table.snapshot, self._table.table_key)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        piece: Piece | None = partition.value
        if piece is None:  # how Spark says that there are no partitions
            return
        types = self._table.types
        with telling():
            for batch in piece.batches(list(types), self._table.where, whole_blobs=True):
                yield as_spark(batch, types)


def check_names(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse unknown options, and require the address."""
    for name in options:
        if name not in known and not name.startswith(STORAGE):
            raise RequestError(f"there is no option '{name}'; {suggest(name, known)}")
    if not options.get("path"):
        raise RequestError("which graph? give its address: load(path), save(path) or option('path', …)")


def check_options(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse unknown options, and require the address and the type."""
    check_names(options, known)
    if ("type" in options) == ("edge" in options):
        raise RequestError("which type? give option('type', …) for nodes or option('edge', …) for edges")


def _snapshot(repository: Repository, options: Mapping[str, str]) -> Snapshot:
    """The newest state of a branch, or that of a commit or a manifest version."""
    branch, at = repository.branches.find(options.get("branch", MAIN)), options.get("snapshot")
    if at is not None and len(at) <= _LONGEST_VERSION and at.isascii() and at.isdecimal():
        return repository.snapshot_at(branch, int(at))
    return repository.snapshot_at(branch, at)
