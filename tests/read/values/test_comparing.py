"""Comparisons are exact: numbers of any types as numbers, texts by their bytes, and a null never matches."""

from __future__ import annotations

import datetime as dt
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.lang.query.ir import Op
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Operand, Series, compare
from omnigraph.settings import READ_DEFAULTS, ReadSettings

ORDERED: dict[Op, Callable[[Any, Any], bool]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
INTEGERS = {
    pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1),
    pa.uint32(): (0, 2**32 - 1),
    pa.uint64(): (0, 2**64 - 1),
}
NUMBERS = (*INTEGERS, pa.float32(), pa.float64())
EDGES = [
    sign * (base + step)
    for base in (0, 1, 2**24, 2**31, 2**32, 2**53, 2**63, 2**64)
    for step in (-2, -1, 0, 1, 2)
    for sign in (1, -1)
]
"""Integers around everything that a number of some type can or cannot tell apart."""


def numbers(kind: pa.DataType) -> st.SearchStrategy[float]:
    """Values that a column of a type can hold."""
    if kind in INTEGERS:
        low, high = INTEGERS[kind]
        return st.one_of(st.sampled_from([edge for edge in EDGES if low <= edge <= high]), st.integers(low, high))
    width = 32 if kind == pa.float32() else 64
    near = [*map(float, EDGES), -0.0, 0.5, 2.0**53 + 2, 2.0**63 - 1024, 2.0**63 + 2048]
    return st.one_of(
        st.sampled_from([float(np.float32(value)) for value in near] if width == 32 else near),
        st.floats(width=width, allow_nan=False, allow_infinity=False),  # type: ignore[arg-type]
    )


def series(kind: pa.DataType, values: Sequence[object]) -> Series:
    return Series(Column(pa.array(values, kind)))


def holds(op: Op, left: Operand, right: Operand, count: int) -> list[bool]:
    found = compare(op, left, right, count)
    assert found.dtype == np.bool_
    return list(map(bool, found.tolist()))


@st.composite
def columns_of_numbers(draw: st.DrawFn) -> tuple[pa.DataType, list[float | None]]:
    kind = draw(st.sampled_from(NUMBERS))
    return kind, draw(st.lists(st.one_of(st.none(), numbers(kind)), min_size=1, max_size=6))


constants = st.one_of(
    st.sampled_from([edge for edge in EDGES if -(2**63) <= edge < 2**64]),
    numbers(pa.float64()),
    st.sampled_from([2.7, -0.5, 1e300, -1e300, 2**53 + 0.5]),
)


@settings(deadline=None, max_examples=examples(120, of=500))
@given(columns_of_numbers(), constants, st.sampled_from(list(ORDERED)))
@example((pa.int64(), [2**53, 2**53 + 1]), 2.0**53, Op.EQ)
@example((pa.float64(), [2.0**53]), 2**53 + 1, Op.LT)
@example((pa.uint64(), [2**64 - 1]), 2.0**64, Op.LT)
@example((pa.int64(), [2**63 - 1]), 2.0**63, Op.GE)
@example((pa.int32(), [3]), 2.7, Op.GT)
@example((pa.float64(), [0.0]), -0.0, Op.EQ)
def test_a_column_against_a_number(
    column: tuple[pa.DataType, list[float | None]], constant: float, op: Op
) -> None:
    kind, values = column
    exact = Fraction(constant)
    if kind == pa.float32():
        with np.errstate(over="ignore"):
            rounded = np.float32(constant)
        exact = Fraction(float(rounded)) if np.isfinite(rounded) else exact
    expected = [value is not None and ORDERED[op](Fraction(value), exact) for value in values]
    assert holds(op, series(kind, values), constant, len(values)) == expected
    mirrored = {Op.LT: Op.GT, Op.GT: Op.LT, Op.LE: Op.GE, Op.GE: Op.LE}.get(op, op)
    assert holds(mirrored, constant, series(kind, values), len(values)) == expected


