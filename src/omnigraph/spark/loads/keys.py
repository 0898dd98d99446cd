"""The keys of a load as DataFrames: of staged rows, of committed rows, and of the rows that stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.options import Mode
from omnigraph.spark.frames import as_spark, piece_numbers, spark_schema, spark_types, table_frame
from omnigraph.spark.runner import SparkRunner
from omnigraph.storage.files.datafiles import StagedFile, read_file

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ROW: Final = 1 << 32
"""The position of a staged row is the number of its file times this, plus its number in the file."""
_OWN: Final = ("id", "src", "dst")


def frame_names(columns: Sequence[str]) -> list[str]:
    """The names of columns on Spark. A property gets its number for a name, as its own may be one of ours, or
    differ from another only in case, which Spark ignores."""
    return [name if name in _OWN else f"p{index}" for index, name in enumerate(columns)]


def staged_frame(runner: SparkRunner, load: StagedLoad, table_key: str, columns: Sequence[str]) -> DataFrame:
    """Columns of the staged rows of a table; `at` is the position of a row."""
    files = load.files.get(table_key, ())
    kinds = spark_types(load.snapshot.entity(table_key), columns).values()
    types = {**dict(zip(frame_names(columns), kinds, strict=True)), "at": "bigint"}
    frame = piece_numbers(runner.spark, len(files), sum(file.rows for file in files))
    return frame.mapInArrow(_reading(load, files, columns, types), spark_schema(types))


def _reading(
    load: StagedLoad, files: Sequence[StagedFile], columns: Sequence[str], types: dict[str, str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for number in batch.column(0).to_pylist():
                file = files[number]
                rows = read_file(load.targets[file.table_key], file.name, columns).select(list(columns))
                named = rows.rename_columns(frame_names(columns))
                rows = named.append_column("at", pa.array(np.arange(file.rows) + number * ROW))
                for part in load.excluded.filter(rows, file).to_batches():
                    yield as_spark(part, types)

    return batches


def committed_frame(runner: SparkRunner, load: StagedLoad, table_key: str, columns: Sequence[str]) -> DataFrame:
    """Columns of the committed rows of a table."""
    return table_frame(runner.spark, load.snapshot, table_key, columns).toDF(*frame_names(columns))


def surviving(
    runner: SparkRunner, load: StagedLoad, table_key: str, columns: Sequence[str]
) -> tuple[DataFrame, DataFrame | None]:
    """The staged rows of a table, and the committed ones that stay; None if there are none."""
    staged = staged_frame(runner, load, table_key, columns) if table_key in load.files else None
    replaced = staged is not None and load.mode is Mode.OVERWRITE
    committed = None
    if not replaced and load.snapshot.rows(table_key):
        committed = committed_frame(runner, load, table_key, columns)
        if staged is not None and load.mode is Mode.MERGE and load.has_explicit_ids(table_key):
            ids = staged_frame(runner, load, table_key, ["id"]).select("id")
            committed = committed.join(ids, "id", "left_anti")
    if staged is None:
        staged = staged_frame(runner, load, table_key, columns)
    return staged, committed


def with_one_zero(frame: DataFrame) -> DataFrame:
    """The rows with -0.0 as 0.0, as the two are equal."""
    from pyspark.sql import functions as f

    for name, kind in frame.dtypes:
        if kind in ("float", "double"):
            frame = frame.withColumn(name, frame[name] + f.lit(0.0).cast(kind))
    return frame


def node_ids(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
    """The ids of a node type once the load is applied."""
    staged = staged_frame(runner, load, table_key, ["id"]).select("id")
    if table_key in load.files and load.mode is Mode.OVERWRITE:
        return staged
    return staged.unionByName(committed_frame(runner, load, table_key, ["id"]))
