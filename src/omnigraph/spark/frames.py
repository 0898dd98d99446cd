"""Tables of a snapshot as Spark DataFrames."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.manifest.snapshot import Snapshot

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SPARK_NAMES: Final = {
    Scalar.STRING: "string",
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "bigint",
    Scalar.U32: "bigint",
    Scalar.U64: "decimal(20,0)",
    Scalar.F32: "float",
    Scalar.F64: "double",
    Scalar.DATE: "date",
    Scalar.DATETIME: "timestamp",
    Scalar.BLOB: "binary",
}
_ARROW: Final = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "decimal(20,0)": pa.decimal128(20, 0),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "binary": pa.binary(),
}


def spark_types(entity: EntityType, columns: Sequence[str]) -> dict[str, str]:
    """The Spark type of each column. Spark has no unsigned numbers: U32 is a bigint, U64 a decimal."""
    types: dict[str, str] = {}
    for name in columns:
        prop = entity.properties.get(name)
        if prop is None:
            types[name] = "string"
            continue
        types[name] = spark_type(prop.type)
    return types


def spark_type(value_type: ValueType) -> str:
    """The Spark type of values of a type."""
    scalar = _SPARK_NAMES[value_type.scalar]
    return scalar if value_type.is_plain else f"array<{scalar}>"


def spark_schema(types: dict[str, str]) -> str:
    """The schema of a DataFrame with these columns, as Spark reads it."""
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())


def arrow_type(kind: str) -> pa.DataType:
    """The Arrow type in which Spark sends and receives one of its types."""
    if kind.startswith("array<"):
        return pa.list_(arrow_type(kind.removeprefix("array<").removesuffix(">")))
    return _ARROW[kind]


def as_spark(batch: pa.RecordBatch, types: dict[str, str]) -> pa.RecordBatch:
    """Rows of a table with the types that the DataFrame declares."""
    columns = [batch.column(name).cast(arrow_type(kind)) for name, kind in types.items()]
    return pa.RecordBatch.from_arrays(columns, names=list(types))


def table_frame(
    spark: SparkSession,
    snapshot: Snapshot,
    table_key: str,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> DataFrame:
    """A table of a snapshot, or some columns and rows of it; ``where`` is a filter in Lance's SQL.

    Workers read the rows when Spark runs the DataFrame.
    """
    entity = snapshot.entity(table_key)
    chosen = list(columns) if columns is not None else list(entity.columns)
    types = spark_types(entity, chosen)
    pieces = pieces_of(snapshot, table_key)
    frame = piece_numbers(spark, len(pieces), snapshot.rows(table_key))
    return frame.mapInArrow(_reading(pieces, types, where), spark_schema(types))


def piece_numbers(spark: SparkSession, pieces: int, rows: int) -> DataFrame:
    """The numbers of the pieces of a table, each in a partition of its own.

    Spark estimates the size of a DataFrame by that of its source, and would broadcast a table that is made from a
    few numbers. So the source has as many numbers as the table has rows, filtered to one per piece.
    """
    each = max(1, rows // max(1, pieces))
    numbers = spark.range(0, pieces * each, 1, max(1, pieces))
    return numbers.where(f"id % {each} = 0").selectExpr(f"id div {each} as piece")


def _reading(
    pieces: list[Piece], types: dict[str, str], where: str | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for index in batch.column(0).to_pylist():
                for rows in pieces[index].batches(list(types), where, whole_blobs=True):
                    yield as_spark(rows, types)

    return batches