@settings(deadline=None, max_examples=examples(120, of=500))
@given(columns_of_numbers(), columns_of_numbers(), st.sampled_from(list(ORDERED)))
@example((pa.int64(), [2**53 + 1, 2**63 - 1]), (pa.float64(), [2.0**53, 2.0**63]), Op.GT)
@example((pa.int64(), [-1]), (pa.uint64(), [2**64 - 1]), Op.EQ)
@example((pa.float32(), [16777216.0]), (pa.int32(), [16777217]), Op.EQ)
@example((pa.float32(), [0.1]), (pa.float64(), [0.1]), Op.EQ)
def test_two_columns_of_any_types(
    left: tuple[pa.DataType, list[float | None]], right: tuple[pa.DataType, list[float | None]], op: Op
) -> None:
    count = min(len(left[1]), len(right[1]))
    arrays = [pa.array(values[:count], kind) for kind, values in (left, right)]
    pairs = list(zip(*(array.to_pylist() for array in arrays), strict=True))
    expected = [None not in pair and ORDERED[op](Fraction(pair[0]), Fraction(pair[1])) for pair in pairs]
    assert holds(op, Series(Column(arrays[0])), Series(Column(arrays[1])), count) == expected


def test_a_number_is_rounded_as_32_bits_store_it() -> None:
    """A property of 32 bits cannot hold 0.1; whoever asks for 0.1 means the nearest it can hold."""
    column = series(pa.float32(), [0.1, 16777216.0, None])
    assert holds(Op.EQ, column, 0.1, 3) == [True, False, False]
    assert holds(Op.EQ, column, 16777217, 3) == [False, True, False]
    assert holds(Op.LT, column, 1e300, 3) == [True, True, False]
    assert holds(Op.GT, column, -1e300, 3) == [True, True, False]


dates = st.dates(dt.date(1, 1, 1), dt.date(9999, 12, 31))
instants = st.datetimes(dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=dt.UTC)
)


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), dates), min_size=1, max_size=5), dates, st.sampled_from(list(ORDERED)))
@example([dt.date(1969, 12, 31), dt.date(1970, 1, 1)], dt.date(1969, 12, 31), Op.LE)
def test_dates_also_before_1970(values: list[dt.date | None], constant: dt.date, op: Op) -> None:
    expected = [value is not None and ORDERED[op](value, constant) for value in values]
    column = series(pa.date32(), values)
    assert holds(op, column, constant, len(values)) == expected
    assert holds(op, column, series(pa.date32(), [constant] * len(values)), len(values)) == expected


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), instants), min_size=1, max_size=5), instants, st.sampled_from(list(ORDERED)))
@example([dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)], dt.datetime(1970, 1, 1, tzinfo=dt.UTC), Op.LT)
def test_instants_to_the_millisecond(values: list[dt.datetime | None], constant: dt.datetime, op: Op) -> None:
    expected = [value is not None and ORDERED[op](value, constant) for value in values]
    column = series(pa.timestamp("ms", "UTC"), values)
    assert holds(op, column, constant, len(values)) == expected


@pytest.mark.parametrize("op", ORDERED)
def test_truth_values(op: Op) -> None:
    values = [True, False, None]
    for constant in (True, False):
        expected = [value is not None and ORDERED[op](value, constant) for value in values]
        assert holds(op, series(pa.bool_(), values), constant, 3) == expected
        assert holds(op, series(pa.bool_(), values), series(pa.bool_(), [constant] * 3), 3) == expected


TEXTS = ["", "a", "A", "ab", "ä", "a\u0308", "\uffff", "\U00010000", "\U0001f600", "z", "a%", "%", "_", "\x00"]
texts = st.one_of(st.sampled_from(TEXTS), st.text(max_size=4))
optional_texts = st.one_of(st.none(), texts)


def text_holds(op: Op, left: str, right: str) -> bool:
    """By bytes; every character is ordinary."""
    if op is Op.STARTS_WITH:
        return left.encode().startswith(right.encode())
    if op is Op.STRING_CONTAINS:
        return right.encode() in left.encode()
    return ORDERED[op](left.encode(), right.encode())


