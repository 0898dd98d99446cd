"""The checks of a load as joins of Spark, for keys that exceed the memory of a task.

Only key columns pass through the JVM. Keys are compared as texts, never by a hash.
"""

from __future__ import annotations

import datetime as dt
import pickle
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.bulk.load.checking.bad_records import RejectedRow
from omnigraph.bulk.load.checking.checks import Check, CheckResult, Rule, StagedLoad
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows, packed_mask
from omnigraph.bulk.matches import MatchFile, write_matches
from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.errors import ErrorGroup, Violation
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.spark.frames import piece_numbers
from omnigraph.spark.loads.keys import (
    ROW,
    committed_frame,
    frame_names,
    node_ids,
    staged_frame,
    surviving,
    with_one_zero,
)
from omnigraph.spark.loads.rejected import find_rejected
from omnigraph.spark.runner import SparkRunner
from omnigraph.write.evaluator import (
    cardinality_message,
    cardinality_reason,
    endpoint_describer,
    endpoint_reason,
    unique_message,
    unique_reason,
)
from omnigraph.write.tally import KEPT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class SparkJoins:
    """The key joins of one job, in a Spark session."""

    runner: SparkRunner

    def check(self, load: StagedLoad, check: Check) -> CheckResult:
        """Run one check for all staged rows of a table, by joins and groups."""
        result = CheckResult(check.table_key)
        entity = load.snapshot.entity(check.table_key)
        with self.runner.watched(f"checking {check.rule} of {check.table_key}"):
            if check.rule is Rule.IDS:
                _ids(self.runner, load, result)
            elif check.rule is Rule.UNIQUE:
                _unique(self.runner, load, check.columns, result)
            elif isinstance(entity, NodeType):
                _kept(self.runner, load, entity, result)
            elif check.rule is Rule.ENDS:
                _ends(self.runner, load, entity, check.columns[0], result)
            else:
                _card(self.runner, load, entity, result)
        return result

    def superseded(self, load: StagedLoad, table_key: str) -> ExcludedRows:
        """The staged rows of a table that a later row with the same id replaces."""
        from pyspark.sql import functions as f

        staged = staged_frame(self.runner, load, table_key, ["id"])
        last = staged.groupBy("id").agg(f.max("at").alias("last"), f.count("*").alias("n")).where("n > 1")
        superseded = staged.join(last, "id").where("at < last").select("at")
        with self.runner.watched(f"finding repeated records of {table_key}"):
            return _masks_of(load, table_key, superseded)

    def replaced(self, load: StagedLoad, table_key: str) -> list[MatchFile]:
        """The matches of staged and committed rows of a table, in files by the fragment of the committed row."""
        runner = self.runner
        staged = staged_frame(runner, load, table_key, ["id"])
        pieces = pieces_of(load.snapshot, table_key)
        schema = "id string, row_id bigint, row_address bigint"
        numbers = piece_numbers(runner.spark, len(pieces), load.snapshot.rows(table_key))
        committed = numbers.mapInArrow(_row_addresses(pieces), schema)
        matches = staged.join(committed, "id").selectExpr(
            "at", "row_id", "row_address", "row_address >> 32 as fragment"
        )
        written = matches.repartition("fragment").mapInArrow(
            _match_writer(runner.job, load, table_key), "file binary"
        )
        with runner.watched(f"finding replaced rows of {table_key}"):
            return [pickle.loads(row["file"]) for row in written.collect()]  # noqa: S301  made by our own tasks

    def rejected(self, load: StagedLoad) -> tuple[ExcludedRows, dict[int, list[RejectedRow]]]:
        """The staged rows that break a rule together with other rows, with the reasons, by slice."""
        return find_rejected(self.runner, load)


