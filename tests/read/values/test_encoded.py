"""A function of values that repeat is computed once for each of them."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.lang.query.ir import Op
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series, compare
from omnigraph.read.values.encoded import once_each
from omnigraph.settings import ReadSettings

EAGER = ReadSettings(encode_from=24)
CARRIERS = ["LX", None, "lx", "BA", "LX", "BA", "lx", "LX", "ba", None, "LX", "BA"] * 3


class Counted:
    """A function of columns that notes how many values it was given."""

    def __init__(self, kernel: object) -> None:
        self.kernel = kernel
        self.given: list[int] = []

    def __call__(self, values: Column) -> Column:
        self.given.append(len(values))
        return Column(self.kernel(values.arrow))  # type: ignore[operator]


@pytest.mark.parametrize("places", [None, [0, 1, 2, 3], [-1, 5, 2, -1, 9], []])
def test_texts_that_become_the_same_have_one_code(places: list[int] | None) -> None:
    lower = Counted(pc.utf8_lower)
    series = Series(
        Column(pa.array(CARRIERS), EAGER), None if places is None else np.array(places, dtype=np.int32)
    )
    found = once_each(series, lower)
    assert found is not None
    assert lower.given == [4]
    expected = [None if text is None else text.lower() for text in series.arrow.to_pylist()]
    count = len(expected)
    assert len(found) == count
    assert found.is_text
    assert found.codes.dictionary.to_pylist() == ["lx", "ba"]
    equal, other = (compare(op, Series(found), "lx", count).tolist() for op in (Op.EQ, Op.NE))
    assert equal == [text == "lx" for text in expected]
    assert other == [text == "ba" for text in expected]
    valid = [True] * count if found.valid is None else found.valid.tolist()
    assert valid == [text is not None for text in expected]
    assert found.arrow.to_pylist() == expected


def test_a_function_may_have_no_value_for_some_texts() -> None:
    found = once_each(
        Series(Column(pa.array(CARRIERS), EAGER)),
        Counted(lambda texts: pc.if_else(pc.equal(texts, "BA"), pa.scalar(None, pa.string()), texts)),
    )
    assert found is not None
    assert found.arrow.to_pylist() == [None if text == "BA" else text for text in CARRIERS]
    assert compare(Op.IS_NULL, Series(found), None, len(CARRIERS)).tolist() == [
        t in (None, "BA") for t in CARRIERS
    ]


@pytest.mark.parametrize("missing", [False, True])
def test_dates_are_computed_once_for_each_day(missing: bool) -> None:
    first = dt.date(1969, 12, 30)
    days = [first + dt.timedelta(days=number % 5) for number in range(40)]
    dates = pa.array([None, *days] if missing else days)
    year = Counted(pc.year)
    found = once_each(Series(Column(dates)), year)
    assert found is not None
    assert year.given == [5]
    assert found.arrow.to_pylist() == [None if day is None else day.year for day in dates.to_pylist()]
    some = np.array([3, -1, *range(38)], dtype=np.int32)
    at = once_each(Series(Column(dates), some), year)
    assert at is not None
    assert at.arrow.to_pylist() == [None if p < 0 or (d := dates[p].as_py()) is None else d.year for p in some]


def test_days_far_apart_and_texts_that_differ_are_computed_by_row() -> None:
    apart = pa.array([dt.date(1, 1, 1), dt.date(9999, 12, 31)] * 50)
    assert once_each(Series(Column(apart)), Counted(pc.year)) is None
    assert once_each(Series(Column(pa.array([f"t{n}" for n in range(50)]), EAGER)), Counted(pc.utf8_lower)) is None
    assert once_each(Series(Column(pa.array([], pa.date32()))), Counted(pc.year)) is None
