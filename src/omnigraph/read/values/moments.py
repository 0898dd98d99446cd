"""Kernels for dates and instants, which NumPy computes: calendars are not what Arrow is good at.

Operands are Arrow arrays, or Arrow scalars where a value is the same for all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.values import DATE_BOUNDS, DATETIME_BOUNDS
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, numbers

Values = Any
"""An Arrow array, or an Arrow scalar."""
INSTANT: Final = pa.timestamp("ms", "UTC")
_UNITS: Final = {"year": "Y", "month": "M", "day": "D", "hour": "h", "minute": "m", "second": "s"}
_OUTSIDE: Final = "the result lies outside the years 1 to 9999"


def whole(values: Values, other: Values) -> pa.Array:
    """Values as an array; one that is the same for all rows gets as long as the other array."""
    if isinstance(values, pa.Scalar):
        return pa.repeat(values, 1 if isinstance(other, pa.Scalar) else len(other))
    return values


def absent(*operands: pa.Array) -> Array | None:
    """Where one of the operands is null; None if nowhere."""
    missing: Array | None = None
    for one in operands:
        if one.null_count:
            here = np.asarray(pc.is_null(one).to_numpy(zero_copy_only=False))
            missing = here if missing is None else missing | here
    return missing


def calendar(function: Callable[[Array], Array], values: Values) -> pa.Array:
    """A function of NumPy's moments for every row: days of dates, milliseconds of instants."""
    values = whole(values, values)
    return _arrow(function(_moments(values)), absent(values))


def _moments(values: pa.Array) -> Array:
    return numbers(values).astype("M8[D]" if pa.types.is_date32(values.type) else "M8[ms]")


def _arrow(found: Array, missing: Array | None) -> pa.Array:
    """NumPy's moments or integers as an Arrow array; moments outside the calendar are refused."""
    if found.dtype.kind != "M":
        return to_arrow(found.astype(np.int64), missing)
    is_date = found.dtype == np.dtype("M8[D]")
    low, high = DATE_BOUNDS if is_date else DATETIME_BOUNDS
    plain = found.astype(np.int64)
    if missing is not None:
        plain = np.where(missing, 0, plain)
    if len(plain) and (int(plain.min()) < low or int(plain.max()) > high):
        raise OverflowError(_OUTSIDE)
    days = to_arrow(plain.astype(np.int32) if is_date else plain, missing)
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
    return to_arrow(found, absent(first, second))


def moved(values: Values, unit: str, amount: Values) -> pa.Array:
    """Each moment so many units later."""
    values, amount = whole(values, amount), whole(amount, values)
    missing = absent(values, amount)
    steps = numbers(amount) if missing is None else np.where(missing, 0, numbers(amount))
    if len(steps) and int(np.abs(steps.astype(np.float64)).max()) > 10**13:
        raise OverflowError(_OUTSIDE)
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
