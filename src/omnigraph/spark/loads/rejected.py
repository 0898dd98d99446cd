"""Which rows of a load break a rule together with other rows, so that the rest can be loaded without them.

Of records with one id, or one unique value, the first stays; committed rows stay before all records. Nodes are
decided first, so that an edge to a rejected node is rejected too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.checking.rejecting import Rejected, rejected_rows
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows, packed_mask
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.spark.loads.keys import (
    ROW,
    committed_frame,
    frame_names,
    node_ids,
    staged_frame,
    surviving,
    with_one_zero,
)
from omnigraph.spark.runner import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Finder = Callable[[SparkRunner, StagedLoad, str], "DataFrame"]
"""Finds the staged rows of a table that break one rule: a DataFrame of their positions and reasons."""


def find_rejected(runner: SparkRunner, load: StagedLoad) -> tuple[ExcludedRows, Rejected]:
    """The staged rows that must be skipped, with the reasons, by slice."""

    def found(find: Finder, current: StagedLoad, table_key: str, rows: Rejected) -> ExcludedRows:
        with runner.watched(f"finding bad records of {table_key}"):
            return _collected(current, table_key, find(runner, current, table_key), rows)

    return rejected_rows(load, _finders, found)


def _finders(load: StagedLoad, table_key: str) -> list[Finder]:
    """The rules of a table, in the order in which they are applied."""
    entity = load.snapshot.entity(table_key)
    finders: list[Finder] = []
    if load.has_explicit_ids(table_key) and load.mode is not Mode.MERGE:
        finders.append(_repeated)
        if load.mode is Mode.APPEND and load.snapshot.rows(table_key):
            finders.append(_existing)
    if isinstance(entity, EdgeType):
        finders += [_dangling("src"), _dangling("dst")]
    finders += [_shared(group) for group in entity.uniques]
    if isinstance(entity, EdgeType) and entity.maximum is not None:
        finders.append(_too_many)
    return finders


def _collected(
    load: StagedLoad, table_key: str, found: DataFrame, rows: dict[int, list[RejectedRow]]
) -> ExcludedRows:
    """Masks of the rows that were found, which are added to ``rows`` by slice."""
    files = load.files[table_key]
    masks: dict[int, Any] = {}
    for row in found.toLocalIterator():
        number, position = divmod(row["at"], ROW)
        file = files[number]
        masks.setdefault(number, np.zeros(file.rows, bool))[position] = True
        rows.setdefault(file.slice, []).append(RejectedRow(table_key, file.first + position, row["reason"]))
    return ExcludedRows({files[number].name: packed_mask(mask) for number, mask in masks.items()})


def _repeated(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
    from pyspark.sql import functions as f

    staged = staged_frame(runner, load, table_key, ["id"])
    first = staged.groupBy("id").agg(f.min("at").alias("first"), f.count("*").alias("n")).where("n > 1")
    reason = f.format_string("id '%s' is in %d records", "id", "n").alias("reason")
    return staged.join(first, "id").where("at > first").select("at", reason)


def _existing(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
    from pyspark.sql import functions as f

    staged = staged_frame(runner, load, table_key, ["id"])
    committed = committed_frame(runner, load, table_key, ["id"])
    reason = f.format_string("id '%s' exists already", "id").alias("reason")
    return staged.join(committed, "id", "left_semi").select("at", reason)


def _dangling(side: str) -> Finder:
    def find(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
        from pyspark.sql import functions as f

        edge = load.snapshot.entity(table_key)
        assert isinstance(edge, EdgeType)  # noqa: S101  only edges have ends
        end = edge.source if side == "src" else edge.target
        nodes = node_ids(runner, load, f"node:{end}").withColumnRenamed("id", side)
        edges = staged_frame(runner, load, table_key, [side])
        reason = f.format_string(f"{side} '%s' not found in {end}", side).alias("reason")
        return edges.join(nodes, side, "left_anti").select("at", reason)

    return find


def _shared(group: Sequence[str]) -> Finder:
    def find(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
        from pyspark.sql import functions as f

        staged, committed = surviving(runner, load, table_key, [*group, "id"])
        names = frame_names(group)
        every = staged.select(*names, "at")
        if committed is not None:
            every = every.unionByName(committed.select(*names, f.lit(-1).cast("bigint").alias("at")))
        every = with_one_zero(every.dropna(subset=names))
        first = every.groupBy(*names).agg(f.min("at").alias("first"), f.count("*").alias("n")).where("n > 1")
        name = load.snapshot.entity(table_key).name
        reason = f.lit(f"@unique violation on {name}.({', '.join(group)}): another row has the same value")
        return every.join(first, names).where("at > first").select("at", reason.alias("reason"))

    return find


def _too_many(runner: SparkRunner, load: StagedLoad, table_key: str) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    edge = load.snapshot.entity(table_key)
    assert isinstance(edge, EdgeType)  # noqa: S101  only edges have a cardinality
    maximum = edge.maximum or 0
    staged, committed = surviving(runner, load, table_key, ["id", "src"])
    every = staged.select("src", "at")
    if committed is not None:
        every = every.unionByName(committed.select("src", f.lit(-1).cast("bigint").alias("at")))
    rank = f.row_number().over(Window.partitionBy("src").orderBy("at"))
    message = f"@card violation on edge {edge.name}: source '%s' has more than {maximum} edges"
    ranked = every.withColumn("rank", rank).where((f.col("rank") > maximum) & (f.col("at") >= 0))
    return ranked.select("at", f.format_string(message, "src").alias("reason"))
