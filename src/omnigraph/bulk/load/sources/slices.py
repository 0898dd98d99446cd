"""The slices of the files of a load: what one task reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.opening import batch_count, row_group_sizes
from omnigraph.formats.format import Format
from omnigraph.settings import BulkSettings

_LARGEST_SLICE: Final = 256 << 20
_MAX_SLICES: Final = 10_000
_FILES_PER_TABLE: Final = 1_000
_MAX_ROWS_PER_FILE: Final = 1_000_000
_BYTES_PER_RECORD: Final = 100
_ROUNDS: Final = 4
_ROUNDS_OF_ONE: Final = 2


@dataclass(frozen=True, slots=True)
class Slice:
    """The share of a file that one task reads: bytes of text, row groups of Parquet, or batches of Arrow.

    A compressed file is one slice, of which ``read_bytes`` are unpacked at a time.
    """

    number: int
    file: SourceFile
    start: int
    stop: int
    read_bytes: int = BulkSettings().slice_bytes


def rows_per_file(files: Sequence[SourceFile], settings: BulkSettings) -> int:
    """How many rows a staged file gets: few, as a later change of one row costs as much as its file has; more
    where a table would otherwise get thousands of files, all of which every commit lists."""
    records = sum(file.size for file in files) // _BYTES_PER_RECORD
    return max(settings.rows_per_file, min(_MAX_ROWS_PER_FILE, records // _FILES_PER_TABLE))


def slice_size(files: Sequence[SourceFile], cores: int, settings: BulkSettings) -> int:
    """About how many bytes a slice has: slices come in multiples of the cores, and are larger where a driver would
    have to schedule too many. There are more slices than cores, as more tasks than cores may run, and of several
    files still more, so that no core is idle at the end.
    """
    total = sum(file.size for file in files)
    size = min(_LARGEST_SLICE, max(settings.slice_bytes, total // _MAX_SLICES))
    rounds = max(_ROUNDS_OF_ONE if len(files) == 1 else _ROUNDS, math.ceil(total / size / cores))
    return max(settings.smallest_slice, math.ceil(total / (rounds * cores)))


def slices_of(
    files: Sequence[SourceFile],
    cores: int,
    settings: BulkSettings,
    cuts: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> list[Slice]:
    """The files in slices. ``cuts`` are the positions at which CSV files are cut; others stay whole."""
    target = slice_size(files, cores, settings)
    slices: list[Slice] = []
    for file in files:
        slices += [
            Slice(number, file, start, stop, settings.slice_bytes)
            for number, (start, stop) in enumerate(_ranges(file, target, cuts.get(file.name, ())), len(slices))
        ]
    return slices


def even_ranges(size: int, target: int) -> list[tuple[int, int]]:
    """A number of bytes in even ranges of about as many as wanted."""
    parts = max(1, round(size / target))
    return list(pairwise(size * part // parts for part in range(parts + 1)))


def _ranges(file: SourceFile, target: int, cuts: Sequence[int]) -> list[tuple[int, int]]:
    if file.format is Format.PARQUET:
        return _grouped(row_group_sizes(file), target)
    if file.format is Format.ARROW:
        batches = batch_count(file)
        return _grouped([file.size // batches] * batches, target) if batches else [(0, 0)]
    if file.compression is not None:
        return [(0, file.size)]
    if file.format.is_delimited:
        inner = sorted({cut for cut in cuts if 0 < cut < file.size})
        return list(pairwise([0, *inner, file.size]))
    return even_ranges(file.size, target)


def _grouped(sizes: Sequence[int], target: int) -> list[tuple[int, int]]:
    """Ranges of parts of a file whose sizes together reach a target."""
    ranges: list[tuple[int, int]] = []
    start = size = 0
    for index, own in enumerate(sizes):
        size += own
        if size >= target or index == len(sizes) - 1:
            ranges.append((start, index + 1))
            start, size = index + 1, 0
    return ranges
