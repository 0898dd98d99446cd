"""Which records of a load are wrong beside others: those that, left out, leave a load that may be committed.

Of records with one id, or one unique value, the first stays; what the graph has already stays before them all.
Nodes are decided first, so that an edge to a node that is left out is left out too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.bulk.load.badrecords import BadRow
from omnigraph.bulk.load.checks import Ground
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.scratch import Drops, packed_mask
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

Finder = Callable[[SparkRunner, Ground, str], "DataFrame"]
"""Finds staged rows of a table that break one rule: a DataFrame of their places and reasons."""


def find_bad_rows(runner: SparkRunner, ground: Ground) -> tuple[Drops, dict[int, list[BadRow]]]:
    """The staged rows that must be left out, and why, by slice.

    Where a row is left out that was to replace another, that one stays, and may be in the way of others. So a
    merge is looked at until nothing more is found.
    """
    rows: dict[int, list[BadRow]] = {}
    drops, found = ground.drops, True
    while found:
        found = False
        for table_key in sorted(ground.files, key=lambda key: (key.startswith("edge:"), key)):
            for find in _finders(ground, table_key):
                current = replace(ground, drops=drops)
                with runner.watched(f"finding bad records of {table_key}"):
                    more = _noted(current, table_key, find(runner, current, table_key), rows)
                drops = drops.with_more(more)
                found = found or (bool(more) and ground.mode is Mode.MERGE)
    return drops, rows


def _finders(ground: Ground, table_key: str) -> list[Finder]:
    """The rules of a table, in the order in which they are decided."""
    entity = ground.graph.entity(table_key)
    finders: list[Finder] = []
    if ground.gives_ids(table_key) and ground.mode is not Mode.MERGE:
        finders.append(_repeated)
        if ground.mode is Mode.APPEND and ground.graph.rows(table_key):
            finders.append(_taken)
    if isinstance(entity, EdgeType):
        finders += [_dangling("src"), _dangling("dst")]
    finders += [_shared(group) for group in entity.uniques]
    if isinstance(entity, EdgeType) and entity.maximum is not None:
        finders.append(_too_many)
    return finders


def _noted(ground: Ground, table_key: str, found: DataFrame, rows: dict[int, list[BadRow]]) -> Drops:
    """Masks of the rows that were found; they are noted by their slices."""
    files = ground.files[table_key]
    masks: dict[int, Any] = {}
    for row in found.toLocalIterator():
        number, position = divmod(row["at"], ROW)
        file = files[number]
        masks.setdefault(number, np.zeros(file.rows, bool))[position] = True
        rows.setdefault(file.slice, []).append(BadRow(table_key, file.first + position, row["reason"]))
    return Drops({files[number].name: packed_mask(mask) for number, mask in masks.items()})


def _repeated(runner: SparkRunner, ground: Ground, table_key: str) -> DataFrame:
    from pyspark.sql import functions as f

    staged = staged_frame(runner, ground, table_key, ["id"])
    first = staged.groupBy("id").agg(f.min("at").alias("first"), f.count("*").alias("n")).where("n > 1")
    reason = f.format_string("id '%s' is in %d records", "id", "n").alias("reason")
    return staged.join(first, "id").where("at > first").select("at", reason)


def _taken(runner: SparkRunner, ground: Ground, table_key: str) -> DataFrame:
    from pyspark.sql import functions as f

    staged = staged_frame(runner, ground, table_key, ["id"])
    committed = committed_frame(runner, ground, table_key, ["id"])
    reason = f.format_string("id '%s' exists already", "id").alias("reason")
    return staged.join(committed, "id", "left_semi").select("at", reason)


def _dangling(side: str) -> Finder:
    def find(runner: SparkRunner, ground: Ground, table_key: str) -> DataFrame:
        from pyspark.sql import functions as f

        edge = ground.graph.entity(table_key)
        assert isinstance(edge, EdgeType)  # noqa: S101  only edges have ends
        end = edge.source if side == "src" else edge.target
        nodes = node_ids(runner, ground, f"node:{end}").withColumnRenamed("id", side)
        edges = staged_frame(runner, ground, table_key, [side])
        reason = f.format_string(f"{side} '%s' not found in {end}", side).alias("reason")
        return edges.join(nodes, side, "left_anti").select("at", reason)

    return find


def _shared(group: Sequence[str]) -> Finder:
    def find(runner: SparkRunner, ground: Ground, table_key: str) -> DataFrame:
        from pyspark.sql import functions as f

        staged, committed = surviving(runner, ground, table_key, [*group, "id"])
        names = frame_names(group)
        every = staged.select(*names, "at")
        if committed is not None:
            every = every.unionByName(committed.select(*names, f.lit(-1).cast("bigint").alias("at")))
        every = with_one_zero(every.dropna(subset=names))
        first = every.groupBy(*names).agg(f.min("at").alias("first"), f.count("*").alias("n")).where("n > 1")
        name = ground.graph.entity(table_key).name
        reason = f.lit(f"@unique violation on {name}.({', '.join(group)}): another row has the same value")
        return every.join(first, names).where("at > first").select("at", reason.alias("reason"))

    return find


def _too_many(runner: SparkRunner, ground: Ground, table_key: str) -> DataFrame:
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    edge = ground.graph.entity(table_key)
    assert isinstance(edge, EdgeType)  # noqa: S101  only edges are counted
    most = edge.maximum or 0
    staged, committed = surviving(runner, ground, table_key, ["id", "src"])
    every = staged.select("src", "at")
    if committed is not None:
        every = every.unionByName(committed.select("src", f.lit(-1).cast("bigint").alias("at")))
    rank = f.row_number().over(Window.partitionBy("src").orderBy("at"))
    said = f"@card violation on edge {edge.name}: source '%s' has more than {most} edges"
    ranked = every.withColumn("rank", rank).where((f.col("rank") > most) & (f.col("at") >= 0))
    return ranked.select("at", f.format_string(said, "src").alias("reason"))
