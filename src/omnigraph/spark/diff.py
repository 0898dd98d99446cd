"""The difference of two snapshots as a Spark DataFrame, computed by the workers.

Workers find the rows that were written between the two snapshots, by row ids and ids alone; Spark brings those
with one id together; and workers read and compare the rows of each partition. No row passes through the driver.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.merge.buckets import row_bytes
from omnigraph.bulk.pieces import open_tables
from omnigraph.errors import NotOnSpark
from omnigraph.history.diff import ChangeFilter, Op, TableDiff, diff_table, moved_tables, with_ops
from omnigraph.history.tables import (
    ROW_ID,
    RowDeltas,
    Stretch,
    Touched,
    TouchedRows,
    rows_by_row_ids,
    stretches_between,
)
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.result.cells import json_value, python_values
from omnigraph.settings import BulkSettings
from omnigraph.spark.frames import arrow_type, spark_types

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READ_AT_A_TIME: Final = 65_536
_TOUCHED: Final = "table int, stretch int, is_after boolean, id string, row_id bigint"
_TOUCHED_ARROW: Final = pa.schema(
    {"table": pa.int32(), "stretch": pa.int32(), "is_after": pa.bool_(), "id": pa.string(), "row_id": pa.int64()}
)
Batches = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Some of the rows that were written along one stretch of a table."""

    table: int
    stretch: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class _Compared:
    """Two snapshots, the tables that may differ, and the stretches that lead from one to the other."""

    before: Snapshot
    after: Snapshot
    keys: tuple[str, ...]
    stretches: tuple[tuple[Stretch, ...], ...]
    ops: frozenset[Op] | None


