"""Rows come in the order Python would sort them in: nulls lowest, ties by further keys, also with a limit."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from itertools import product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples, sampled

from omnigraph.read.values.columns import Ints
from omnigraph.read.values.sorting import SortKey, first_rows, smallest


@dataclass(frozen=True)
class Key:
    """A column of values, and which way it goes."""

    kind: pa.DataType
    values: Sequence[Any]
    descending: bool = False

    def sort_key(self, asked: list[str] | None = None) -> SortKey:
        array = pa.array(self.values, self.kind)

        def values(rows: Ints | None) -> pa.Array:
            if asked is not None:
                asked.append("all" if rows is None else "some")
            return array if rows is None else array.take(pa.array(rows))

        return SortKey(values, self.descending)

    def compare(self, left: int, right: int) -> int:
        """Below zero if one row comes before the other by this key alone."""
        one, two = (self._rank(self.values[row]) for row in (left, right))
        return ((one > two) - (one < two)) * (-1 if self.descending else 1)

    def _rank(self, value: Any) -> tuple[Any, ...]:
        if value is None:
            return (0,)
        return (1, value.encode() if isinstance(value, str) else value)


def in_order(keys: Sequence[Key], ties: Sequence[Key], count: int) -> list[int]:
    """The definition: all keys, one behind the other."""

    def compared(left: int, right: int) -> int:
        return next((found for key in (*keys, *ties) if (found := key.compare(left, right))), left - right)

    return sorted(range(count), key=cmp_to_key(compared))


def check(keys: Sequence[Key], ties: Sequence[Key], count: int, most: int | None) -> None:
    found = first_rows([key.sort_key() for key in keys], [key.sort_key() for key in ties], count, most)
    assert found.tolist() == in_order(keys, ties, count)[:most]


VALUES: dict[pa.DataType, Sequence[Any]] = {
    pa.int32(): (-(2**31), -1, 0, 1, 2**31 - 1),
    pa.int64(): (-(2**63), -1, 0, 2**53, 2**53 + 1, 2**63 - 1),
    pa.uint32(): (0, 1, 2**32 - 1),
    pa.uint64(): (0, 1, 2**53, 2**53 + 1, 2**64 - 1),
    pa.float32(): (-1.5, -0.0, 0.0, 0.25, 3.0),
    pa.float64(): (-1e300, -0.0, 0.0, 0.1, 1e300),
    pa.bool_(): (True, False),
    pa.string(): ("", "a", "A", "ab", "ä", "\uffff", "\U00010000"),
    pa.date32(): (dt.date(1969, 12, 31), dt.date(1970, 1, 1), dt.date(9999, 12, 31)),
    pa.timestamp("ms", "UTC"): (dt.datetime(1969, 12, 31, tzinfo=dt.UTC), dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
}


def random_key(random: Random, kind: pa.DataType, count: int, *, nulls: float, descending: bool) -> Key:
    values = [None if random.random() < nulls else random.choice(VALUES[kind]) for _ in range(count)]
    return Key(kind, values, descending)


@st.composite
def orders(draw: st.DrawFn) -> tuple[list[Key], list[Key], int]:
    count = draw(st.integers(0, 12))

    def key() -> Key:
        kind = draw(st.sampled_from(list(VALUES)))
        value = st.one_of(st.none(), st.sampled_from(VALUES[kind]))
        return Key(kind, draw(st.lists(value, min_size=count, max_size=count)), draw(st.booleans()))

    keys = [key() for _ in range(draw(st.integers(1, 3)))]
    return keys, [key() for _ in range(draw(st.integers(0, 2)))], count


@settings(deadline=None, max_examples=examples(100, of=300))
@given(orders(), st.one_of(st.none(), st.integers(0, 14)))
def test_any_keys_of_any_types(order: tuple[list[Key], list[Key], int], most: int | None) -> None:
    check(*order, most)


@pytest.mark.parametrize(
    ("kind", "nulls", "descending", "most"),
    sampled(product(VALUES, [0.0, 0.02, 0.5, 1.0], [False, True], [1, 5, 30, 100, None]), 83),
    ids=str,
)
def test_the_first_few_of_many(kind: pa.DataType, nulls: float, descending: bool, most: int | None) -> None:
    """With a limit not everything is sorted. The first ones are the same, however many share a value."""
    random, count = Random(f"{kind} {nulls} {descending} {most}"), 500
    key = random_key(random, kind, count, nulls=nulls, descending=descending)
    second = random_key(random, pa.int32(), count, nulls=0.1, descending=not descending)
    ids = Key(pa.string(), random.sample([f"id{i}" for i in range(count)], count))
    check([key], [ids], count, most)
    check([key, second], [ids], count, most)


@pytest.mark.parametrize("descending", [False, True], ids=["up", "down"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.string()], ids=str)
def test_as_many_nulls_as_are_wanted(kind: pa.DataType, descending: bool) -> None:
    """One more or less than the limit is where counting them goes wrong."""
    random, count = Random(7), 400
    ids = Key(pa.string(), [f"id{i:03}" for i in range(count)])
    for nulls in (9, 10, 11, count - 11, count - 10, count - 9):
        values = [None] * nulls + [random.choice(VALUES[kind]) for _ in range(count - nulls)]
        check([Key(kind, random.sample(values, count), descending)], [ids], count, 10)


def test_numbers_that_floats_cannot_tell_apart() -> None:
    values = [2**63 - 1 - i for i in range(300)]
    check([Key(pa.int64(), values)], [], 300, 3)
    check([Key(pa.uint64(), [value + 2**63 for value in values], descending=True)], [], 300, 3)


def test_keys_that_break_ties_are_asked_only_where_there_are_any() -> None:
    asked: list[str] = []
    ids = Key(pa.string(), [f"id{i}" for i in range(300)])
    first_rows([Key(pa.int64(), list(range(300))).sort_key()], [ids.sort_key(asked)], 300, None)
    assert asked == []
    first_rows([Key(pa.int64(), [i // 2 for i in range(300)]).sort_key()], [ids.sort_key(asked)], 300, 10)
    assert asked == ["some"]


def test_without_keys_rows_stay_as_they_are() -> None:
    ids = Key(pa.string(), ["c", "a", "b"]).sort_key()
    assert first_rows([], [ids], 3, None).tolist() == [0, 1, 2]
    assert first_rows([], [ids], 3, 2).tolist() == [0, 1]
    assert first_rows([], [ids], 3, 5).tolist() == [0, 1, 2]


def test_nobody_wants_any() -> None:
    asked: list[str] = []
    assert first_rows([Key(pa.int64(), [1, 2]).sort_key(asked)], [], 2, 0).tolist() == []
    assert asked == []


def test_texts_with_wide_offsets() -> None:
    """Columns of more than two gigabytes of text have another type."""
    values = [f"text {i * 7919 % 1000:04}" for i in range(1000)]
    check([Key(pa.large_string(), values)], [], 1000, 5)
    check([Key(pa.large_string(), values, descending=True)], [], 1000, None)


@pytest.mark.parametrize("size", [1, 10, 700, 5_000])
@pytest.mark.parametrize("odd", [np.inf, np.nan])
def test_one_of_the_smallest(size: int, odd: float) -> None:
    chance = np.random.default_rng(size)
    for dtype in (np.float32, np.float64):
        values = chance.integers(0, size, size).astype(dtype)
        values[chance.random(size) < 0.3] = odd
        for count in (1, size // 20 + 1, size):
            assert np.array_equal(smallest(values, count), np.sort(values)[count - 1], equal_nan=True)