def _ids(runner: SparkRunner, load: StagedLoad, result: CheckResult) -> None:
    from pyspark.sql import functions as f

    table_key = result.table_key
    staged = staged_frame(runner, load, table_key, ["id"])
    counted = staged.groupBy("id").agg(f.count("*").alias("count"), f.min("at").alias("first"))
    result.repeated_total, rows = _first(counted.where("count > 1").orderBy("first"), load.error_limit)
    result.repeated = [(row["id"], row["count"]) for row in rows]
    if load.mode is Mode.APPEND and load.snapshot.rows(table_key):
        existing = committed_frame(runner, load, table_key, ["id"]).join(staged, "id", "left_semi")
        result.existing_total, rows = _first(existing.orderBy("id"), load.error_limit)
        result.existing = [row["id"] for row in rows]


def _unique(runner: SparkRunner, load: StagedLoad, columns: Sequence[str], result: CheckResult) -> None:
    from pyspark.sql import functions as f

    staged, committed = surviving(runner, load, result.table_key, [*columns, "id"])
    group = frame_names(columns)
    every = staged.select(*group, "id", "at")
    if committed is not None:
        every = every.unionByName(committed.select(*group, "id", f.lit(-1).cast("bigint").alias("at")))
    groups = (
        with_one_zero(every.dropna(subset=group))
        .groupBy(*group)
        .agg(
            f.count("*").alias("_count"),
            f.max("at").alias("_last"),
            f.min("id").alias("_low"),
            f.max("id").alias("_high"),
            f.max_by("id", "at").alias("_own"),
        )
    )
    result.total, rows = _first(groups.where("_count > 1 and _last >= 0").orderBy("_last"), load.error_limit)
    name = load.snapshot.entity(result.table_key).name
    for row in rows:
        values = [row[column] for column in group]
        message = unique_message(name, columns, values, row["_low"], row["_high"])
        result.violations.append(Violation(result.table_key, row["_own"], "unique", message))
    _count(result, result.violations, result.total, unique_reason(name, columns))


def _ends(runner: SparkRunner, load: StagedLoad, edge: EdgeType, side: str, result: CheckResult) -> None:
    nodes = node_ids(runner, load, f"node:{edge.source if side == 'src' else edge.target}")
    edges = staged_frame(runner, load, edge.table_key, ["id", side])
    dangling = edges.join(nodes.withColumnRenamed("id", side), side, "left_anti")
    result.total, rows = _first(dangling.orderBy("at"), load.error_limit)
    _add_dangling(edge, side, dangling, rows, result.total, result)


def _kept(runner: SparkRunner, load: StagedLoad, node: NodeType, result: CheckResult) -> None:
    before = committed_frame(runner, load, node.table_key, ["id"])
    after = staged_frame(runner, load, node.table_key, ["id"]).select("id")
    removed = before.join(after, "id", "left_anti")
    for edge in load.snapshot.catalog.incident[node.name]:
        if edge.table_key in load.files or not load.snapshot.rows(edge.table_key):
            continue
        for side, end in (("src", edge.source), ("dst", edge.target)):
            if end == node.name:
                edges = committed_frame(runner, load, edge.table_key, ["id", side])
                dangling = edges.join(removed.withColumnRenamed("id", side), side, "left_semi")
                total, rows = _first(dangling, load.error_limit)
                result.total += total
                _add_dangling(edge, side, dangling, rows, total, result)


def _add_dangling(
    edge: EdgeType, side: str, dangling: DataFrame, rows: Sequence[dict[str, Any]], total: int, result: CheckResult
) -> None:
    """Add edges whose ends on one side are missing: the first of them, and how many miss each id."""
    from pyspark.sql import functions as f

    if not total:
        return
    describe = endpoint_describer(edge, side)

    def violation(row: dict[str, Any]) -> Violation:
        table_key, message = describe(row)
        return Violation(table_key, row["id"], "endpoint", message)

    found = [violation(row) for row in rows]
    result.violations += found
    order = "at" if "at" in dangling.columns else "id"
    counted = dangling.groupBy(side).agg(f.count("*").alias("count"), f.min_by("id", order).alias("id"))
    largest = counted.orderBy(f.desc("count"), side).limit(KEPT).toArrow().to_pylist()
    ids = tuple(ErrorGroup("endpoint", row[side], row["count"], violation(row)) for row in largest)
    _count(result, found, total, endpoint_reason(edge, side), ids)


