"""A column in memory: its values as numbers, numbered, sorted, and at positions."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.values.columns import Column, distinct_numbers, filled, numbers, taken
from omnigraph.settings import ReadSettings

MOMENT = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)


class TestValues:
    @pytest.mark.parametrize(
        ("kind", "values", "expected"),
        [
            (pa.int32(), [3, None, -1], [3, 0, -1]),
            (pa.uint64(), [2**64 - 1, None], [2**64 - 1, 0]),
            (pa.float32(), [0.5, None], [0.5, 0.0]),
            (pa.bool_(), [True, None, False], [True, False, False]),
            (pa.date32(), [dt.date(1969, 12, 31), None], [-1, 0]),
            (pa.timestamp("ms", "UTC"), [MOMENT, None], [-1, 0]),
            (pa.int64(), [], []),
        ],
        ids=str,
    )
    def test_as_numbers(self, kind: pa.DataType, values: list[Any], expected: list[Any]) -> None:
        column = Column(pa.array(values, kind))
        assert column.values.tolist() == expected
        assert len(column) == len(values)
        valid = [value is not None for value in values]
        assert (column.valid is None) == all(valid)
        assert column.valid is None or column.valid.tolist() == valid
        sliced = pa.array([values[0] if values else None, *values], kind).slice(1)
        assert numbers(sliced).tolist() == expected

    def test_in_one_piece(self) -> None:
        assert Column.of(pa.chunked_array([["a"], ["b", None]])).arrow.to_pylist() == ["a", "b", None]
        assert Column.of(pa.chunked_array([], pa.string())).arrow.to_pylist() == []

    def test_much_text_has_wide_offsets(self) -> None:
        column = Column.of(pa.chunked_array([["some text"], ["some more of it"]]), largest=10)
        assert column.arrow.type == pa.large_string()
        assert column.is_text
        assert column.codes.ranks.tolist() == [1, 0]


class TestCodes:
    @pytest.mark.parametrize(
        ("kind", "values", "groups"),
        [
            (pa.string(), ["b", "a", None, "b", ""], [0, 1, -1, 0, 2]),
            (pa.int64(), [2**53, 2**53 + 1, 2**53, None], [0, 1, 0, -1]),
            (pa.float64(), [0.0, -0.0, 1.5, None], [0, 0, 1, -1]),
            (pa.float32(), [-0.0, 0.0], [0, 0]),
            (pa.bool_(), [True, False, None, True], [0, 1, -1, 0]),
            (pa.list_(pa.int32()), [[1, 2], [], None, [1, 2], [None]], [0, 1, -1, 0, 2]),
            (pa.list_(pa.float32(), 2), [[0.5, 1.0], None, [0.5, 1.0]], [0, -1, 0]),
        ],
        ids=str,
    )
    def test_equal_values_have_equal_numbers(
        self, kind: pa.DataType, values: list[Any], groups: list[int]
    ) -> None:
        codes = Column(pa.array(values, kind)).codes
        assert codes.codes.tolist() == groups
        assert len(codes.dictionary) == max(groups, default=-1) + 1

    def test_ranks_are_by_bytes(self) -> None:
        codes = Column(pa.array(["\U00010000", "a", "\uffff", "Z", None])).codes
        assert codes.ranks.tolist() == [3, 1, 2, 0]

    def test_few_distinct_texts_repeat(self) -> None:
        eight = ReadSettings(encode_from=8)
        assert Column(pa.array(["a"] * 8), eight).repeats
        assert not Column(pa.array(["a"] * 7), eight).repeats
        assert not Column(pa.array(list("abcdefgh")), eight).repeats
        assert not Column(pa.array([1] * 8), eight).repeats


class TestPositions:
    def test_a_negative_position_is_null(self) -> None:
        column = Column(pa.array(["x", None, "z"]))
        assert column.take(np.array([2, -1, 0, 1], dtype=np.int32)).to_pylist() == ["z", None, "x", None]
        assert taken(pa.array([], pa.int64()), np.array([-1, -1])).to_pylist() == [None, None]
        assert taken(pa.array([7]), np.array([], dtype=np.int64)).to_pylist() == []

    @pytest.mark.parametrize("values", [[], [3], [2, 2, 2], [5, -1, 5, 2**62, -1, 0], [3, 1, 2]])
    def test_distinct_numbers(self, values: list[int]) -> None:
        assert distinct_numbers(np.array(values, dtype=np.int64)).tolist() == sorted(set(values))

    def test_filled(self) -> None:
        assert filled(pa.array([1, None, 3]), -1).tolist() == [1, -1, 3]

    def test_values_are_found_by_bisection_once_that_pays(self) -> None:
        texts = pa.array(["m", "\U00010000", None, "a", "m", "\uffff", ""])
        column = Column(texts, ReadSettings(order_from=3, order_after=2))
        assert column.places_of("m") is None
        expected = {"m": [0, 4], "\U00010000": [1], "a": [3], "\uffff": [5], "": [6], "b": [], "zz": []}
        for text, places in expected.items():
            found = column.places_of(text)
            assert found is not None
            assert sorted(found.tolist()) == places
        assert column.order.tolist()[:3] == [6, 3, 0]


@given(
    st.lists(st.none() | st.integers(-3, 3), min_size=3, max_size=20),
    st.lists(st.none() | st.integers(-3, 3), max_size=5),
    st.integers(0, 20),
)
@settings(deadline=None)
def test_integers_are_found_in_order_whatever_was_added(
    before: list[int | None], added: list[int | None], kept: int
) -> None:
    """By bisection in the column, in the one that has grown from it, and in the first rows of that one."""
    column = Column(pa.array(before, pa.int32()), ReadSettings(order_from=1, order_after=1))
    assert column.places_of(2**40) is not None
    longer = column.followed_by(pa.array(added, pa.int32()))
    assert longer.is_ordered
    for each, values in (
        (column, before),
        (longer, before + added),
        (longer.first(kept), (before + added)[:kept]),
    ):
        for wanted in range(-4, 5) if values else ():
            found = each.places_of(wanted)
            assert found is not None
            assert sorted(found.tolist()) == [place for place, value in enumerate(values) if value == wanted]
