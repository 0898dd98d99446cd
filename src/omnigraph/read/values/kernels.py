"""What the rows of the function table compute with: Arrow's kernels, and some that Arrow does not have.

Operands are Arrow arrays, or Arrow scalars where a value is the same for all rows. A value that does not exist is
an `ArrowInvalid`, `ZeroDivisionError`, `OverflowError` or `ValueError`, which the caller names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.values import DATE_BOUNDS, DATETIME_BOUNDS, parse_date, parse_datetime
from omnigraph.read.values.columns import Array, numbers

__all__ = ["pc"]

Values = Any
"""An Arrow array, or an Arrow scalar."""
INSTANT: Final = pa.timestamp("ms", "UTC")
_NO_ROOM: Final = "the result has no room in 64 bits"
_UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}


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
        return pa.array(np.fmod(numbers(left), _not_zero(numbers(right))), mask=_missing(left, right))
    one = pa.scalar(1, right.type)
    # Nothing is left of a division by -1, and the smallest integer has no quotient.
    divisor = pc.if_else(pc.equal(right, pa.scalar(-1, right.type)), one, right)
    return pc.subtract(left, pc.multiply(pc.divide_checked(left, divisor), divisor))


def _not_zero(values: Array) -> Array:
    return np.where(values == 0, 1, values)


def rounded(number: Values, digits: Values | None = None) -> Values:
    """Rounded to so many digits; halves go away from zero."""
    if digits is None:
        return number if not is_float(number) else pc.round(number, 0, "half_towards_infinity")
    if isinstance(digits, pa.Scalar):
        return pc.round(number, digits.as_py(), "half_towards_infinity")
    return pc.round_binary(number, digits.cast(pa.int32()), "half_towards_infinity")


def whole(values: Values, other: Values) -> pa.Array:
    """Values as an array; one that is the same for all rows gets as long as the other array."""
    if isinstance(values, pa.Scalar):
        return pa.repeat(values, 1 if isinstance(other, pa.Scalar) else len(other))
    return values


def _missing(*operands: pa.Array) -> Array | None:
    """Where one of the operands is null; None if nowhere."""
    missing: Array | None = None
    for one in operands:
        if one.null_count:
            here = np.asarray(pc.is_null(one).to_numpy(zero_copy_only=False))
            missing = here if missing is None else missing | here
    return missing


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
    return pc.list_flatten(lists).take(pa.array(places, mask=lengths == 0))


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
        return pc.cast(pc.utf8_trim_whitespace(values), pa.int64())
    if pa.types.is_boolean(values.type):
        return pc.cast(values, pa.int64())
    return _wide(values)


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
        return pc.cast(pc.utf8_trim_whitespace(values), pa.float64())
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


def calendar(function: Callable[[Array], Array], values: Values) -> pa.Array:
    """A function of NumPy's moments for every row: days of dates, milliseconds of instants."""
    values = whole(values, values)
    return _arrow(function(_moments(values)), _missing(values))


def _moments(values: pa.Array) -> Array:
    return numbers(values).astype("M8[D]" if pa.types.is_date32(values.type) else "M8[ms]")


def _arrow(found: Array, missing: Array | None) -> pa.Array:
    """NumPy's moments or integers as an Arrow array; moments outside the calendar are refused."""
    if found.dtype.kind != "M":
        return pa.array(found.astype(np.int64), mask=missing)
    is_date = found.dtype == np.dtype("M8[D]")
    low, high = DATE_BOUNDS if is_date else DATETIME_BOUNDS
    plain = found.astype(np.int64)
    if missing is not None:
        plain = np.where(missing, 0, plain)
    if len(plain) and (int(plain.min()) < low or int(plain.max()) > high):
        raise OverflowError("the result lies outside the years 1 to 9999")
    days = pa.array(plain.astype(np.int32) if is_date else plain, mask=missing)
    return days.view(pa.date32() if is_date else INSTANT)


def naive(values: Values) -> pa.Array:
    """Dates, or instants without their time zone, which is UTC."""
    values = whole(values, values)
    return values if pa.types.is_date32(values.type) else values.view(pa.timestamp("ms"))


def day(moments: Array) -> Array:
    days: Array = moments.astype("M8[D]") - moments.astype("M8[M]").astype("M8[D]")
    return days.astype(np.int64) + 1


def hour(moments: Array) -> Array:
    hours: Array = moments.astype("M8[h]") - moments.astype("M8[D]").astype("M8[h]")
    return hours.astype(np.int64)


def weekday(moments: Array) -> Array:
    return (moments.astype("M8[D]").astype(np.int64) + 3) % 7 + 1


def truncated(unit: str, values: Values) -> pa.Array:
    """The begin of the unit in which each moment lies."""
    return calendar(lambda moments: _started(unit, moments).astype(moments.dtype), values)


def _started(unit: str, moments: Array) -> Array:
    if unit == "quarter":
        return (moments.astype("M8[M]").astype(np.int64) // 3 * 3).astype("M8[M]")
    if unit == "week":
        monday: Array = moments.astype("M8[D]") - (weekday(moments) - 1).astype("m8[D]")
        return monday
    return moments.astype(f"M8[{_UNITS[unit]}]")


def between(unit: str, first: Values, second: Values) -> pa.Array:
    """How many units begin behind one moment, up to another."""
    first, second = whole(first, second), whole(second, first)
    ends = [_started(unit, _moments(one)) for one in (first, second)]
    if unit in ("quarter", "week"):
        step = {"quarter": 3, "week": 7}[unit]
        found = (ends[1].astype(np.int64) - ends[0].astype(np.int64)) // step
    else:
        found = ends[1].astype(np.int64) - ends[0].astype(np.int64)
    return pa.array(found, mask=_missing(first, second))


def moved(values: Values, unit: str, amount: Values) -> pa.Array:
    """Each moment so many units later."""
    values, amount = whole(values, amount), whole(amount, values)
    missing = _missing(values, amount)
    steps = numbers(amount) if missing is None else np.where(missing, 0, numbers(amount))
    if len(steps) and int(np.abs(steps.astype(np.float64)).max()) > 10**13:
        raise OverflowError("the result lies outside the years 1 to 9999")
    moments = _moments(values)
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    if months is None:
        days = {"week": 7}.get(unit, 1)
        return _arrow(moments + (steps * days).astype(f"m8[{_UNITS.get(unit, 'D')}]"), missing)
    begun = moments.astype("M8[M]")
    later = begun + (steps * months).astype("m8[M]")
    longest = ((later + np.timedelta64(1, "M")).astype("M8[D]") - later.astype("M8[D]")).astype(np.int64)
    days = np.minimum(day(moments), longest) - 1
    of_day = moments - moments.astype("M8[D]").astype(moments.dtype)
    return _arrow((later.astype("M8[D]") + days.astype("m8[D]")).astype(moments.dtype) + of_day, missing)
