"""Equal values of two columns get equal numbers: those of the comparison with `=`."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.lang.query.ir import Op
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series, compare
from omnigraph.read.values.matching import matching_codes

_WHOLE = [0, 1, 3, 2**31 - 1, None]
_WIDE = [-1, 0, 2**53, 2**53 + 1, 2**63 - 1, None]
_UNSIGNED = [0, 3, 2**53 + 1, 2**63, 2**64 - 1, None]
_FLOATS = [-0.0, 0.0, 0.1, 1.0, -1.0, 2.0**53, 2.0**63, 2.0**64, 1e300, math.inf, -math.inf, None]
_NARROW = [-0.0, 0.1, 1.0, 16777216.0, math.inf, None]
NUMBERS = [
    pa.array(_WHOLE, pa.int32()),
    pa.array(_WHOLE, pa.uint32()),
    pa.array(_WIDE, pa.int64()),
    pa.array(_UNSIGNED, pa.uint64()),
    pa.array(_NARROW, pa.float32()),
    pa.array(_FLOATS, pa.float64()),
]
OTHERS = [
    pa.array(["", "a", "b", "a", None]),
    pa.array([True, False, None, True]),
    pa.array([dt.date(2020, 1, 1), dt.date(1969, 12, 31), None], pa.date32()),
    pa.array([0, 1, None, 1], pa.timestamp("ms", "UTC")),
]


def pairs(left: list[Column], right: list[Column]) -> set[tuple[int, int]]:
    """The rows that have the same number."""
    one, other, width = matching_codes(list(zip(left, right, strict=True)))
    assert max(one.max(initial=-1), other.max(initial=-1)) < max(width, 1)
    return {(i, j) for i, x in enumerate(one.tolist()) for j, y in enumerate(other.tolist()) if x == y >= 0}


def compared(left: list[Column], right: list[Column]) -> set[tuple[int, int]]:
    """The rows for which all comparisons hold, each row with each."""
    first, second = len(left[0]), len(right[0])
    near, far = np.repeat(np.arange(first), second), np.tile(np.arange(second), first)
    held = np.ones(len(near), dtype=np.bool_)
    for one, other in zip(left, right, strict=True):
        held &= compare(Op.EQ, Series(one, near), Series(other, far), len(near))
    return set(zip(near[held].tolist(), far[held].tolist(), strict=True))


@pytest.mark.parametrize("left", NUMBERS, ids=lambda array: str(array.type))
@pytest.mark.parametrize("right", NUMBERS, ids=lambda array: str(array.type))
def test_numbers_match_if_they_are_the_same_number(left: pa.Array, right: pa.Array) -> None:
    assert pairs([Column(left)], [Column(right)]) == compared([Column(left)], [Column(right)])


@pytest.mark.parametrize("values", [*NUMBERS, *OTHERS], ids=lambda array: str(array.type))
def test_a_column_matches_itself_where_it_has_values(values: pa.Array) -> None:
    column = Column(values)
    assert pairs([column], [column]) == compared([column], [column])


def test_texts_match_across_widths_of_offsets() -> None:
    left, right = Column(pa.array(["a", None, "b"])), Column(pa.array(["b", "c", None, "b"], pa.large_string()))
    assert pairs([left], [right]) == {(2, 0), (2, 3)}


def test_several_columns_match_if_all_do() -> None:
    def column(*values: Any) -> Column:
        return Column(pa.array(values))

    left = [column(1, 1, 2, None), column("a", "b", "a", "a"), column(0.5, 0.5, None, 1.0)]
    right = [column(1, 2, 1), column("b", "a", "c"), column(0.5, 0.5, 0.5)]
    assert pairs(left, right) == compared(left, right) == {(1, 0)}


def test_many_combinations_are_numbered_without_gaps() -> None:
    values = Column(pa.array(range(100)))
    left, right, width = matching_codes([(values, values)] * 8)
    assert width <= 4 * 200
    assert left.tolist() == right.tolist()


def test_no_rows_match_nothing() -> None:
    nothing = Column(pa.array([], pa.string()))
    assert pairs([nothing], [Column(pa.array(["a", None]))]) == set()
    assert pairs([Column(pa.array(["a", None]))], [nothing]) == set()


def test_what_is_not_a_number_matches_nothing() -> None:
    column = Column(pa.array([math.nan, 1.0]))
    assert pairs([column], [column]) == {(1, 1)}
    assert pairs([column], [Column(pa.array([1, 2]))]) == {(1, 0)}
