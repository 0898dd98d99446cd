"""Arithmetic without checks is only done where it cannot leave 64 bits, and then it is exact."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.read.values import integers
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series
from omnigraph.read.values.integers import Operation, Term
from omnigraph.read.values.parallel import in_parallel
from omnigraph.settings import ReadSettings

ROWS = 12
MOST = 2**63 - 1
OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul}
KINDS = {pa.int32(): (-(2**31), 2**31 - 1), pa.int64(): (-MOST - 1, MOST), pa.uint64(): (0, 2**64 - 1)}
THREADS = ReadSettings(parallel_from=4)


@st.composite
def columns(draw: st.DrawFn) -> Series:
    """Integers of some type, small or as large as can be, in any order, some of them null."""
    kind = draw(st.sampled_from(list(KINDS)))
    low, high = KINDS[kind]
    small = st.integers(max(low, -9), 9)
    number = draw(st.sampled_from([small, small, st.integers(low, high)]))
    values = draw(st.lists(st.none() | number, min_size=1, max_size=ROWS))
    places = draw(st.lists(st.integers(-1, len(values) - 1), min_size=ROWS, max_size=ROWS))
    whole = len(values) == ROWS and draw(st.booleans())
    return Series(Column(pa.array(values, kind), THREADS), None if whole else np.array(places, dtype=np.int32))


def operations(terms: st.SearchStrategy[Term]) -> st.SearchStrategy[Term]:
    return st.builds(Operation, st.sampled_from(list(OPERATORS)), terms, terms)


TERMS = st.recursive(columns() | st.integers(-9, 9) | st.integers(-MOST - 1, MOST), operations, max_leaves=5)


def by_row(term: Term) -> list[int | None]:
    """The exact values of a term, null where one of its parts is; fails if one has no room in 64 bits."""
    if isinstance(term, int):
        return [term] * ROWS
    if isinstance(term, Series):
        found: list[int | None] = term.arrow.to_pylist()
    else:
        pairs = zip(by_row(term.left), by_row(term.right), strict=True)
        found = [None if a is None or b is None else OPERATORS[term.operator](a, b) for a, b in pairs]
    assert all(value is None or -MOST - 1 <= value <= MOST for value in found)
    return found


def is_constant(term: Term) -> bool:
    return isinstance(term, int) or (
        isinstance(term, Operation) and is_constant(term.left) and is_constant(term.right)
    )


@settings(deadline=None, max_examples=examples(150, of=1_000))
@given(operations(TERMS))
def test_what_is_bounded_is_exact(term: Operation) -> None:
    if integers.bounds(term) is None or is_constant(term):
        return
    expected = by_row(term)
    column = integers.computed(term)
    assert column.arrow.to_pylist() == expected
    assert column.values.tolist() == [value or 0 for value in expected]
    missing = [value is None for value in expected]
    assert missing == ([False] * ROWS if column.valid is None else (~column.valid).tolist())
    column.arrow.validate(full=True)


def numbers(values: Sequence[int | None], kind: Any = None) -> Series:
    return Series(Column(pa.array(values, kind or pa.int64())))


@pytest.mark.parametrize(
    ("term", "bounds"),
    [
        (Operation("+", numbers([5, None, MOST - 1]), 1), (6, MOST)),
        (Operation("+", numbers([5, None, MOST]), 1), None),
        (Operation("-", numbers([-MOST, 3]), 1), (-MOST - 1, 2)),
        (Operation("-", numbers([-MOST, 3]), 2), None),
        (Operation("-", 0, numbers([-MOST - 1])), None),
        (Operation("*", numbers([-3, 2]), numbers([-5, 7])), (-21, 15)),
        (Operation("*", numbers([2**32]), numbers([2**31])), None),
        (Operation("-", Operation("+", numbers([MOST]), 1), 1), None),
        (Operation("+", numbers([2**63], pa.uint64()), -1), None),
        (Operation("+", numbers([None, None]), 1), None),
    ],
)
def test_bounds(term: Operation, bounds: tuple[int, int] | None) -> None:
    assert integers.bounds(term) == bounds


def test_a_large_column_is_not_read_whole_for_a_few_rows() -> None:
    few = Series(Column(pa.array(range(100))), np.array([3, 4], dtype=np.int32))
    assert integers.bounds(Operation("+", few, 1)) is None
    assert few.column.bounds == (0, 99)
    assert integers.bounds(Operation("+", few, 1)) == (1, 100)


def test_work_in_a_thread_may_have_parts_itself() -> None:
    done = []
    ranges = [(low, low + 10) for low in range(0, 1000, 10)]
    in_parallel(
        lambda low, high: in_parallel(lambda a, b: done.append((a, b)), [(low, low + 5), (low + 5, high)]), ranges
    )
    assert sorted(done) == [(low, low + 5) for low in range(0, 1000, 5)]
