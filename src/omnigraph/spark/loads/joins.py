"""The same questions where keys do not fit a worker's memory: relational, through Spark's shuffle.

Only key columns pass through the JVM. A text is compared as a text here too: nothing is decided by a hash.
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

from omnigraph.bulk.load.badrecords import BadRow
from omnigraph.bulk.load.checks import Findings, Ground, Question, Rule
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.bulk.scratch import Drops, MatchFile, packed_mask, write_matches
from omnigraph.errors import Violation
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
from omnigraph.spark.loads.skipping import find_bad_rows
from omnigraph.spark.runner import SparkRunner
from omnigraph.write.evaluator import cardinality_message, endpoint_describer, unique_message

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class SparkJoins:
    """Checks of keys by Spark's joins, within one job."""

    runner: SparkRunner

    def check(self, ground: Ground, question: Question) -> Findings:
        """Check one rule for all staged rows of a table, by joins and groups."""
        return _check(self.runner, ground, question)

    def repeated(self, ground: Ground, table_key: str) -> Drops:
        """The staged rows of a table that later ones with the same id replace."""
        return _repeated(self.runner, ground, table_key)

    def replaced(self, ground: Ground, table_key: str) -> list[MatchFile | None]:
        """Pairs of committed rows of a table and the staged rows with their ids."""
        return _replaced(self.runner, ground, table_key)

    def bad_rows(self, ground: Ground) -> tuple[Drops, dict[int, list[BadRow]]]:
        """The staged rows that break a rule together with others, and why, by slice."""
        return find_bad_rows(self.runner, ground)


def _check(runner: SparkRunner, ground: Ground, question: Question) -> Findings:
    """Answer one question by joins and groups."""
    findings = Findings(table_key=question.table_key)
    entity = ground.graph.entity(question.table_key)
    with runner.watched(f"checking {question.rule} of {question.table_key}"):
        if question.rule is Rule.IDS:
            _ids(runner, ground, question.table_key, findings)
        elif question.rule is Rule.UNIQUE:
            _unique(runner, ground, question, findings)
        elif isinstance(entity, NodeType):
            _kept(runner, ground, entity, findings)
        elif question.rule is Rule.ENDS:
            _ends(runner, ground, entity, question.columns[0], findings)
        else:
            _card(runner, ground, entity, findings)
    return findings


def _ids(runner: SparkRunner, ground: Ground, table_key: str, findings: Findings) -> None:
    from pyspark.sql import functions as f

    staged = staged_frame(runner, ground, table_key, ["id"])
    counted = staged.groupBy("id").agg(f.count("*").alias("count"), f.min("at").alias("first"))
    findings.repeated_total, rows = _first(counted.where("count > 1").orderBy("first"), ground.most)
    findings.repeated = [(row["id"], row["count"]) for row in rows]
    if ground.mode is Mode.APPEND and ground.graph.rows(table_key):
        taken = committed_frame(runner, ground, table_key, ["id"]).join(staged, "id", "left_semi")
        findings.taken_total, rows = _first(taken.orderBy("id"), ground.most)
        findings.taken = [row["id"] for row in rows]


def _unique(runner: SparkRunner, ground: Ground, question: Question, findings: Findings) -> None:
    from pyspark.sql import functions as f

    staged, committed = surviving(runner, ground, question.table_key, [*question.columns, "id"])
    group = frame_names(question.columns)
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
    findings.total, rows = _first(groups.where("_count > 1 and _last >= 0").orderBy("_last"), ground.most)
    name = ground.graph.entity(question.table_key).name
    for row in rows:
        values = [row[column] for column in group]
        message = unique_message(name, question.columns, values, row["_low"], row["_high"])
        findings.violations.append(Violation(question.table_key, row["_own"], "unique", message))


def _ends(runner: SparkRunner, ground: Ground, edge: EdgeType, side: str, findings: Findings) -> None:
    nodes = node_ids(runner, ground, f"node:{edge.source if side == 'src' else edge.target}")
    edges = staged_frame(runner, ground, edge.table_key, ["id", side])
    dangling = edges.join(nodes.withColumnRenamed("id", side), side, "left_anti")
    findings.total, rows = _first(dangling.orderBy("at"), ground.most)
    _note(endpoint_describer(edge, side), rows, findings)


def _kept(runner: SparkRunner, ground: Ground, node: NodeType, findings: Findings) -> None:
    before = committed_frame(runner, ground, node.table_key, ["id"])
    after = staged_frame(runner, ground, node.table_key, ["id"]).select("id")
    removed = before.join(after, "id", "left_anti")
    for edge in ground.graph.catalog.incident[node.name]:
        if edge.table_key in ground.files or not ground.graph.rows(edge.table_key):
            continue
        for side, end in (("src", edge.source), ("dst", edge.target)):
            if end == node.name:
                edges = committed_frame(runner, ground, edge.table_key, ["id", side])
                dangling = edges.join(removed.withColumnRenamed("id", side), side, "left_semi")
                total, rows = _first(dangling, ground.most)
                findings.total += total
                _note(endpoint_describer(edge, side), rows, findings)


def _note(describe: Any, rows: Sequence[Any], findings: Findings) -> None:
    for row in rows:
        table_key, message = describe(row)
        findings.violations.append(Violation(table_key, row["id"], "endpoint", message))