TEXT_OPS = [*ORDERED, Op.STARTS_WITH, Op.STRING_CONTAINS]


class TestTexts:
    @pytest.mark.parametrize("encode_from", [READ_DEFAULTS.encode_from, 21], ids=["as they are", "numbered"])
    @settings(deadline=None, max_examples=examples(60, of=200))
    @given(st.lists(optional_texts, min_size=1, max_size=5), texts, st.sampled_from(TEXT_OPS))
    @example(["\uffff", "\U00010000"], "\U00010000", Op.LT)
    @example(["\U0001f600"], "\uffff", Op.GT)
    def test_a_column_against_a_text(
        self, encode_from: int, values: list[str | None], constant: str, op: Op
    ) -> None:
        """A column with few distinct values is compared once per value."""
        repeated = values * 6
        expected = [value is not None and text_holds(op, value, constant) for value in repeated]
        column = Column(pa.array(repeated, pa.string()), ReadSettings(encode_from=encode_from))
        assert holds(op, Series(column), constant, len(repeated)) == expected
        turned = np.arange(len(repeated))[::-1].copy()
        assert holds(op, Series(column, turned), constant, len(repeated)) == expected[::-1]

    @settings(deadline=None, max_examples=examples(60, of=200))
    @given(st.lists(st.tuples(optional_texts, optional_texts), max_size=5), st.sampled_from(TEXT_OPS))
    def test_two_columns(self, pairs: list[tuple[str | None, str | None]], op: Op) -> None:
        expected = [None not in pair and text_holds(op, *pair) for pair in pairs]  # type: ignore[arg-type]
        left, right = (series(pa.string(), [pair[side] for pair in pairs]) for side in (0, 1))
        assert holds(op, left, right, len(pairs)) == expected

    @settings(deadline=None)
    @given(texts, st.lists(optional_texts, max_size=5), st.sampled_from(TEXT_OPS))
    def test_a_text_against_a_column(self, constant: str, values: list[str | None], op: Op) -> None:
        expected = [value is not None and text_holds(op, constant, value) for value in values]
        assert holds(op, constant, series(pa.string(), values), len(values)) == expected


@pytest.mark.parametrize(
    ("op", "left", "right", "held"),
    [
        (Op.EQ, 1, 1.0, True),
        (Op.LT, 2**53, 2.0**53 + 2, True),
        (Op.GT, "\U00010000", "\uffff", True),
        (Op.STARTS_WITH, "graph", "gr", True),
        (Op.STRING_CONTAINS, "graph", "ra", True),
        (Op.EQ, None, None, False),
        (Op.NE, None, 1, False),
        (Op.CONTAINS, (1, 2), 2, True),
        (Op.CONTAINS, (1, 2), None, False),
        (Op.IS_NULL, None, None, True),
        (Op.IS_NOT_NULL, 1, None, True),
    ],
)
def test_two_constants(op: Op, left: Operand, right: Operand, held: bool) -> None:
    assert holds(op, left, right, 3) == [held] * 3


class TestNulls:
    @pytest.mark.parametrize("op", [*TEXT_OPS, Op.CONTAINS])
    @pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.float32(), pa.bool_(), pa.date32()])
    def test_a_null_parameter_matches_nothing(self, op: Op, kind: pa.DataType) -> None:
        column = series(kind, [None, None])
        assert holds(op, column, None, 2) == [False, False]
        assert holds(op, None, column, 2) == [False, False]

    def test_a_position_without_a_row_is_null(self) -> None:
        column = Column(pa.array([7, 8], pa.int64()))
        positions = np.array([1, -1, 0], dtype=np.int32)
        assert holds(Op.NE, Series(column, positions), 1, 3) == [True, False, True]
        assert holds(Op.IS_NULL, Series(column, positions), None, 3) == [False, True, False]
        assert holds(Op.EQ, Series(column, positions), Series(column, positions), 3) == [True, False, True]

    def test_no_rows_to_look_at(self) -> None:
        nobody = np.array([-1, -1], dtype=np.int32)
        constants: list[tuple[pa.DataType, Operand]] = [(pa.string(), "x"), (pa.int64(), 1), (pa.bool_(), True)]
        for kind, constant in constants:
            column = Column(pa.array([], kind))
            assert holds(Op.NE, Series(column, nobody), constant, 2) == [False, False]
            assert holds(Op.EQ, Series(column, nobody), Series(column, nobody), 2) == [False, False]
            assert holds(Op.IS_NULL, Series(column, nobody), None, 2) == [True, True]


