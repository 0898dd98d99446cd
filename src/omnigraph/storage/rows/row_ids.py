"""The row ids of fragments, which a row keeps when it is written again, and the versions that changed the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from lance.fragment import FragmentMetadata

from omnigraph.records import dataclass
from omnigraph.storage.files.wire import read_fields
from omnigraph.storage.handles import TableRef
from omnigraph.storage.rows.pieces import Piece
from omnigraph.storage.stage.row_versions import changed_versions
from omnigraph.storage.unavailable import translated
from omnigraph.storage.versions import TableVersions

RowIds = npt.NDArray[np.int64]
_RANGE, _RANGE_WITH_HOLES, _RANGE_WITH_BITMAP, _SORTED, _ARRAY = range(1, 6)
"""The kinds of sets of numbers, as Lance numbers them."""
_KINDS: Final = {1: "<u2", 2: "<u4", 3: "<u8"}
"""How the numbers of an array are stored: as differences to a base in few bytes, or as they are."""


@dataclass(frozen=True, slots=True)
class Identities:
    """Of each physical row of a piece: its row id, and the version that last changed it, or a later one."""

    ids: RowIds
    changed: npt.NDArray[np.uint64]


def identities(tables: TableVersions, ref: TableRef, pieces: Sequence[Piece]) -> list[Identities] | None:
    """The identities of the rows of some pieces of a version; None if they are stored in an unknown way."""
    handle = tables.open(ref)
    with translated(tables.shown(ref.location)):
        known = {fragment.fragment_id: fragment for fragment in handle.get_fragments()}
        described = [(known[piece.fragment].metadata.to_json(), piece.rows) for piece in pieces]
    try:
        return [Identities(_row_ids(each, rows), changed_versions(each, rows)) for each, rows in described]
    except (KeyError, TypeError, ValueError):
        return None


def row_ids(fragment: FragmentMetadata) -> RowIds | None:
    """The row ids of all physical rows of a fragment; None if they are stored in an unknown way."""
    try:
        meta: Any = fragment.row_id_meta
        stored = None if meta is None else meta.asdict()
        return _row_ids({"row_id_meta": stored}, fragment.physical_rows)
    except (KeyError, TypeError, ValueError):
        return None


def _row_ids(fragment: dict[str, Any], rows: int) -> RowIds:
    parts = [np.zeros(0, dtype=np.int64)]
    for _, segment in read_fields(bytes(fragment["row_id_meta"]["Inline"])):
        ((kind, stored),) = read_fields(_message(segment))
        parts.append(_numbers(kind, _message(stored)))
    found = np.concatenate(parts)
    if len(found) != rows:
        raise ValueError(f"{len(found)} row ids are listed for {rows} rows")
    return found


def _numbers(kind: int, stored: bytes) -> RowIds:
    if kind in (_SORTED, _ARRAY):
        return _array(stored)
    parts = dict(read_fields(stored))
    whole = np.arange(_number(parts.get(1, 0)), _number(parts.get(2, 0)), dtype=np.int64)
    if kind == _RANGE:
        return whole
    if kind == _RANGE_WITH_HOLES:
        return np.setdiff1d(whole, _array(_message(parts[3])), assume_unique=True)
    if kind != _RANGE_WITH_BITMAP:
        raise ValueError(f"field {kind} is not a set of numbers")
    bits = np.frombuffer(_message(parts[3]), dtype=np.uint8)
    return whole[np.unpackbits(bits, count=len(whole), bitorder="little").astype(np.bool_)]


def _array(stored: bytes) -> RowIds:
    ((width, values),) = read_fields(stored)
    parts = dict(read_fields(_message(values)))
    found = np.frombuffer(_message(parts[2]), dtype=_KINDS[width]).astype(np.int64)
    return found + np.int64(_number(parts.get(1, 0)))


def _number(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise TypeError("a message is where a number should be")
    return value


def _message(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number is where a message should be")
    return value
