"""What the rows of the function table compute with: Arrow's kernels, and some that Arrow does not have.

Operands are Arrow arrays, or Arrow scalars where a value is the same for all rows. A value that does not exist is
an `ArrowInvalid`, `ZeroDivisionError`, `OverflowError` or `ValueError`, which the caller names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.values import parse_date, parse_datetime
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, numbers
from omnigraph.read.values.moments import (
    INSTANT,
    Values,
    absent,
    between,
    calendar,
    day,
    hour,
    moved,
    naive,
    truncated,
    weekday,
    whole,
)

__all__ = ["INSTANT", "between", "calendar", "day", "hour", "moved", "naive", "pc", "truncated", "weekday"]

_NO_ROOM: Final = "the result has no room in 64 bits"
_TOO_LARGE: Final = "the result is beyond the range of floats"
_INTEGER: Final = "^[+-]?[0-9]+$"
_FLOAT: Final = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_MOST_DIGITS: Final = 400
"""No float has digits further from its point."""
_WHOLE_FROM: Final = 2.0**52
"""From here on floats have no fraction."""
_SHOWN: Final = 40


def is_float(values: Values) -> bool:
    """Are the values floats?"""
    return bool(pa.types.is_floating(values.type))


def is_text(values: Values) -> bool:
    """Are the values texts?"""
    return bool(pa.types.is_string(values.type) or pa.types.is_large_string(values.type))


def zero(values: Values) -> pa.Scalar:
    """A zero of the type of the values."""
    return pa.scalar(0, values.type)


def add(left: Values, right: Values) -> Values:
    return pc.add(left, right) if is_float(left) else pc.add_checked(left, right)


def subtract(left: Values, right: Values) -> Values:
    return pc.subtract(left, right) if is_float(left) else pc.subtract_checked(left, right)


def multiply(left: Values, right: Values) -> Values:
    return pc.multiply(left, right) if is_float(left) else pc.multiply_checked(left, right)


def divide(left: Values, right: Values) -> Values:
    return pc.divide_checked(left, right)


def rest(left: Values, right: Values) -> Values:
    """The rest of a division, with the sign of the left side."""
    if is_float(left):
        left, right = whole(left, right), whole(right, left)
        if pc.any(pc.equal(right, 0.0)).as_py():
            raise ZeroDivisionError
        return to_arrow(np.fmod(numbers(left), _not_zero(numbers(right))), absent(left, right))
    one = pa.scalar(1, right.type)
    # Nothing is left of a division by -1, and the smallest integer has no quotient.
    divisor = pc.if_else(pc.equal(right, pa.scalar(-1, right.type)), one, right)
    return pc.subtract(left, pc.multiply(pc.divide_checked(left, divisor), divisor))


def _not_zero(values: Array) -> Array:
    return np.where(values == 0, 1, values)


def finite(values: Values) -> Values:
    """Values of which each is a number; others are refused, for there are none in a graph either."""
    total = values.as_py() if isinstance(values, pa.Scalar) else pc.sum(values).as_py()
    if total is None or math.isfinite(total):
        return values
    if not isinstance(values, pa.Scalar) and pc.all(pc.is_finite(values)).as_py():
        return values
    if pc.any(pc.is_nan(whole(values, values))).as_py():
        raise ValueError("the result is no real number")
    raise OverflowError(_TOO_LARGE)


def rounded(number: Values, digits: Values | None = None) -> Values:
    """Rounded to so many digits; halves go away from zero."""
    if digits is None:
        return number if not is_float(number) else pc.round(number, 0, "half_towards_infinity")
    number, digits = whole(number, digits), whole(digits, number)
    places = np.clip(numbers(digits), -_MOST_DIGITS, _MOST_DIGITS)
    found = _rounded_floats if is_float(number) else _rounded_integers
    return to_arrow(found(numbers(number), places), absent(number, digits))


def _rounded_floats(values: Array, places: Array) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        power = 10.0 ** np.abs(places)
        scaled = np.where(places < 0, values / power, values * power)
        below = np.floor(np.abs(scaled))
        near = np.copysign(below + (np.abs(scaled) - below >= 0.5), values)
        found = np.where(places < 0, np.where(near == 0, near, near * power), near / power)
        return np.where((places >= 0) & ~(np.abs(scaled) < _WHOLE_FROM), values, found)


def _rounded_integers(values: Array, places: Array) -> Array:
    found = values.copy()
    for place in np.unique(places[places < 0]):
        rows = np.flatnonzero(places == place)
        unit = 10 ** -int(place)
        if unit >= 2**63:
            # Half of 10^19 is below the largest integer, and 10^19 itself is above it.
            some, half = values[rows], unit // 2
            if half < 2**63 and ((some >= half) | (some <= -half)).any():
                raise OverflowError(_NO_ROOM)
            found[rows] = 0
        else:
            found[rows] = pc.round(to_arrow(values[rows]), int(place), "half_towards_infinity").to_numpy()
    return found


def concatenated(*texts: Values) -> Values:
    """Texts one behind the other."""
    wide = any(pa.types.is_large_string(text.type) for text in texts)
    kind = pa.large_string() if wide else pa.string()
    return pc.binary_join_element_wise(*(text.cast(kind) for text in texts), pa.scalar("", kind))


def by_row(function: Callable[..., Any], kind: pa.DataType, *operands: Values) -> pa.Array:
    """A Python function for every row that has all operands: for what no kernel can do."""
    longest = next((one for one in operands if isinstance(one, pa.Array)), operands[0])
    columns = [whole(one, longest).to_pylist() for one in operands]
    return pa.array([None if None in row else function(*row) for row in zip(*columns, strict=True)], kind)


def by_pattern(
    kernel: Callable[..., Values], function: Callable[[str, str], bool], text: Values, pattern: Values
) -> Values:
    """A test of texts by a kernel that takes one pattern; patterns that differ by row go one by one."""
    if isinstance(pattern, pa.Scalar):
        return kernel(text, pattern.as_py())
    return by_row(function, pa.bool_(), text, pattern)


def holds_text(text: str, part: str) -> bool:
    """Does the text contain the part?"""
    return part in text


def substring(text: Values, start: Values, count: Values | None = None) -> Values:
    """Characters from a place on that counts from 1; places in front of the text have none."""
    if isinstance(start, pa.Scalar) and (count is None or isinstance(count, pa.Scalar)):
        low, high = _stretch(start.as_py(), None if count is None else count.as_py())
        return pc.utf8_slice_codeunits(text, low, high)
    counts = () if count is None else (count,)
    return by_row(_part, pa.string(), text, start, *counts)


def _part(text: str, start: int, count: int | None = None) -> str:
    low, high = _stretch(start, count)
    return text[low:high]


def _stretch(start: int, count: int | None) -> tuple[int, int]:
    """The characters of a substring, as a stretch that counts from 0."""
    high = 2**31 - 1 if count is None else max(0, min(start - 1 + max(count, 0), 2**31 - 1))
    low = max(0, min(start - 1, 2**31 - 1))
    return low, max(low, high)


def replaced(text: Values, old: Values, new: Values) -> Values:
    """Texts with another text in place of a part."""
    if isinstance(old, pa.Scalar) and isinstance(new, pa.Scalar):
        return pc.replace_substring(text, old.as_py(), new.as_py()) if old.as_py() else text
    return by_row(lambda all_, gone, put: all_.replace(gone, put) if gone else all_, pa.string(), text, old, new)


def split(text: Values, separator: str) -> Values:
    """The parts of texts."""
    if not separator:
        raise ValueError("the separator is empty")
    return pc.split_pattern(text, separator)


def item(lists: Values, at: int) -> Values:
    """The first or the last item of lists; null where there is none."""
    lists = whole(lists, lists)
    lengths = numbers(pc.list_value_length(lists))
    starts = np.cumsum(lengths) - lengths
    places = starts if at == 0 else starts + lengths - 1
    return pc.list_flatten(lists).take(to_arrow(places, lengths == 0))


def to_text(values: Values) -> Values:
    """Values as texts: numbers and dates as queries write them."""
    if is_text(values):
        return values
    if is_float(values):
        return by_row(repr, pa.string(), values)
    if pa.types.is_timestamp(values.type):
        return pc.strftime(values.cast(pa.timestamp("ms")), "%Y-%m-%dT%H:%M:%SZ")
    return pc.cast(values, pa.string())


def to_integer(values: Values) -> Values:
    """Values as 64-bit integers; floats lose their fraction."""
    if pa.types.is_floating(values.type):
        cut = pc.trunc(values)
        low, high = pc.min(cut).as_py(), pc.max(cut).as_py()
        if low is not None and not (low >= -(2.0**63) and high < 2.0**63):
            raise OverflowError(_NO_ROOM)
        return pc.cast(cut, pa.int64(), safe=False)
    if is_text(values):
        try:
            return pc.cast(_said(values, _INTEGER, "integer"), pa.int64())
        except pa.ArrowInvalid:
            raise OverflowError(_NO_ROOM) from None
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int64())
    return _wide(values)


def _said(texts: Values, pattern: str, wanted: str) -> Values:
    """Texts that say numbers, as Arrow reads them; one that says none is refused."""
    trimmed = pc.utf8_trim_whitespace(texts)
    fits = whole(pc.match_substring_regex(trimmed, pattern), texts)
    if pc.all(fits).as_py() is False:
        wrong = whole(texts, texts)[pc.index(fits, pa.scalar(False)).as_py()].as_py()
        raise ValueError(f"{json.dumps(wrong[:_SHOWN], ensure_ascii=False)} is no {wanted}")
    return pc.utf8_ltrim(trimmed, "+")


def _wide(values: Values) -> Values:
    try:
        return values if values.type == pa.int64() else pc.cast(values, pa.int64())
    except pa.ArrowInvalid:
        raise OverflowError(_NO_ROOM) from None


def to_float(values: Values) -> Values:
    """Values as 64-bit floats."""
    if values.type == pa.float64():
        return values
    if is_text(values):
        return finite(pc.cast(_said(values, _FLOAT, "number"), pa.float64()))
    if pa.types.is_boolean(values.type):
        values = pc.cast(values, pa.int64())
    return pc.cast(values, pa.float64(), safe=False)


def to_date(values: Values) -> Values:
    """Values as dates: texts that say one, and the days of instants."""
    if pa.types.is_date32(values.type):
        return values
    if pa.types.is_timestamp(values.type):
        return calendar(lambda moments: moments.astype("M8[D]"), values)
    return by_row(parse_date, pa.date32(), values)


def to_datetime(values: Values) -> Values:
    """Values as instants: texts that say one, and the midnights of dates."""
    if pa.types.is_timestamp(values.type):
        return values
    if pa.types.is_date32(values.type):
        return calendar(lambda moments: moments.astype("M8[ms]"), values)
    return by_row(parse_datetime, INSTANT, values)
