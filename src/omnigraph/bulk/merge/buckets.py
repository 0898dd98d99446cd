"""Changed rows in buckets, by a hash of their ids: all versions of an entity are in one bucket.

Rows are written down by their row ids, 8 bytes each, in the job's folder: first those of each version of a table,
then, by the tasks of the first step, the same sorted by bucket.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from ulid import ULID

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.ranges import read_part
from omnigraph.bulk.runner import TaskResult
from omnigraph.history.tables import ROW_ID, Stretch, Touched, TouchedRows, rows_by_row_ids
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.objects import open_objects
from omnigraph.storage.tables import TableRef
from omnigraph.write.delta import one_chunk

_HASHED: Final = 65_536
"""How many ids are hashed at a time."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_ROW_ID_BYTES: Final = 8
_TEXT_BYTES: Final = 32
_LIST_BYTES: Final = 128
_BLOB_BYTES: Final = 1 << 16
"""About how many bytes a text, a list and a blob take, where nothing is known of them."""


@dataclass(frozen=True, slots=True)
class RowList:
    """Rows that were written along a stretch, of the version at its start or at its end."""

    stretch: Stretch
    is_after: bool
    row_ids: pa.Array

    @property
    def ref(self) -> TableRef:
        return self.stretch.end if self.is_after else self.stretch.start


@dataclass(frozen=True, slots=True)
class SplitTask:
    """Sorts some rows into buckets. Their row ids are an object of the job."""

    graph: Address
    workspace: Address
    stretch: Stretch
    is_after: bool
    ref: TableRef
    key: str
    buckets: int


@dataclass(frozen=True, slots=True)
class SplitRows:
    """Row ids sorted by bucket, in an object of the job; ``places`` says where in it each bucket begins."""

    stretch: Stretch
    is_after: bool
    key: str
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RowRange:
    """The row ids of one bucket in an object of the job."""

    stretch: Stretch
    is_after: bool
    key: str
    start: int
    stop: int


def row_bytes(entity: EntityType) -> int:
    """About how many bytes a row of a type takes in memory; vectors are most of it where there are any."""
    total = _TEXT_BYTES * (len(entity.columns) - len(entity.properties))
    for prop in entity.properties.values():
        if prop.type.dimension is not None:
            total += 4 * prop.type.dimension
        elif prop.type.is_blob:
            total += _BLOB_BYTES
        else:
            total += _LIST_BYTES if prop.type.is_list else _TEXT_BYTES
    return total


def row_lists(touched: Touched, stretches: Sequence[Stretch], rows: int) -> Iterator[RowList]:
    """The rows that were written along stretches, in lists of at most so many."""
    for stretch in dict.fromkeys(stretches):
        found = touched(stretch)
        for row_ids, is_after in ((found.before, False), (found.after, True)):
            for start in range(0, len(row_ids), rows):
                yield RowList(stretch, is_after, row_ids.slice(start, rows))


def split_task(graph: Address, workspace: Address, job: str, listed: RowList, buckets: int) -> SplitTask:
    """A task for some rows, whose row ids are written for it."""
    key = f"{layout.job_folder(job)}/rows-{ULID()}"
    open_objects(workspace).hint(key, listed.row_ids.to_numpy(zero_copy_only=False).tobytes())
    return SplitTask(graph, workspace, listed.stretch, listed.is_after, listed.ref, key, buckets)


def split(task: SplitTask) -> TaskResult[SplitRows]:
    """Read the ids of some rows, and write their row ids again, sorted by bucket."""
    objects = open_objects(task.workspace)
    found = objects.get(task.key)
    assert found is not None, task.key  # noqa: S101  written by the driver of this job
    row_ids = pa.array(np.frombuffer(found.content, np.uint64))
    rows = rows_by_row_ids(open_tables(task.graph), task.ref, row_ids, ["id"], with_row_ids=True)
    numbers = bucket_numbers(one_chunk(rows["id"]), task.buckets)
    order = np.argsort(numbers, kind="stable")
    key = f"{task.key}-split-{ULID()}"
    objects.hint(key, rows[ROW_ID].to_numpy()[order].astype(np.uint64).tobytes())
    places = np.searchsorted(numbers[order], np.arange(task.buckets + 1))
    return TaskResult(SplitRows(task.stretch, task.is_after, key, tuple(places.tolist())), rows=len(order))


def ranges_of(parts: Sequence[SplitRows], bucket: int) -> tuple[RowRange, ...]:
    """Where the row ids of one bucket are."""
    return tuple(
        RowRange(part.stretch, part.is_after, part.key, part.places[bucket], part.places[bucket + 1])
        for part in parts
        if part.places[bucket] < part.places[bucket + 1]
    )


def touched_in(address: Address, ranges: Sequence[RowRange]) -> Touched:
    """Finds the rows of one bucket that were written along a stretch."""
    found: dict[tuple[Stretch, bool], list[pa.Array]] = {}
    for part in ranges:
        content = read_part(address, part.key, part.start * _ROW_ID_BYTES, part.stop * _ROW_ID_BYTES)
        row_ids = pa.array(np.frombuffer(content, np.uint64))
        found.setdefault((part.stretch, part.is_after), []).append(row_ids)

    def find(stretch: Stretch) -> TouchedRows:
        none = pa.array([], pa.uint64())
        before, after = (pa.concat_arrays([none, *found.get((stretch, late), ())]) for late in (False, True))
        return TouchedRows(before, after)

    return find


def bucket_numbers(ids: pa.Array, buckets: int) -> npt.NDArray[np.int64]:
    """The bucket of each id. It depends on nothing but the id, so that all processes agree."""
    parts = [_hashes(ids.slice(start, _HASHED)) for start in range(0, len(ids), _HASHED)]
    hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
    return (hashes % np.uint64(buckets)).astype(np.int64)


def _hashes(ids: pa.Array) -> npt.NDArray[np.uint64]:
    """A polynomial over the bytes of each text, with its bits mixed at the end."""
    texts = ids.cast(pa.large_binary())
    _, offsets, content = texts.buffers()
    bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    ends, lengths = bounds[1:] - bounds[0], np.diff(bounds)
    data = np.frombuffer(content or b"", np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64)
    places = np.arange(len(data)) - np.repeat(ends - lengths, lengths)
    powers = np.multiply.accumulate(np.full(int(lengths.max(initial=0)) + 1, _FACTOR))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((data + np.uint64(1)) * powers[places])])
    values = sums[ends] - sums[ends - lengths]
    mixed: npt.NDArray[np.uint64] = (values ^ (values >> np.uint64(29))) * _FACTOR
    return mixed ^ (mixed >> np.uint64(32))
