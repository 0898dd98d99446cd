"""The parts of an export: what each task reads and writes as one file.

Unordered, a part is some fragments of a table in the order of the table. Ordered by id, the ranges of the parts
depend on the rows alone, so that equal graphs give equal files: large tables are sorted piece by piece into runs,
and each part merges its range of ids from every run.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.export.targets import RUNS, Target
from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.bulk.ranges import open_file
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.formats.encoding import grouped, json_lines, row_bytes, write_parquet
from omnigraph.formats.format import Format
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.values.exact import hashed
from omnigraph.settings import BulkSettings

_MAX_BATCH_ROWS: Final = 8_192
_SAMPLED_IDS: Final = 100_000
_SORTED_BATCH_ROWS: Final = 65_536
_WIDTHS: Final = {Scalar.STRING: 32, Scalar.BOOL: 1, Scalar.I32: 4, Scalar.U32: 4, Scalar.F32: 4, Scalar.DATE: 4}


class PartSource(Protocol):
    """Where the rows of a part come from."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order in which they are written, with the bytes of blobs."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows in the order of the table."""

    piece: Piece
    batch_bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        return whole_rows(self.piece, self.batch_bytes)


@dataclass(frozen=True, slots=True)
class Sorted:
    """A table that is small enough to be sorted in memory."""

    pieces: tuple[Piece, ...]
    batch_bytes: int

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows = [batch for piece in self.pieces for batch in whole_rows(piece, self.batch_bytes)]
        return iter(_by_id(rows).to_batches(max_chunksize=_SORTED_BATCH_ROWS))


@dataclass(frozen=True, slots=True)
class Merged:
    """A range of ids from all runs: each run by its path and the numbers of its batches in the range."""

    scratch: Target
    runs: tuple[tuple[str, tuple[int, ...]], ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows: list[pa.RecordBatch] = []
        for path, numbers in self.runs:
            with open_file(self.scratch.name(path), self.scratch.options) as file, pa.ipc.open_file(file) as run:
                rows += [run.get_batch(number) for number in numbers]
        return iter(_by_id(rows).to_batches(max_chunksize=_SORTED_BATCH_ROWS))


@dataclass(frozen=True, slots=True)
class PartTask:
    """Writes one file."""

    entity: EntityType
    source: PartSource
    path: str
    format: Format
    target: Target


@dataclass(frozen=True, slots=True)
class Part:
    """A file that was written."""

    table_key: str
    path: str
    rows: int
    bytes: int


def write_part(task: PartTask) -> TaskResult[Part]:
    """Write one file."""
    rows = 0

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    batches = counted(task.source.batches())
    if task.format is Format.PARQUET:
        size = task.target.write_file(task.path, lambda sink: write_parquet(task.entity, batches, sink))
    else:
        lines = (line for batch in batches for line in json_lines(task.entity, batch))
        size = task.target.write_chunks(task.path, lines)
    return TaskResult(Part(task.entity.table_key, task.path, rows, size), rows, size)


def stored_parts(snapshot: Snapshot, table_key: str, settings: BulkSettings) -> list[PartSource]:
    """The parts of a table in its own order."""
    pieces = _pieces(snapshot, table_key, settings)
    return [Scan(piece, settings.batch_bytes) for piece in pieces]


def _pieces(snapshot: Snapshot, table_key: str, settings: BulkSettings) -> list[Piece]:
    """A table in pieces that give parts of the right size."""
    fitting = settings.part_bytes // _width(snapshot.entity(table_key))
    return pieces_of(snapshot, table_key, max(1, min(settings.rows_per_task, fitting)))


def ordered_parts(
    snapshot: Snapshot, keys: Sequence[str], runner: Runner, scratch: Target, settings: BulkSettings
) -> dict[str, list[PartSource]]:
    """The parts of tables in the order of their ids. The runs of tables that exceed one part go to ``scratch``."""
    pieces = {key: _pieces(snapshot, key, settings) for key in keys}
    tasks = [
        _MeasureTask(piece, _sample_limit(snapshot.rows(key)), settings.batch_bytes)
        for key in keys
        for piece in pieces[key]
    ]
    measures: dict[str, list[_Measure]] = {key: [] for key in keys}
    for task, measure in zip(tasks, runner.run("measure", _measure, tasks), strict=True):
        measures[task.piece.table_key].append(measure)
    bounds = {key: _boundaries(found, settings.part_bytes) for key, found in measures.items()}
    sorts = [
        _SortTask(piece, bounds[key], scratch, f"{RUNS}/{key.replace(':', '-')}-{number:05d}.arrow", settings)
        for key in keys
        if bounds[key]
        for number, piece in enumerate(pieces[key])
    ]
    runs: dict[str, list[tuple[str, list[list[int]]]]] = {}
    for sort, numbers in zip(sorts, runner.run("sort", _sort, sorts), strict=True):
        runs.setdefault(sort.piece.table_key, []).append((sort.path, numbers))
    return {
        key: _merged(scratch, runs[key], len(bounds[key]) + 1)
        if bounds[key]
        else _sorted(pieces[key], settings.batch_bytes)
        for key in keys
    }


def _sorted(pieces: Sequence[Piece], batch_bytes: int) -> list[PartSource]:
    return [Sorted(tuple(pieces), batch_bytes)] if pieces else []


def _merged(scratch: Target, runs: Sequence[tuple[str, list[list[int]]]], parts: int) -> list[PartSource]:
    """The batches of each run that a part merges; parts without rows are dropped."""
    shares = [
        tuple((path, tuple(numbers[part])) for path, numbers in runs if numbers[part]) for part in range(parts)
    ]
    return [Merged(scratch, share) for share in shares if share]


@dataclass(frozen=True, slots=True)
class _MeasureTask:
    """Measures one piece. Ids whose hash is at most ``sample_limit`` are in the sample."""

    piece: Piece
    sample_limit: int
    batch_bytes: int


@dataclass(frozen=True, slots=True)
class _Measure:
    """How many bytes the values of a piece take, and a sample of its ids."""

    bytes: int
    sample: list[str]


def _sample_limit(rows: int) -> int:
    """The largest hash of a sampled id, so that about 100,000 ids of a table are sampled."""
    return 2**64 - 1 if rows <= _SAMPLED_IDS else 2**64 // rows * _SAMPLED_IDS


def _measure(task: _MeasureTask) -> TaskResult[_Measure]:
    """Read a piece once. The sample depends on the ids alone."""
    size, sample = 0, []
    rows = _batch_rows(task.piece.snapshot.entity(task.piece.table_key), task.batch_bytes)
    for batch in task.piece.batches(_columns(task.piece), batch_rows=rows):
        size += int(row_bytes(batch).sum())
        ids = batch.column("id")
        sample += ids.filter(pa.array(hashed(ids) <= np.uint64(task.sample_limit))).to_pylist()
    return TaskResult(_Measure(size, sample), task.piece.rows, size)


def _boundaries(measures: Sequence[_Measure], part_bytes: int) -> list[str]:
    """The first ids of all parts but the first, so that parts have about the same size."""
    parts = math.ceil(sum(measure.bytes for measure in measures) / part_bytes)
    ids = sorted(row_id for measure in measures for row_id in measure.sample)
    if parts <= 1 or not ids:
        return []
    return sorted({ids[len(ids) * part // parts] for part in range(1, parts)})


@dataclass(frozen=True, slots=True)
class _SortTask:
    """Writes one piece as a run."""

    piece: Piece
    boundaries: list[str]
    scratch: Target
    path: str
    settings: BulkSettings


def _sort(task: _SortTask) -> TaskResult[list[list[int]]]:
    """Write a piece as a run: sorted stretches, each cut where parts begin; the numbers of its batches by part."""
    numbers: list[list[int]] = [[] for _ in range(len(task.boundaries) + 1)]
    settings = task.settings

    def fill(sink: Any) -> None:
        writer: pa.RecordBatchFileWriter | None = None
        count = 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        batches = whole_rows(task.piece, settings.batch_bytes)
        for stretch in grouped(batches, settings.rows_per_task, settings.part_bytes):
            rows = _by_id(stretch.to_batches()).combine_chunks()
            if writer is None:
                writer = pa.ipc.new_file(sink, rows.schema, options=options)
            cuts = [0, *(_position(rows["id"], first) for first in task.boundaries), rows.num_rows]
            for part, (start, stop) in enumerate(pairwise(cuts)):
                for batch in rows.slice(start, stop - start).to_batches():
                    writer.write_batch(batch)
                    numbers[part].append(count)
                    count += 1
        if writer is not None:
            writer.close()

    size = task.scratch.write_file(task.path, fill)
    return TaskResult(numbers, task.piece.rows, size)


def _position(ids: pa.ChunkedArray, first: str) -> int:
    """The position among sorted ids at which a part begins."""
    return bisect_left(range(len(ids)), first, key=lambda index: ids[index].as_py())


def _by_id(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    return rows.take(pc.sort_indices(rows["id"]))


def whole_rows(piece: Piece, batch_bytes: int = BulkSettings().batch_bytes) -> Iterator[pa.RecordBatch]:
    """All columns of a piece, with the bytes of blobs, in batches of about so many bytes."""
    entity = piece.snapshot.entity(piece.table_key)
    blobs = [prop.name for prop in entity.properties.values() if prop.type.is_blob]
    limit = _batch_rows(entity, batch_bytes)
    plain = pa.schema([])
    for share in [replace(piece, fragments=(number,)) for number in piece.fragments] if blobs else [piece]:
        if blobs:
            largest = max((int(row_bytes(sizes).max()) for sizes in share.batches(blobs)), default=0)
            limit = max(1, min(_batch_rows(entity, batch_bytes), batch_bytes // max(1, largest)))
        for batch in share.batches(_columns(piece), whole_blobs=True, batch_rows=limit):
            if not len(plain):
                plain = pa.schema([field.remove_metadata() for field in batch.schema])
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=plain)


def _columns(piece: Piece) -> tuple[str, ...]:
    return piece.snapshot.entity(piece.table_key).columns


def _batch_rows(entity: EntityType, batch_bytes: int) -> int:
    return max(1, min(_MAX_BATCH_ROWS, batch_bytes // _width(entity)))


def _width(entity: EntityType) -> int:
    """About how many bytes a row takes, by the types of its columns."""
    return 32 * (len(entity.columns) - len(entity.properties)) + sum(
        _cell_width(prop.type) for prop in entity.properties.values()
    )


def _cell_width(value_type: ValueType) -> int:
    if value_type.dimension is not None:
        return 4 * value_type.dimension
    width = _WIDTHS.get(value_type.scalar, 8)
    return 8 * width if value_type.is_list else width
