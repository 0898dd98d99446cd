"""Bit masks over the rows of staged files, small enough to travel with tasks."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.files.datafiles import StagedFile

Mask = npt.NDArray[np.bool_]


def packed_mask(mask: Mask) -> bytes:
    """A mask in the form in which it is sent."""
    return zlib.compress(np.packbits(mask).tobytes(), 1)


def unpacked_mask(packed: bytes, rows: int) -> Mask:
    """A mask that was sent."""
    return np.unpackbits(np.frombuffer(zlib.decompress(packed), np.uint8), count=rows).astype(bool)


def _union(left: bytes, right: bytes) -> bytes:
    both = (np.frombuffer(zlib.decompress(packed), np.uint8) for packed in (left, right))
    return zlib.compress(np.bitwise_or(*both).tobytes(), 1)


@dataclass(frozen=True, slots=True)
class ExcludedRows:
    """Staged rows that are not loaded: a packed mask for each file that has any."""

    masks: Mapping[str, bytes] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.masks)

    def mask(self, file: StagedFile) -> Mask | None:
        """Which rows of a file are excluded; None if none are."""
        packed = self.masks.get(file.name)
        return None if packed is None else unpacked_mask(packed, file.rows)

    def kept(self, file: StagedFile) -> npt.NDArray[np.int64]:
        """The positions of the rows of a file that are loaded."""
        mask = self.mask(file)
        return np.arange(file.rows) if mask is None else np.flatnonzero(~mask)

    def filter(self, rows: pa.Table, file: StagedFile) -> pa.Table:
        """The rows of a file that are loaded."""
        mask = self.mask(file)
        return rows if mask is None else rows.filter(pa.array(~mask))

    def merged(self, more: ExcludedRows) -> ExcludedRows:
        """The rows that either of the two excludes."""
        masks = dict(self.masks)
        for name, packed in more.masks.items():
            mine = masks.get(name)
            masks[name] = packed if mine is None else _union(mine, packed)
        return ExcludedRows(masks)


def excluded_records(
    files: Iterable[StagedFile], positions: Mapping[tuple[int, str], Sequence[int]]
) -> ExcludedRows:
    """Exclude staged rows by their positions among the records of their type, by slice and table."""
    masks: dict[str, bytes] = {}
    for file in files:
        in_file = np.array(positions.get((file.slice, file.table_key), ()), np.int64) - file.first
        own = in_file[(in_file >= 0) & (in_file < file.rows)]
        if len(own):
            mask = np.zeros(file.rows, bool)
            mask[own] = True
            masks[file.name] = packed_mask(mask)
    return ExcludedRows(masks)


def record_positions(staged: Sequence[int], skipped: Sequence[int]) -> list[int]:
    """Positions among the records of a slice and type, from positions among those that were staged.

    ``skipped`` are the positions of the records that were not staged.
    """
    before = np.array(skipped, np.int64) - np.arange(len(skipped))
    rows = np.array(staged, np.int64)
    positions: list[int] = (rows + np.searchsorted(before, rows, side="right")).tolist()
    return positions
