"""Deletion files: which rows of a fragment are gone. Reading one back shows whether all of it was written."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final

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
        found = _bitmap_rows(path.read_bytes()) if path.suffix == ".bin" else _array_rows(path)
    except (pa.ArrowInvalid, struct.error, OSError, ValueError):
        found = -1
    if found != rows:
        raise IncompleteFile(str(path), None, path.stat().st_size if path.exists() else 0)


def _array_rows(path: Path) -> int:
    with pa.ipc.open_file(path) as file:
        return int(file.read_all().num_rows)


def _bitmap_rows(content: bytes) -> int:
    """The cardinality of a serialised Roaring bitmap, which must be as long as its header says."""
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
    sizes = [entry[1] + 1 for entry in struct.iter_unpack("<HH", content[position : position + 4 * count])]
    if len(sizes) != count:
        raise ValueError("its header ends early")
    position += 4 * count + (4 * count if has_offsets else 0)
    for size, is_runs in zip(sizes, runs, strict=True):
        if is_runs:
            (pieces,) = struct.unpack_from("<H", content, position)
            position += 2 + 4 * pieces
        else:
            position += 2 * size if size <= _LARGEST_ARRAY else _BITMAP_BYTES
    if position != len(content):
        raise ValueError("its length is not what its header says")
    return sum(sizes)
