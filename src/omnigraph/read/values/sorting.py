"""Total orders: sort keys of any type, nulls lowest, and the first few without sorting everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.read.values.columns import Array, Bools, Column, Ints
from omnigraph.records import dataclass

_WORTH_SELECTING: Final = 4
_GROUP: Final = 64


@dataclass(frozen=True, slots=True)
class SortKey:
    """A key: how to get its values for some of the rows (None: all), and its direction."""

    values: Callable[[Ints | None], pa.Array]
    descending: bool = False


def first_rows(keys: Sequence[SortKey], ties: Sequence[SortKey], count: int, limit: int | None) -> Ints:
    """The numbers of the first rows in order. Without keys the rows stay as they are; the keys that break ties are
    computed only if there are ties."""
    if limit is not None and limit <= 0:
        return np.zeros(0, dtype=np.int64)
    if not keys:
        return np.arange(count if limit is None else min(count, limit))
    chosen: Ints | None = None
    if limit is not None and count > _WORTH_SELECTING * limit + 64:
        chosen = _candidates(keys[0], limit)
    levels = [level for key in keys for level in _levels(key.values(chosen), descending=key.descending)]
    order = _sorted(levels)
    if ties and _has_ties(levels, order):
        levels += [level for key in ties for level in _levels(key.values(chosen), descending=key.descending)]
        order = _sorted(levels)
    order = order if limit is None else order[:limit]
    return order if chosen is None else chosen[order]


def _sorted(levels: list[Array]) -> Ints:
    return np.lexsort(levels[::-1]) if len(levels) > 1 else np.argsort(levels[0], kind="stable")


def _has_ties(levels: list[Array], order: Ints) -> bool:
    equal = np.ones(max(len(order) - 1, 0), dtype=np.bool_)
    for level in levels:
        ranked = level[order]
        equal &= ranked[1:] == ranked[:-1]
    return bool(equal.any())


def _candidates(key: SortKey, limit: int) -> Ints | None:
    """The rows that can be among the first by one key: everything up to the last one's value, ties included."""
    values = key.values(None)
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type):
        return _text_candidates(values, limit, descending=key.descending)
    absent, level = _split(values, descending=key.descending)
    if absent is None:
        return np.flatnonzero(level <= np.partition(level, limit - 1)[limit - 1])
    nulls, present = np.flatnonzero(absent), np.flatnonzero(~absent)
    leading, trailing = (present, nulls) if key.descending else (nulls, present)
    if len(leading) > limit:
        if leading is nulls:
            return nulls
        return _up_to(present, level[present], limit)
    rest = limit - len(leading)
    if trailing is present and 0 < rest < len(present):
        trailing = _up_to(present, level[present], rest)
    return np.sort(np.concatenate([leading, trailing if rest else trailing[:0]]))


def _up_to(rows: Ints, level: Array, limit: int) -> Ints:
    return np.asarray(rows[level <= np.partition(level, limit - 1)[limit - 1]])


def _text_candidates(values: pa.Array, limit: int, *, descending: bool) -> Ints | None:
    if values.null_count:
        return None
    chosen = pc.select_k_unstable(values, limit, [("", "descending" if descending else "ascending")])
    last = values[chosen[-1].as_py()]
    held = pc.greater_equal(values, last) if descending else pc.less_equal(values, last)
    return np.flatnonzero(held.to_numpy(zero_copy_only=False))


def _levels(values: pa.Array, *, descending: bool) -> list[Array]:
    """Arrays that sort ascending as the key does: first whether there is a value, then the value."""
    absent, level = _split(values, descending=descending)
    if absent is None:
        return [level]
    return [absent if descending else ~absent, level]


def _split(values: pa.Array, *, descending: bool) -> tuple[Bools | None, Array]:
    column = Column(values)
    absent = None if column.valid is None else ~column.valid
    if column.is_text:
        encoded = column.codes
        level: Array = encoded.ranks[encoded.codes] if len(encoded.ranks) else encoded.codes
    else:
        level = column.values
    if level.dtype == np.bool_:
        level = level.view(np.uint8)
    if descending:
        level = -level if level.dtype.kind == "f" else ~level
    return absent, level


def ranks(lists: pa.Array) -> pa.Array:
    """The places of lists among each other: item by item, a list before those that it begins; null for null."""
    values = [None if found is None else tuple(found) for found in lists.to_pylist()]
    places = {found: rank for rank, found in enumerate(sorted({value for value in values if value is not None}))}
    return pa.array([None if value is None else places[value] for value in values], pa.int64())


def with_one_zero(values: pa.Array) -> pa.Array:
    """Values with 0.0 for -0.0, which is the same number, also inside of lists."""
    kind = values.type
    if pa.types.is_floating(kind):
        return pc.add(values, pa.scalar(0.0, kind))
    is_list = pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind)
    if not is_list or not pa.types.is_floating(kind.value_type):
        return values
    items = values.flatten().to_numpy(zero_copy_only=False)
    if not bool((np.signbit(items) & (items == 0)).any()):
        return values
    found = values.to_pylist()
    return pa.array([None if one is None else [item + 0.0 for item in one] for one in found], kind)


def smallest(values: npt.NDArray[Any], count: int) -> Any:
    """The ``count``-th smallest of some floats. Values in groups whose smallest is too large are left out first,
    which is much quicker than parting all of them."""
    across = len(values) // _GROUP
    if across >= 2 * count:
        least = values[: across * _GROUP].reshape(_GROUP, across).min(axis=0)
        enough = np.partition(least, count - 1)[count - 1]
        if not np.isnan(enough):
            values = values[values <= enough]
    return np.partition(values, count - 1)[count - 1]


def is_ascending(numbers: Array) -> bool:
    """Is every number larger than the one before?"""
    return bool((numbers[1:] > numbers[:-1]).all())
