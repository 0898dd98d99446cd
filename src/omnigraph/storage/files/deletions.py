"""Deletion files: which rows of a fragment are gone. Reading one back shows whether all of it was written."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.errors import IncompleteFile

_NO_RUNS: Final = 12346
_RUNS: Final = 12347
_FEW_CONTAINERS: Final = 4
_LARGEST_ARRAY: Final = 4096
_BITMAP_BYTES: Final = 8192


def require_deletions(path: Path, rows: int) -> None:
    """Raise IncompleteFile unless the file names as many rows as were deleted."""
    try:
        found = len(_bitmap_rows(path.read_bytes())) if path.suffix == ".bin" else _array_rows(path)
    except (pa.ArrowInvalid, struct.error, OSError, ValueError):
        found = -1
    if found != rows:
        raise IncompleteFile(str(path), None, path.stat().st_size if path.exists() else 0)


def deleted_rows_of(content: bytes, *, is_bitmap: bool) -> npt.NDArray[np.int32]:
    """The rows that a deletion file names, ascending: an Arrow file of few, or a Roaring bitmap of many."""
    if is_bitmap:
        return _bitmap_rows(content)
    with pa.ipc.open_file(pa.BufferReader(content)) as file:
        found = file.read_all().column(0)
    return np.sort(found.to_numpy().astype(np.int32))


def _array_rows(path: Path) -> int:
    with pa.ipc.open_file(path) as file:
        return int(file.read_all().num_rows)


def _bitmap_rows(content: bytes) -> npt.NDArray[np.int32]:
    """The numbers in a serialised Roaring bitmap, which must be as long as its header says."""
    (cookie,) = struct.unpack_from("<I", content)
    position = 4
    if cookie & 0xFFFF == _RUNS:
        count = (cookie >> 16) + 1
        flags = content[position : position + (count + 7) // 8]
        position += len(flags)
        runs = [bool(flags[number // 8] >> number % 8 & 1) for number in range(count)]
        has_offsets = count >= _FEW_CONTAINERS
    elif cookie == _NO_RUNS:
        (count,) = struct.unpack_from("<I", content, position)
        position += 4
        runs = [False] * count
        has_offsets = True
    else:
        raise ValueError("not a bitmap")
    heads = list(struct.iter_unpack("<HH", content[position : position + 4 * count]))
    if len(heads) != count:
        raise ValueError("its header ends early")
    position += 4 * count + (4 * count if has_offsets else 0)
    parts = [np.zeros(0, dtype=np.int32)]
    for (high, size), is_runs in zip(heads, runs, strict=True):
        if is_runs:
            (pieces,) = struct.unpack_from("<H", content, position)
            low, position = _runs(content, position + 2, pieces), position + 2 + 4 * pieces
        elif size + 1 <= _LARGEST_ARRAY:
            low = np.frombuffer(content, dtype="<u2", count=size + 1, offset=position)
            position += 2 * (size + 1)
        else:
            bits = np.frombuffer(content, dtype=np.uint8, count=_BITMAP_BYTES, offset=position)
            low, position = np.flatnonzero(np.unpackbits(bits, bitorder="little")), position + _BITMAP_BYTES
        if len(low) != size + 1:
            raise ValueError("a part of it has another number of rows than its header says")
        parts.append(low.astype(np.int32) | np.int32(high << 16))
    if position != len(content):
        raise ValueError("its length is not what its header says")
    return np.concatenate(parts)


def _runs(content: bytes, position: int, pieces: int) -> npt.NDArray[np.int64]:
    """The numbers in runs, each of which is its first number and how many more follow."""
    pairs = np.frombuffer(content, dtype="<u2", count=2 * pieces, offset=position).astype(np.int64)
    firsts, counts = pairs[::2], pairs[1::2] + 1
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if pieces else 0) + np.repeat(firsts - ends + counts, counts)
