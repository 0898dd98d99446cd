"""Numbers that say which values of two sets of columns are equal, as the language compares them: a null equals
nothing, numbers of different types are equal if they are the same number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Column, Ints, Positions, filled

_NONE: Final = np.int32(-1)
_SPARSE: Final = 4
"""Combinations of values are numbered anew if there are more than so many times as many as rows."""


def matching_codes(pairs: Sequence[tuple[Column, Column]]) -> tuple[Positions, Positions, int]:
    """A number for each row of the left columns and of the right ones, and how many numbers there are. Rows have
    the same number if all their values are equal pair by pair, and -1 if a value is missing or equals none."""
    first, *others = (_codes_of_pair(left, right) for left, right in pairs)
    left, right, width = first
    for more_left, more_right, more in others:
        left, right = _combined(left, more_left, more), _combined(right, more_right, more)
        width *= more
        if width > _SPARSE * (len(left) + len(right)):
            left, right, width = _renumbered(left, right)
    return left.astype(np.int32), right.astype(np.int32), width


def _codes_of_pair(left: Column, right: Column) -> tuple[Ints, Ints, int]:
    codes, others = left.codes, right.codes
    numbers = codes.codes.astype(np.int64)
    if codes is others and not pa.types.is_floating(left.arrow.type):
        return numbers, numbers, len(codes.dictionary)
    known, wanted = comparable(codes.dictionary, others.dictionary)
    places = filled(pc.index_in(wanted, value_set=known, skip_nulls=True), -1).astype(np.int64)
    if known.null_count:
        numbers = _translated(numbers, np.where(known.is_valid(), np.arange(len(known)), -1))
    return numbers, _translated(others.codes, places), len(known)


def _translated(codes: Array, places: Ints) -> Ints:
    """What the codes stand for; -1 stays."""
    return np.append(places, -1)[codes]


def _combined(codes: Ints, more: Ints, width: int) -> Ints:
    return np.where((codes < 0) | (more < 0), -1, codes * width + more)


def _renumbered(left: Ints, right: Ints) -> tuple[Ints, Ints, int]:
    """The same numbers without gaps; those that only the right side has become -1."""
    encoded = pc.dictionary_encode(to_arrow(left, left < 0))
    numbers = filled(encoded.indices, -1).astype(np.int64)
    places = filled(pc.index_in(to_arrow(right), value_set=encoded.dictionary), -1).astype(np.int64)
    return numbers, places, len(encoded.dictionary)


def comparable(left: pa.Array, right: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Two arrays in one type, such that exactly the equal values stay equal; null for a value that equals none."""
    if pa.types.is_large_string(left.type) or pa.types.is_large_string(right.type):
        return left.cast(pa.large_string()), right.cast(pa.large_string())
    if not (_is_number(left.type) and _is_number(right.type)):
        return left, right
    floats = pa.types.is_floating(left.type), pa.types.is_floating(right.type)
    if all(floats):
        return _as_floats(left), _as_floats(right)
    wide = pa.uint64() in (left.type, right.type)
    return _as_integers(left, wide=wide), _as_integers(right, wide=wide)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _as_floats(numbers: pa.Array) -> pa.Array:
    values = np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64)
    return to_arrow(values, np.isnan(values))


def _as_integers(numbers: pa.Array, *, wide: bool) -> pa.Array:
    """Numbers as 64-bit integers, unsigned if they are to be ``wide``; null for those that are none."""
    values = np.asarray(numbers.to_numpy(zero_copy_only=False))
    kind = np.dtype(np.uint64 if wide else np.int64)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        low, high = (0.0, 2.0**64) if wide else (-(2.0**63), 2.0**63)
        fits = (values >= low) & (values < high) & (np.floor(values) == values)
    elif wide and values.dtype.kind == "i":
        fits = values >= 0
    else:
        fits = np.ones(len(values), dtype=np.bool_)
    return to_arrow(np.where(fits, values, 0).astype(kind), ~fits)
