"""Counts are exact up to the largest number of 64 bits, and never wrap around."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.read.values.counting import (
    MANY,
    counts_by,
    halves,
    largest,
    product,
    segment_sums,
    sums_by,
    total,
    whole,
)

counts = st.one_of(st.integers(0, 5), st.integers(2**31 - 2, 2**33), st.integers(0, MANY), st.just(MANY))


def capped(number: int) -> int:
    return max(-MANY, min(number, MANY))


@given(st.lists(st.tuples(counts, counts)))
def test_products(pairs: list[tuple[int, int]]) -> None:
    left, right = (np.array([pair[side] for pair in pairs], dtype=np.int64) for side in (0, 1))
    assert product(left, right).tolist() == [capped(a * b) for a, b in pairs]


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), counts)))
def test_products_of_short_and_long_numbers(pairs: list[tuple[int, int]]) -> None:
    left = np.array([a for a, _ in pairs], dtype=np.int32)
    right = np.array([b for _, b in pairs], dtype=np.int64)
    assert product(left, right).tolist() == [capped(a * b) for a, b in pairs]
    assert product(left, left).tolist() == [a * a for a, _ in pairs]
    assert product(left > 5, right).tolist() == [b if a > 5 else 0 for a, b in pairs]


def test_truth_values_stay_truth_values() -> None:
    both = product(np.array([True, True, False]), np.array([True, False, False]))
    assert both.dtype == np.bool_
    assert both.tolist() == [True, False, False]


@given(st.lists(counts), counts)
def test_a_product_with_one_number_for_all(numbers: list[int], factor: int) -> None:
    found = product(np.array(numbers, dtype=np.int64), np.array([factor]))
    assert found.tolist() == [capped(number * factor) for number in numbers]


@given(st.lists(st.integers(-MANY, MANY)))
def test_totals_may_be_larger_than_any_count(numbers: list[int]) -> None:
    array = np.array(numbers, dtype=np.int64)
    assert total(array) == sum(numbers)
    assert largest(array) == max(map(abs, numbers), default=0)
    assert total(array > 0) == sum(number > 0 for number in numbers)


@given(st.lists(st.tuples(st.integers(0, 3), st.one_of(counts, st.integers(-MANY, MANY)))))
def test_sums_by_group(pairs: list[tuple[int, int]]) -> None:
    codes = np.array([code for code, _ in pairs], dtype=np.int64)
    weights = np.array([weight for _, weight in pairs], dtype=np.int64)
    expected = [capped(sum(weight for code, weight in pairs if code == group)) for group in range(4)]
    assert counts_by(codes, weights, 4).tolist() == expected
    assert counts_by(codes, None, 4).tolist() == [sum(code == group for code, _ in pairs) for group in range(4)]


@given(st.lists(st.lists(counts, max_size=4)))
def test_sums_of_stretches(stretches: list[list[int]]) -> None:
    weights = np.array([weight for stretch in stretches for weight in stretch], dtype=np.int64)
    lengths = np.array(list(map(len, stretches)), dtype=np.int64)
    assert segment_sums(weights, lengths).tolist() == [capped(sum(stretch)) for stretch in stretches]


@given(st.lists(st.integers(-(2**63), 2**63 - 1)))
def test_halves_make_a_whole(numbers: list[int]) -> None:
    high, low = halves(np.array(numbers, dtype=np.int64))
    assert whole(high, low).tolist() == numbers
    assert all(0 <= half < 2**32 for half in low.tolist())


def test_beyond_what_floats_can_tell_apart() -> None:
    """Numbers above 2^53 have no room for every unit in a float."""
    codes, weights = np.array([0, 0, 1]), np.array([2**53, 1, 2**53 + 1])
    assert counts_by(codes, weights, 2).tolist() == [2**53 + 1, 2**53 + 1]


_SIGNED = st.one_of(st.integers(-5, 5), st.integers(-(2**53), 2**53 + 1), st.integers(-(2**63), MANY))
_KINDS = {
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": _SIGNED,
    "uint64": st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1)),
}


@given(st.data(), st.sampled_from(list(_KINDS)), st.booleans())
def test_sums_of_integers_are_exact(data: st.DataObject, kind: str, weighted: bool) -> None:
    rows = data.draw(st.lists(st.tuples(st.integers(0, 3), _KINDS[kind], counts)))
    codes = np.array([code for code, _, _ in rows], dtype=np.int64)
    numbers = np.array([number for _, number, _ in rows], dtype=np.dtype(kind))
    weights = np.array([weight for *_, weight in rows], dtype=np.int64) if weighted else None
    found = sums_by(codes, numbers, weights, 4)
    expected = [sum(n * (w if weighted else 1) for code, n, w in rows if code == group) for group in range(4)]
    assert found.tolist() == expected
    assert sums_by(np.zeros(4, np.int64), found, None, 1).tolist() == [sum(expected)]