items = st.one_of(st.none(), st.sampled_from([-(2**31), -1, 0, 1, 7, 2**31 - 1]))
lists_of_items = st.one_of(st.none(), st.lists(items, max_size=4))


class TestMembership:
    @settings(deadline=None)
    @given(st.lists(lists_of_items, max_size=5), st.sampled_from([0, 1, 7, 2.5]))
    def test_a_list_has_an_item(self, lists: list[list[int | None] | None], wanted: float) -> None:
        expected = [one is not None and any(item == wanted for item in one) for one in lists]
        column = series(pa.list_(pa.int32()), lists)
        assert holds(Op.CONTAINS, column, wanted, len(lists)) == expected

    @settings(deadline=None)
    @given(st.lists(st.tuples(lists_of_items, items), max_size=5))
    def test_a_list_has_an_item_of_its_row(self, rows: list[tuple[list[int | None] | None, int | None]]) -> None:
        expected = [one is not None and item is not None and item in one for one, item in rows]
        lists = series(pa.list_(pa.int32()), [one for one, _ in rows])
        wanted = series(pa.int64(), [item for _, item in rows])
        assert holds(Op.CONTAINS, lists, wanted, len(rows)) == expected

    @settings(deadline=None)
    @given(columns_of_numbers(), st.lists(constants, max_size=4))
    def test_a_number_is_one_of_several(
        self, column: tuple[pa.DataType, list[float | None]], members: list[float]
    ) -> None:
        kind, values = column
        exact = [Fraction(member) for member in members]
        if kind == pa.float32():
            with np.errstate(over="ignore"):
                exact = [Fraction(float(r)) for r in map(np.float32, members) if np.isfinite(r)]
        expected = [value is not None and Fraction(value) in exact for value in values]
        assert holds(Op.CONTAINS, tuple(members), series(kind, values), len(values)) == expected

    @settings(deadline=None)
    @given(st.lists(optional_texts, max_size=5), st.lists(texts, max_size=4))
    def test_a_text_is_one_of_several(self, values: list[str | None], members: list[str]) -> None:
        expected = [value is not None and value in members for value in values]
        assert holds(Op.CONTAINS, tuple(members), series(pa.string(), values), len(values)) == expected

    def test_lists_of_every_kind(self) -> None:
        day = dt.date(1969, 12, 31)
        moment = dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, dt.UTC)
        cases: list[tuple[pa.DataType, object, Operand]] = [
            (pa.date32(), day, day),
            (pa.timestamp("ms", "UTC"), moment, moment),
            (pa.string(), "\U0001f600", "\U0001f600"),
            (pa.bool_(), False, False),
            (pa.float32(), 0.1, 0.1),
            (pa.float32(), -0.0, 0.0),
        ]
        for kind, stored, wanted in cases:
            column = series(pa.list_(kind), [[stored], [None], [], None])
            assert holds(Op.CONTAINS, column, wanted, 4) == [True, False, False, False]

    def test_at_some_positions(self) -> None:
        column = Column(pa.array([[1, 2], None, [3]], pa.list_(pa.int32())))
        positions = np.array([2, -1, 0, 0, 1], dtype=np.int32)
        assert holds(Op.CONTAINS, Series(column, positions), 3, 5) == [True, False, False, False, False]
        assert holds(Op.CONTAINS, Series(column, positions), 2, 5) == [False, False, True, True, False]


def test_a_vector_is_equal_as_32_bits_store_it() -> None:
    column = series(pa.list_(pa.float32(), 2), [[0.1, 0.2], [0.1, 0.3], None])
    assert holds(Op.EQ, column, (0.1, 0.2), 3) == [True, False, False]