def _count(
    result: CheckResult,
    found: Sequence[Violation],
    total: int,
    reason: str,
    ids: tuple[ErrorGroup, ...] = (),
) -> None:
    """Add violations to the summary of a check."""
    if total:
        result.groups += (ErrorGroup(found[0].rule, reason, total, found[0], ids),)


def _card(runner: SparkRunner, load: StagedLoad, edge: EdgeType, result: CheckResult) -> None:
    from pyspark.sql import functions as f

    staged, committed = surviving(runner, load, edge.table_key, ["id", "src"])
    touched, after = staged.select("src"), staged.select("src")
    if committed is not None:
        if load.mode is Mode.MERGE and load.has_explicit_ids(edge.table_key):
            moved = committed_frame(runner, load, edge.table_key, ["id", "src"])
            touched = touched.unionByName(moved.join(staged.select("id"), "id", "left_semi").select("src"))
        after = after.unionByName(committed.select("src"))
    counts = after.groupBy("src").agg(f.count("*").alias("edges"))
    counted = touched.distinct().join(counts, "src", "left").fillna({"edges": 0})
    bounds = []
    if edge.maximum is not None:
        bounds.append((f"(max {edge.maximum})", counted.where(f.col("edges") > edge.maximum)))
    if edge.minimum:
        bounds.append((f"(min {edge.minimum})", counted.where(f.col("edges") < edge.minimum)))
    for bound, violating in bounds:
        total, rows = _first(violating.orderBy("src"), load.error_limit)
        result.total += total
        found = [
            Violation(
                edge.table_key, row["src"], "card", cardinality_message(edge, row["src"], row["edges"], bound)
            )
            for row in rows
        ]
        result.violations += found
        _count(result, found, total, cardinality_reason(edge, bound))


def _first(frame: DataFrame, limit: int) -> tuple[int, list[dict[str, Any]]]:
    """How many rows there are, and the first of them. They are counted only if there are more than the limit.

    They come through Arrow, as Spark's own rows would have instants in some local time.
    """
    rows = [_in_utc(row) for row in frame.limit(limit + 1).toArrow().to_pylist()]
    if len(rows) <= limit:
        return len(rows), rows
    return frame.count(), rows[:limit]


def _in_utc(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v.astimezone(dt.UTC) if isinstance(v, dt.datetime) else v for k, v in row.items()}


def _masks_of(load: StagedLoad, table_key: str, positions: DataFrame) -> ExcludedRows:
    """Exclude the rows at these positions. The driver holds one partition of them at a time."""
    files = load.files[table_key]
    masks: dict[int, Any] = {}
    for row in positions.toLocalIterator(prefetchPartitions=True):
        number, position = divmod(row["at"], ROW)
        masks.setdefault(number, np.zeros(files[number].rows, bool))[position] = True
    return ExcludedRows({files[number].name: packed_mask(mask) for number, mask in masks.items()})


def _row_addresses(pieces: list[Piece]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for number in batch.column(0).to_pylist():
                for rows in pieces[number].batches(["id"], row_ids=True, row_addresses=True):
                    arrays = [rows["id"], rows["_rowid"].cast(pa.int64()), rows["_rowaddr"].cast(pa.int64())]
                    yield pa.RecordBatch.from_arrays(arrays, names=["id", "row_id", "row_address"])

    return batches


def _match_writer(
    job: str, load: StagedLoad, table_key: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    names = pa.array([file.name for file in load.files[table_key]])

    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = [batch for batch in parts if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received)
        at = rows["at"].to_numpy()
        matches = pa.table(
            {
                "file": names.take(pa.array(at >> 32)),
                "row": at & (ROW - 1),
                "row_id": rows["row_id"].cast(pa.uint64()),
                "row_address": rows["row_address"].cast(pa.uint64()),
            }
        )
        written = write_matches(load.snapshot.address, job, f"matches-{uuid.uuid4().hex}", matches)
        yield pa.RecordBatch.from_pydict({"file": pa.array([pickle.dumps(written)], pa.binary())})

    return batches