def _card(runner: SparkRunner, ground: Ground, edge: EdgeType, findings: Findings) -> None:
    from pyspark.sql import functions as f

    staged, committed = surviving(runner, ground, edge.table_key, ["id", "src"])
    touched, after = staged.select("src"), staged.select("src")
    if committed is not None:
        if ground.mode is Mode.MERGE and ground.gives_ids(edge.table_key):
            moved = committed_frame(runner, ground, edge.table_key, ["id", "src"])
            touched = touched.unionByName(moved.join(staged.select("id"), "id", "left_semi").select("src"))
        after = after.unionByName(committed.select("src"))
    counts = after.groupBy("src").agg(f.count("*").alias("edges"))
    counted = touched.distinct().join(counts, "src", "left").fillna({"edges": 0})
    wrong = []
    if edge.maximum is not None:
        wrong.append((f"(max {edge.maximum})", counted.where(f.col("edges") > edge.maximum)))
    if edge.minimum:
        wrong.append((f"(min {edge.minimum})", counted.where(f.col("edges") < edge.minimum)))
    for bound, broken in wrong:
        total, rows = _first(broken.orderBy("src"), ground.most)
        findings.total += total
        for row in rows:
            message = cardinality_message(edge, row["src"], row["edges"], bound)
            findings.violations.append(Violation(edge.table_key, row["src"], "card", message))


def _first(frame: DataFrame, most: int) -> tuple[int, list[dict[str, Any]]]:
    """How many rows there are, and the first of them; counted only if there are more.

    They come through Arrow, as rows of tables do: Spark's own rows would have instants in some local time.
    """
    rows = [_in_utc(row) for row in frame.limit(most + 1).toArrow().to_pylist()]
    if len(rows) <= most:
        return len(rows), rows
    return frame.count(), rows[:most]


def _in_utc(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v.astimezone(dt.UTC) if isinstance(v, dt.datetime) else v for k, v in row.items()}


def _repeated(runner: SparkRunner, ground: Ground, table_key: str) -> Drops:
    """The staged rows of a table that a later one with the same id replaces."""
    from pyspark.sql import functions as f

    staged = staged_frame(runner, ground, table_key, ["id"])
    last = staged.groupBy("id").agg(f.max("at").alias("last"), f.count("*").alias("n")).where("n > 1")
    lost = staged.join(last, "id").where("at < last").select("at")
    with runner.watched(f"finding repeated records of {table_key}"):
        return masks_at(ground, table_key, lost)


def masks_at(ground: Ground, table_key: str, places: DataFrame) -> Drops:
    """Masks of the rows at these places. They pass the driver one partition at a time, and leave a bit each."""
    files = ground.files[table_key]
    masks: dict[int, Any] = {}
    for row in places.toLocalIterator(prefetchPartitions=True):
        number, position = divmod(row["at"], ROW)
        masks.setdefault(number, np.zeros(files[number].rows, bool))[position] = True
    return Drops({files[number].name: packed_mask(mask) for number, mask in masks.items()})


def _replaced(runner: SparkRunner, ground: Ground, table_key: str) -> list[MatchFile | None]:
    """Pairs of staged and committed rows with the same id, in files by the fragment of the committed row."""
    staged = staged_frame(runner, ground, table_key, ["id"])
    pieces = pieces_of(ground.graph, table_key)
    schema = "id string, row_id bigint, row_address bigint"
    numbers = piece_numbers(runner.spark, len(pieces), ground.graph.rows(table_key))
    committed = numbers.mapInArrow(_located(pieces), schema)
    pairs = staged.join(committed, "id").selectExpr("at", "row_id", "row_address", "row_address >> 32 as fragment")
    written = pairs.repartition("fragment").mapInArrow(_writing(runner.job, ground, table_key), "file binary")
    with runner.watched(f"finding replaced rows of {table_key}"):
        return [pickle.loads(row["file"]) for row in written.collect()]  # noqa: S301  made by our own tasks


def _located(pieces: list[Piece]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for number in batch.column(0).to_pylist():
                for rows in pieces[number].batches(["id"], row_ids=True, row_addresses=True):
                    arrays = [rows["id"], rows["_rowid"].cast(pa.int64()), rows["_rowaddr"].cast(pa.int64())]
                    yield pa.RecordBatch.from_arrays(arrays, names=["id", "row_id", "row_address"])

    return batches


def _writing(
    job: str, ground: Ground, table_key: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    names = pa.array([file.name for file in ground.files[table_key]])

    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(parts)
        rows = pa.Table.from_batches(held) if held else None
        if rows is None or not rows.num_rows:
            return
        at = rows["at"].to_numpy()
        matches = pa.table(
            {
                "file": names.take(pa.array(at >> 32)),
                "row": at & (ROW - 1),
                "row_id": rows["row_id"].cast(pa.uint64()),
                "row_address": rows["row_address"].cast(pa.uint64()),
            }
        )
        written = write_matches(ground.graph.address, job, f"matches-{uuid.uuid4().hex}", matches)
        yield pa.RecordBatch.from_pydict({"file": pa.array([pickle.dumps(written)], pa.binary())})

    return batches
