"""The parts of an export: what each task reads, in which order, and writes as one file.

Unordered, a part is some fragments of a table as they are. Ordered by id, where parts begin depends on nothing but
the rows, so that equal graphs give equal files: large tables are sorted piece by piece into runs, and each part
takes its range of ids from every run.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.export.targets import RUNS, Target
from omnigraph.bulk.pieces import ROWS_PER_TASK, Piece, pieces_of
from omnigraph.bulk.ranges import open_file
from omnigraph.bulk.runner import Done, Runner
from omnigraph.formats.encoding import grouped, json_lines, row_bytes, write_parquet
from omnigraph.formats.format import Format
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.ids import hashed

PART_BYTES: Final = 128 << 20
_BATCH_BYTES: Final = 16 << 20
_MOST_BATCH_ROWS: Final = 8_192
_SAMPLED: Final = 100_000
_EMITTED: Final = 65_536
_WIDTHS: Final = {Scalar.STRING: 32, Scalar.BOOL: 1, Scalar.I32: 4, Scalar.U32: 4, Scalar.F32: 4, Scalar.DATE: 4}

T = TypeVar("T")
"""Does the work of a stage for each of its tasks, here or on Spark; the outcomes in the order of the tasks."""


class Source(Protocol):
    """Where the rows of a part come from."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows in the order in which they are written; blobs whole."""


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows as they are stored."""

    piece: Piece

    def batches(self) -> Iterator[pa.RecordBatch]:
        return whole_rows(self.piece)


@dataclass(frozen=True, slots=True)
class Sorted:
    """A table that is small enough to be sorted at once."""

    pieces: tuple[Piece, ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows = [batch for piece in self.pieces for batch in whole_rows(piece)]
        return iter(_by_id(rows).to_batches(max_chunksize=_EMITTED))


@dataclass(frozen=True, slots=True)
class Merged:
    """A range of ids, from all runs: each is the path of a run and the numbers of its batches."""

    scratch: Target
    runs: tuple[tuple[str, tuple[int, ...]], ...]

    def batches(self) -> Iterator[pa.RecordBatch]:
        rows: list[pa.RecordBatch] = []
        for path, numbers in self.runs:
            with open_file(self.scratch.name(path), self.scratch.options) as file, pa.ipc.open_file(file) as run:
                rows += [run.get_batch(number) for number in numbers]
        return iter(_by_id(rows).to_batches(max_chunksize=_EMITTED))


@dataclass(frozen=True, slots=True)
class PartTask:
    """One file to be written."""

    entity: EntityType
    source: Source
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


def write_part(task: PartTask) -> Done:
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
    return Done(Part(task.entity.table_key, task.path, rows, size), rows, size)


def stored_parts(graph: Snapshot, table_key: str) -> list[Source]:
    """The parts of a table in the order in which it is stored."""
    rows = max(1, min(ROWS_PER_TASK, PART_BYTES // _width(graph.entity(table_key))))
    return [Scan(piece) for piece in pieces_of(graph, table_key, rows)]


def ordered_parts(
    graph: Snapshot, keys: Sequence[str], runner: Runner, scratch: Target
) -> dict[str, list[Source]]:
    """The parts of tables in the order of their ids. Runs of what cannot be sorted at once go to ``scratch``."""
    pieces = {key: [part.piece for part in stored_parts(graph, key) if isinstance(part, Scan)] for key in keys}
    tasks = [_Measuring(piece, _share(graph.rows(key))) for key in keys for piece in pieces[key]]
    measured: dict[str, list[_Measured]] = {key: [] for key in keys}
    for task, outcome in zip(tasks, runner.run("measure", _measure, tasks), strict=True):
        measured[task.piece.table_key].append(outcome)
    bounds = {key: _boundaries(found) for key, found in measured.items()}
    sorting = [
        _Sorting(piece, bounds[key], scratch, f"{RUNS}/{key.replace(':', '-')}-{number:05d}.arrow")
        for key in keys
        if bounds[key]
        for number, piece in enumerate(pieces[key])
    ]
    written: dict[str, list[tuple[str, list[list[int]]]]] = {}
    for sort, numbers in zip(sorting, runner.run("sort", _sort, sorting), strict=True):
        written.setdefault(sort.piece.table_key, []).append((sort.path, numbers))
    return {
        key: _merged(scratch, written[key], len(bounds[key]) + 1) if bounds[key] else _sorted(pieces[key])
        for key in keys
    }


def _sorted(pieces: Sequence[Piece]) -> list[Source]:
    return [Sorted(tuple(pieces))] if pieces else []


def _merged(scratch: Target, runs: Sequence[tuple[str, list[list[int]]]], parts: int) -> list[Source]:
    """What each part reads of each run; a part without rows is none."""
    shares = [
        tuple((path, tuple(numbers[part])) for path, numbers in runs if numbers[part]) for part in range(parts)
    ]
    return [Merged(scratch, share) for share in shares if share]


@dataclass(frozen=True, slots=True)
class _Measuring:
    piece: Piece
    share: int


@dataclass(frozen=True, slots=True)
class _Measured:
    """How many bytes the values of a piece take, and those of its ids that are in the sample."""

    bytes: int
    sample: list[str]


def _share(rows: int) -> int:
    """Below which hash an id is in the sample."""
    return 2**64 - 1 if rows <= _SAMPLED else 2**64 // rows * _SAMPLED


def _measure(task: _Measuring) -> Done:
    """A pass over a piece. Which ids are in the sample depends on the ids alone."""
    size, sample = 0, []
    rows = _batch_rows(task.piece.snapshot.entity(task.piece.table_key))
    for batch in task.piece.batches(_columns(task.piece), batch_rows=rows):
        size += int(row_bytes(batch).sum())
        ids = batch.column("id")
        sample += ids.filter(pa.array(hashed(ids) <= np.uint64(task.share))).to_pylist()
    return Done(_Measured(size, sample), task.piece.rows, size)


def _boundaries(measured: Sequence[_Measured]) -> list[str]:
    """The first ids of all parts but the first, so that parts are about as large as they should be."""
    parts = math.ceil(sum(found.bytes for found in measured) / PART_BYTES)
    ids = sorted(text for found in measured for text in found.sample)
    if parts <= 1 or not ids:
        return []
    return sorted({ids[len(ids) * part // parts] for part in range(1, parts)})


@dataclass(frozen=True, slots=True)
class _Sorting:
    piece: Piece
    boundaries: list[str]
    scratch: Target
    path: str


def _sort(task: _Sorting) -> Done:
    """Write a piece as a run: sorted stretches, each cut where parts begin. The outcome says which batches of the
    run belong to each part."""
    numbers: list[list[int]] = [[] for _ in range(len(task.boundaries) + 1)]

    def fill(sink: Any) -> None:
        writer: pa.RecordBatchFileWriter | None = None
        count = 0
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        for stretch in grouped(whole_rows(task.piece), ROWS_PER_TASK, PART_BYTES):
            rows = _by_id(stretch.to_batches()).combine_chunks()
            if writer is None:
                writer = pa.ipc.new_file(sink, rows.schema, options=options)
            cuts = [0, *(_place(rows["id"], first) for first in task.boundaries), rows.num_rows]
            for part, (start, stop) in enumerate(pairwise(cuts)):
                for batch in rows.slice(start, stop - start).to_batches():
                    writer.write_batch(batch)
                    numbers[part].append(count)
                    count += 1
        if writer is not None:
            writer.close()

    size = task.scratch.write_file(task.path, fill)
    return Done(numbers, task.piece.rows, size)


def _place(ids: pa.ChunkedArray, first: str) -> int:
    """Where among sorted ids a part begins."""
    return bisect_left(range(len(ids)), first, key=lambda index: ids[index].as_py())


def _by_id(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    rows = pa.Table.from_batches(batches)
    return rows.take(pc.sort_indices(rows["id"]))


def whole_rows(piece: Piece) -> Iterator[pa.RecordBatch]:
    """All columns of a piece, blobs included, in batches that are never large, however large the values are."""
    entity = piece.snapshot.entity(piece.table_key)
    blobs = [prop.name for prop in entity.properties.values() if prop.type.is_blob]
    most = _batch_rows(entity)
    plain = pa.schema([])
    for share in [replace(piece, fragments=(number,)) for number in piece.fragments] if blobs else [piece]:
        if blobs:
            largest = max((int(row_bytes(sizes).max()) for sizes in share.batches(blobs)), default=0)
            most = max(1, min(_batch_rows(entity), _BATCH_BYTES // max(1, largest)))
        for batch in share.batches(_columns(piece), whole_blobs=True, batch_rows=most):
            if not len(plain):
                plain = pa.schema([field.remove_metadata() for field in batch.schema])
            if batch.num_rows:
                yield pa.RecordBatch.from_arrays(batch.columns, schema=plain)


def _columns(piece: Piece) -> tuple[str, ...]:
    return piece.snapshot.entity(piece.table_key).columns


def _batch_rows(entity: EntityType) -> int:
    return max(1, min(_MOST_BATCH_ROWS, _BATCH_BYTES // _width(entity)))


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
