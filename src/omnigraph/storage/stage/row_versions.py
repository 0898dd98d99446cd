"""The versions in which rows were created and last changed, which every version of a table lists for all its rows.

Rows that were written one by one have a version each: about twenty bytes per row in every later version of the
table. When many such rows are put into one file, their versions are made coarser: exact for the last rows, and
then one version for twice as many rows each time, going back. Older versions of the table keep what they said.

What stays certain, for a row and any older version of its table:

- If the row was changed since then, its changed version is later. So a list of rows that may have changed misses
  none, and has about twice as many as have changed.
- If it existed then and was changed since, its created version is not later, and its changed version is.
- Whether it existed then is told by its row id: ids are given out in order, and a version knows the next one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.files.wire import encode_fields, read_fields

EXACT_ROWS: Final = 63
"""How many versions a fragment lists one by one."""

_LAST: Final = 8
"""Of a fragment with coarser versions, one in so many of the rows that a fragment with exact ones may have keep
theirs: the last ones."""

_CREATED: Final = "created_at_version_meta"
_CHANGED: Final = "last_updated_at_version_meta"
_NEXT_ROW_ID: Final = 14
"""The number of the field of a stored version that holds the row id which the next new row gets."""

_RANGE, _RANGE_WITH_HOLES, _RANGE_WITH_BITMAP, *_ARRAYS = range(1, 6)
"""The kinds of sets of numbers, as Lance numbers them."""

_BYTES_EACH: Final = {1: 2, 2: 4, 3: 8}
"""How many bytes a number takes, by the kind of an array."""

Versions = npt.NDArray[np.uint64]


def next_row_id(handle: LanceDataset) -> int:
    """The row id that the next new row of a table gets: the rows of this version have lower ones, rows that were
    inserted since then have not."""
    stored = dict(read_fields(handle._ds.serialized_manifest()))
    return int(stored.get(_NEXT_ROW_ID, 0))


def changed_versions(fragment: dict[str, Any], rows: int) -> Versions:
    """The version that last changed each row of a fragment, or a later one, from Lance's description of it;
    KeyError, TypeError or ValueError if that is stored in an unknown way."""
    return _decoded(fragment[_CHANGED], rows)


def with_coarser_versions(fragment: FragmentMetadata, exact_rows: int) -> FragmentMetadata:
    """A fragment that lists versions for stretches of its rows; the same one if it has only so many rows, or
    so few versions for all of them."""
    if fragment.physical_rows <= exact_rows:
        return fragment
    described: dict[str, Any] = fragment.to_json()
    try:
        created, changed = (_decoded(described[name], fragment.physical_rows) for name in (_CREATED, _CHANGED))
    except (KeyError, TypeError, ValueError):  # stored in a way that Lance has not used so far
        return fragment
    if np.count_nonzero((np.diff(created) != 0) | (np.diff(changed) != 0)) < exact_rows:
        return fragment
    for part in _stretches(fragment.physical_rows, max(1, exact_rows // _LAST)):
        never_changed = np.array_equal(created[part], changed[part])
        changed[part] = changed[part].max()
        created[part] = changed[part] if never_changed else created[part].min()
    for name, versions in ((_CREATED, created), (_CHANGED, changed)):
        described[name] = {"inline": list(_encoded(versions))}
    return FragmentMetadata.from_json(json.dumps(described))


def _stretches(rows: int, last: int) -> Iterator[slice]:
    """Cut rows, but for the last ones, into stretches that are as long as there are rows behind them."""
    end, behind = rows - last, last
    while end > 0:
        yield slice(max(0, end - behind), end)
        end, behind = end - behind, behind * 2


def _decoded(stored: dict[str, list[int]], rows: int) -> Versions:
    """The version of each row. Lance stores runs: a set of numbers, one for each row, and their version."""
    lengths: list[int] = []
    versions: list[int] = []
    for field, run in read_fields(bytes(stored["inline"])):
        parts = dict(read_fields(_bytes(run)))
        if field != 1 or parts.keys() != {1, 2}:
            raise ValueError(f"field {field} is not a run of versions")
        lengths.append(_length(_bytes(parts[1])))
        versions.append(_int(parts[2]))
    if sum(lengths) != rows:
        raise ValueError("the versions are not those of all rows")
    return np.repeat(np.array(versions, np.uint64), lengths)


def _length(numbers: bytes) -> int:
    """How many numbers a set has: a range, one with holes or with a bitmap, or an array."""
    ((kind, stored),) = read_fields(numbers)
    parts = dict(read_fields(_bytes(stored)))
    if kind in (_RANGE, _RANGE_WITH_HOLES):
        whole = _int(parts.get(2, 0)) - _int(parts.get(1, 0))
        return whole if kind == _RANGE else whole - _array_length(_bytes(parts[3]))
    if kind == _RANGE_WITH_BITMAP:
        return int.from_bytes(_bytes(parts[3])).bit_count()
    if kind in _ARRAYS:
        return _array_length(_bytes(stored))
    raise ValueError(f"field {kind} is not a set of numbers")


def _array_length(stored: bytes) -> int:
    ((width, values),) = read_fields(stored)
    return len(_bytes(dict(read_fields(_bytes(values)))[2])) // _BYTES_EACH[width]


def _bytes(value: int | bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number is where a message should be")
    return value


def _int(value: int | bytes) -> int:
    if not isinstance(value, int):
        raise TypeError("a message is where a number should be")
    return value


def _encoded(versions: Versions) -> bytes:
    starts = np.flatnonzero(np.r_[True, versions[1:] != versions[:-1]])
    lengths = np.diff(np.r_[starts, len(versions)])
    runs = zip(lengths.tolist(), versions[starts].tolist(), strict=True)
    return encode_fields(
        tuple(
            (1, encode_fields(((1, encode_fields(((1, encode_fields(((2, length),))),))), (2, version))))
            for length, version in runs
        )
    )