def diff_frame(
    spark: SparkSession,
    before: Snapshot,
    after: Snapshot,
    wanted: ChangeFilter,
    typed: EntityType | None = None,
    settings: BulkSettings | None = None,
) -> DataFrame:
    """The changes from one snapshot to another: op, table_key, id, changed, before, after.

    The rows before and after are JSON, or structs with the properties of one type, if only that one is compared.
    """
    if before.schema_digest != after.schema_digest:
        raise NotOnSpark("a diff across a change of the schema", "use Graph.diff")
    sizes = settings or BulkSettings()
    shown = "string" if typed is None else _struct(typed)
    schema = f"op string, table_key string, id string, changed array<string>, before {shown}, after {shown}"
    compared, parts, size = _measured(before, after, wanted, sizes.rows_per_task)
    if not parts:
        return spark.createDataFrame([], schema)
    touched = spark.range(0, len(parts), 1, len(parts)).mapInArrow(_finding(compared, parts), _TOUCHED)
    buckets = max(1, -(-size // sizes.merge_bucket))
    return touched.repartition(buckets, "table", "id").mapInArrow(_comparing(compared, typed), schema)


def _struct(entity: EntityType) -> str:
    types = spark_types(entity, entity.columns)
    return f"struct<{', '.join(f'`{name}`: {kind}' for name, kind in types.items())}>"


def _measured(
    before: Snapshot, after: Snapshot, wanted: ChangeFilter, rows: int
) -> tuple[_Compared, list[_Part], int]:
    """What is compared, the parts of it that tasks read, and about how many bytes of rows they are."""
    tables = open_tables(after.address)
    keys = moved_tables(before, after, wanted)
    refs = [(before.tables[key].ref, after.tables[key].ref) for key in keys]
    stretches = tuple(tuple(stretches_between(tables, old, new)) for old, new in refs)
    parts: list[_Part] = []
    size = 0
    for table, found in enumerate(stretches):
        for number, stretch in enumerate(found):
            count = len(RowDeltas(tables)(stretch))
            size += count * row_bytes(after.entity(keys[table]))
            parts += [_Part(table, number, start, start + rows) for start in range(0, count, rows)]
    return _Compared(before, after, tuple(keys), stretches, wanted.ops), parts, size


def _finding(compared: _Compared, parts: Sequence[_Part]) -> Batches:
    """Finds the ids and row ids of the rows that were written."""

    def batches(indexes: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in indexes:
            for index in batch.column(0).to_pylist():
                yield from _touched_rows(compared, parts[index])

    return batches


def _touched_rows(compared: _Compared, part: _Part) -> Iterator[pa.RecordBatch]:
    tables = open_tables(compared.after.address)
    stretch = compared.stretches[part.table][part.stretch]
    found, first = RowDeltas(tables)(stretch), 0
    for is_after, ref, row_ids in ((False, stretch.start, found.before), (True, stretch.end, found.after)):
        low, high = max(part.start - first, 0), min(part.stop - first, len(row_ids))
        for start in range(low, high, _READ_AT_A_TIME):
            chunk = row_ids.slice(start, min(_READ_AT_A_TIME, high - start))
            rows = rows_by_row_ids(tables, ref, chunk, ["id"], with_row_ids=True)
            count = rows.num_rows
            columns = [
                np.full(count, part.table, np.int32),
                np.full(count, part.stretch, np.int32),
                np.full(count, is_after),
                rows["id"],
                rows[ROW_ID].cast(pa.int64()),
            ]
            yield from pa.table(columns, schema=_TOUCHED_ARROW).to_batches()
        first += len(row_ids)


def _comparing(compared: _Compared, typed: EntityType | None) -> Batches:
    """Compares the rows of one partition, which has all versions of the entities in it."""

    def batches(parts: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = [batch for batch in parts if batch.num_rows]
        if not received:
            return
        rows = pa.Table.from_batches(received)
        tables = open_tables(compared.after.address)
        for number in sorted(pc.unique(rows["table"]).to_pylist()):
            mine = rows.filter(pc.equal(rows["table"], number))
            touched = _touched_in(mine, compared.stretches[number])
            found = diff_table(tables, compared.before, compared.after, compared.keys[number], touched)
            yield from _shown(with_ops(found, compared.ops), typed).to_batches()

    return batches


def _touched_in(rows: pa.Table, stretches: Sequence[Stretch]) -> Touched:
    """Finds the rows of a partition that were written along a stretch."""
    numbers = {stretch: number for number, stretch in enumerate(stretches)}

    def find(stretch: Stretch) -> TouchedRows:
        mine = rows.filter(pc.equal(rows["stretch"], numbers[stretch]))
        before, after = (
            mine.filter(pc.equal(mine["is_after"], late))["row_id"].cast(pa.uint64()).combine_chunks()
            for late in (False, True)
        )
        return TouchedRows(before, after)

    return find


def _shown(found: TableDiff, typed: EntityType | None) -> pa.Table:
    image = _json_rows if typed is None else _struct_rows(typed)
    return pa.table(
        {
            "op": found.ops.cast(pa.string()),
            "table_key": pa.array([found.table_key], pa.string()).take(pa.array(np.zeros(len(found.ids), int))),
            "id": found.ids,
            "changed": _changed(found),
            "before": image(found.before, pc.equal(found.ops, Op.INSERT.value)),
            "after": image(found.after, pc.equal(found.ops, Op.DELETE.value)),
        }
    )


def _changed(found: TableDiff) -> pa.Array:
    """The names of the properties that each update changed."""
    is_update = pc.equal(found.ops, Op.UPDATE.value).to_numpy(zero_copy_only=False)
    masks = [mask.to_numpy(zero_copy_only=False) & is_update for mask in found.changed.values()]
    if not masks:
        return pa.array([[]] * len(found.ids), pa.list_(pa.string()))
    grid = np.stack(masks, axis=1)
    names = pa.array(list(found.changed), pa.string()).take(pa.array(np.nonzero(grid)[1]))
    offsets = np.concatenate([[0], np.cumsum(grid.sum(axis=1))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), names)


def _json_rows(rows: pa.Table, is_missing: pa.Array) -> pa.Array:
    """Rows as JSON texts, as `Change.as_json` has them."""
    columns = [python_values(rows[name]) for name in rows.column_names]
    texts = [
        None if missing else json.dumps(_image(rows.column_names, values), ensure_ascii=False)
        for missing, values in zip(is_missing.to_pylist(), zip(*columns, strict=True), strict=True)
    ]
    return pa.array(texts, pa.string())


def _image(names: Sequence[str], values: Sequence[Any]) -> dict[str, Any]:
    return {name: json_value(value) for name, value in zip(names, values, strict=True)}


def _struct_rows(entity: EntityType) -> Callable[[pa.Table, pa.Array], pa.Array]:
    types = spark_types(entity, entity.columns)

    def structs(rows: pa.Table, is_missing: pa.Array) -> pa.Array:
        columns = [rows[name].cast(arrow_type(kind)).combine_chunks() for name, kind in types.items()]
        return pa.StructArray.from_arrays(columns, names=list(types), mask=is_missing)

    return structs
