"""Graphs as a data source of Spark: `spark.read.format("omnigraph")`, `df.write` and `df.writeStream`.

Filters are not pushed down: Spark 4.3 keeps a pushed filter on the loaded relation, where it leaks into every
other use of the DataFrame. The options `columns` and `filter` say what is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
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
from omnigraph.bulk.typenames import checked_columns, edge_type, node_type
from omnigraph.errors import NotOnSpark, RequestError
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.repository import Repository, open_existing
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import MAIN
from omnigraph.spark.frames import as_spark, spark_schema, spark_types
from omnigraph.spark.graph import check_filter
from omnigraph.storage.address import parse_address

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

NAME: Final = "omnigraph"
STORAGE: Final = "storage."
_READ: Final = ("path", "type", "edge", "branch", "snapshot", "columns", "filter")
_LONGEST_VERSION: Final = 20


def register(spark: SparkSession) -> None:
    """Make `format("omnigraph")` known to a session."""
    spark.dataSource.register(OmnigraphSource)


@dataclass(frozen=True, slots=True)
class _Pinned:
    """What a DataFrame reads: some columns and rows of one table, of one snapshot."""

    graph: Snapshot
    table_key: str
    types: dict[str, str]
    where: str | None


class OmnigraphSource(DataSource):
    """A type of a graph as a table. The snapshot is the one at the time of `load()`."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._given = {name.lower(): value for name, value in options.items()}
        self._pinned: _Pinned | None = None

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return spark_schema(self._pin().types)

    def reader(self, schema: StructType) -> OmnigraphReader:
        pinned = self._pin()
        if schema.fieldNames() != list(pinned.types):
            raise RequestError("the schema is the graph's; to read some columns, use the option 'columns'")
        return OmnigraphReader(pinned)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        from omnigraph.spark.datasource.batch import GraphWriter

        return GraphWriter(self._given, schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802
        from omnigraph.spark.datasource.stream import GraphSink

        return GraphSink(self._given, schema, overwrite=overwrite)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802
        raise NotOnSpark("a stream of a graph's changes", "there is no change feed yet; spark.read has snapshots")

    def _pin(self) -> _Pinned:
        """Open the graph and pin its state, once: Spark keeps this object for the life of the DataFrame."""
        if self._pinned is None:
            check_options(self._given, _READ)
            repository = opened(self._given, read_only=True)
            require_shared(repository.address)
            pinned = _snapshot(repository, self._given)
            entity = entity_of(self._given, pinned.catalog)
            columns = self._given.get("columns")
            names = None if columns is None else [name.strip() for name in columns.split(",") if name.strip()]
            where = self._given.get("filter")
            check_filter(pinned, entity, where)
            types = spark_types(entity, checked_columns(entity, names))
            self._pinned = _Pinned(pinned, entity.table_key, types, where)
        return self._pinned


class OmnigraphReader(DataSourceReader):
    """Reads a table piece by piece, on the workers."""

    def __init__(self, pinned: _Pinned) -> None:
        self._table = pinned

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(piece) for piece in pieces_of(self._table.graph, self._table.table_key)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        piece: Piece | None = partition.value
        if piece is None:  # how Spark says that there are no partitions
            return
        types = self._table.types
        for batch in piece.batches(list(types), self._table.where, whole_blobs=True):
            yield as_spark(batch, types)


def check_options(given: Mapping[str, str], known: tuple[str, ...]) -> None:
    """Refuse options that nobody would look at, and ask for those that are needed."""
    for name in given:
        if name not in known and not name.startswith(STORAGE):
            raise RequestError(f"there is no option '{name}'; {suggest(name, known)}")
    if not given.get("path"):
        raise RequestError("which graph? give its address: load(path), save(path) or option('path', …)")
    if ("type" in given) == ("edge" in given):
        raise RequestError("which type? give option('type', …) for nodes or option('edge', …) for edges")


def opened(given: Mapping[str, str], *, read_only: bool) -> Repository:
    """The graph that options name; `storage.NAME` are the settings of its store."""
    settings = {name.removeprefix(STORAGE): value for name, value in given.items() if name.startswith(STORAGE)}
    return open_existing(parse_address(given["path"], settings or None), read_only=read_only)


def entity_of(given: Mapping[str, str], catalog: Catalog) -> EntityType:
    """The type that options name."""
    return node_type(catalog, given["type"]) if "type" in given else edge_type(catalog, given["edge"])


def _snapshot(repository: Repository, given: Mapping[str, str]) -> Snapshot:
    """The newest state of a branch, or that of a commit or a manifest version."""
    branch, at = repository.branches.find(given.get("branch", MAIN)), given.get("snapshot")
    if at is not None and len(at) <= _LONGEST_VERSION and at.isascii() and at.isdecimal():
        return repository.snapshot_at(branch, int(at))
    return repository.snapshot_at(branch, at)
