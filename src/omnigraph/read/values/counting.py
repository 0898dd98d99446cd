"""Arithmetic with counts: exact up to the largest 64-bit integer, and from there on that number, `MANY`.
Sums over integers are exact however large they get.

A pattern of a dozen hops can match more often than 64 bits can count, and that need not matter: a negation only
depends on whether the count is zero, a limit on whether it is large. So arithmetic never fails, it stops at
`MANY`; code that returns a count to the caller checks for it.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from omnigraph.read.values.columns import Array, Ints

MANY: Final = 2**63 - 1
"""A count of this size or more: the largest 64-bit integer."""
_EXACT_FLOAT: Final = 2**53
_SHIFT: Final = np.int64(32)
_LOW: Final = np.int64(2**32 - 1)
_CARRY: Final = 2**31


def product(left: Array, right: Array) -> Array:
    """Counts multiplied; truth values stay truth values."""
    if left.dtype == np.bool_ and right.dtype == np.bool_:
        return left & right
    exact = np.multiply(left, right, dtype=np.int64)
    if max(left.itemsize, right.itemsize) <= 4 or largest(left) * largest(right) <= MANY:
        return exact
    room = MANY // np.maximum(right.astype(np.int64), 1)
    return np.where(left > room, MANY, exact)


def largest(counts: Array) -> int:
    """The largest number, regardless of its sign."""
    if not counts.size:
        return 0
    if counts.dtype == np.bool_:
        return 1
    return max(int(counts.max()), -int(counts.min()))


def total(counts: Array) -> int:
    """The sum of all, however large."""
    if largest(counts) * counts.size <= MANY:
        return int(counts.sum(dtype=np.int64))
    high, low = halves(counts)
    return (int(high.sum()) << 32) + int(low.sum())


def counts_by(codes: Array, weights: Ints | None, width: int) -> Ints:
    """For each code the sum of the weights."""
    if weights is None:
        return np.bincount(codes, minlength=width).astype(np.int64, copy=False)
    bound = largest(weights) * len(weights)
    if bound < _EXACT_FLOAT:
        return np.bincount(codes, weights=weights, minlength=width).astype(np.int64)
    if bound <= MANY:
        return _added(codes, weights, width)
    high, low = halves(weights)
    return whole(_added(codes, high, width), _added(codes, low, width))


def sums_by(codes: Array, numbers: Array, weights: Ints | None, width: int) -> Array:
    """For each code the exact sum of integers, each as often as its weight says.

    The sums are 64-bit integers where all of them certainly fit, and Python's otherwise.
    """
    if numbers.dtype == np.object_:
        return _added_exactly(codes, numbers, width)
    each = largest(numbers) * (1 if weights is None else largest(weights))
    if weights is not None:
        if each > MANY:
            return _added_exactly(codes, numbers.astype(np.object_) * weights.astype(np.object_), width)
        numbers = np.multiply(numbers, weights, dtype=np.int64, casting="unsafe")
    bound = each * len(numbers)
    if bound < _EXACT_FLOAT:
        return np.bincount(codes, weights=numbers, minlength=width).astype(np.int64)
    if bound <= MANY:
        return _added(codes, numbers.astype(np.int64, copy=False), width)
    high, low = halves(numbers)
    sums: Array = (_added(codes, high, width).astype(np.object_) << 32) + _added(codes, low, width)
    return sums


def _added_exactly(codes: Array, numbers: Array, width: int) -> Array:
    out = np.zeros(width, dtype=np.object_)
    np.add.at(out, codes, numbers)
    return out


def _added(codes: Array, weights: Ints, width: int) -> Ints:
    out = np.zeros(width, dtype=np.int64)
    np.add.at(out, codes, weights)
    return out


def segment_sums(weights: Array, counts: Ints) -> Ints:
    """Sums of neighbouring stretches of these lengths."""
    if largest(weights) * int(counts.max(initial=0)) <= MANY:
        return _segments(weights, counts)
    high, low = halves(weights)
    return whole(_segments(high, counts), _segments(low, counts))


def _segments(weights: Array, counts: Ints) -> Ints:
    """Differences of a running sum. They are right also where the running sum itself has wrapped around."""
    running = np.zeros(len(weights) + 1, dtype=np.int64)
    np.cumsum(weights, dtype=np.int64, out=running[1:])
    ends = np.cumsum(counts)
    return np.asarray(running[ends] - running[ends - counts])


def halves(counts: Array) -> tuple[Ints, Ints]:
    """Each count as two numbers of 32 bits, whose sums have room in 64."""
    if counts.dtype == np.uint64:
        return (counts >> np.uint64(_SHIFT)).astype(np.int64), (counts & np.uint64(_LOW)).astype(np.int64)
    return counts >> _SHIFT, counts & _LOW


def whole(high: Ints, low: Ints) -> Ints:
    """What two halves stand for, at most `MANY` in either direction."""
    high = high + (low >> _SHIFT)
    exact = high << _SHIFT | low & _LOW
    return np.where(high >= _CARRY, MANY, np.where(high < -_CARRY, -MANY, exact))
