"""The function table once more, as tests know it: each function in plain Python, and as DuckDB writes it.

A new function needs one row here. The reference interpreter computes with the Python; the comparison with DuckDB
takes the SQL, in which `{0}` stands for the first operand. Without SQL DuckDB means something else by it, and
`DIFFERENCES` says what.
"""

from __future__ import annotations

import calendar
import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from omnigraph.lang.values import EPOCH, EPOCH_DATE, parse_date, parse_datetime


class Uncomputable(Exception):
    """There is no such value: the engine stops with a `ComputationFailed`."""


@dataclass(frozen=True)
class Known:
    """A function in Python, for operands that are not null, and in DuckDB's SQL."""

    python: Callable[..., Any]
    sql: str | None


def _integer(value: int) -> int:
    if not -(2**63) <= value < 2**63:
        raise Uncomputable
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise Uncomputable
    return value


def _arithmetic(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def computed(left: Any, right: Any) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            return _finite(function(float(left), float(right)))
        return _integer(function(_integer(left), _integer(right)))

    return computed


def _divided(left: Any, right: Any) -> Any:
    if right == 0:
        raise Uncomputable
    if isinstance(left, float):
        return left / right
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def _rest(left: Any, right: Any) -> Any:
    if right == 0:
        raise Uncomputable
    return math.fmod(left, right) if isinstance(left, float) else left - right * _divided(left, right)


def _rounded(number: Any, digits: int = 0) -> Any:
    """Integers exactly; floats as they are after a multiplication by a power of ten, as everywhere."""
    if isinstance(number, int):
        if digits >= 0:
            return _integer(number)
        unit = 10 ** min(-digits, 30)
        return _integer((abs(_integer(number)) + unit // 2) // unit * unit * (1 if number >= 0 else -1))
    power = 10.0 ** min(abs(digits), 308)
    scaled = number / power if digits < 0 else number * power
    if abs(digits) > 308:
        return number if digits > 0 else math.copysign(0.0, number)
    if digits >= 0 and abs(scaled) >= 2**52:
        return number
    near = math.floor(abs(scaled))
    near += abs(scaled) - near >= 0.5
    return _finite(math.copysign(near * power if digits < 0 else near / power, number))


def _substring(text: str, start: int, count: int | None = None) -> str:
    low = max(0, _integer(start) - 1)
    high = len(text) if count is None else max(0, start - 1 + max(0, _integer(count)))
    return text[low : max(low, high)]


def _to_integer(value: Any) -> int:
    if isinstance(value, str):
        if re.fullmatch("[+-]?[0-9]+", value.strip(), re.ASCII) is None:
            raise Uncomputable
        return _integer(int(value.strip()))
    return _integer(int(value))


def _to_float(value: Any) -> float:
    if isinstance(value, str):
        if re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value.strip(), re.ASCII) is None:
            raise Uncomputable
        return _finite(float(value.strip()))
    return float(value)


def _by_letter(change: Callable[[str], str], letters: Mapping[str, str]) -> Callable[[str], str]:
    """Upper or lower case letter by letter: what would become several letters, or depends on its neighbours, is
    listed, or stays."""

    def changed(letter: str) -> str:
        found = change(letter)
        return letters.get(letter, found if len(found) == 1 else letter)

    return lambda text: "".join(map(changed, text))


def _to_text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case dt.datetime():
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        case dt.date():
            return value.isoformat()
        case _:
            return repr(value)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        raise Uncomputable from None


def _to_date(value: Any) -> dt.date:
    if isinstance(value, str):
        found: dt.date = _parsed(parse_date, value)
        return found
    return value.date() if isinstance(value, dt.datetime) else value


def _to_datetime(value: Any) -> dt.datetime:
    if isinstance(value, str):
        found: dt.datetime = _parsed(parse_datetime, value)
        return found
    return (
        value if isinstance(value, dt.datetime) else dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    )


def _truncated(unit: str, moment: Any) -> Any:
    day = moment.date() if isinstance(moment, dt.datetime) else moment
    clock = {"hour": 1, "minute": 2, "second": 3}.get(unit)
    if clock is not None and isinstance(moment, dt.datetime):
        hour, minute, second = moment.hour, moment.minute * (clock > 1), moment.second * (clock > 2)
        return dt.datetime(day.year, day.month, day.day, hour, minute, second, tzinfo=dt.UTC)
    match unit:
        case "year":
            begun = day.replace(month=1, day=1)
        case "quarter":
            begun = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            begun = day.replace(day=1)
        case "week":
            if (day - dt.date.min).days < day.weekday():
                raise Uncomputable
            begun = day - dt.timedelta(days=day.weekday())
        case _:
            begun = day
    return _to_datetime(begun) if isinstance(moment, dt.datetime) else begun


def _units(unit: str, moment: Any) -> int:
    """How many units have begun from some fixed one on, up to a moment."""
    day = moment.date() if isinstance(moment, dt.datetime) else moment
    days = (day - EPOCH_DATE).days
    seconds = (_to_datetime(moment) - EPOCH) // dt.timedelta(seconds=1)
    return {
        "year": day.year,
        "quarter": day.year * 4 + (day.month - 1) // 3,
        "month": day.year * 12 + day.month,
        "week": (days + 3) // 7,
        "day": days,
        "hour": seconds // 3600,
        "minute": seconds // 60,
        "second": seconds,
    }[unit]


def _moved(moment: Any, unit: str, amount: int) -> Any:
    months = {"year": 12, "quarter": 3, "month": 1}.get(unit)
    try:
        if months is None:
            seconds = {"week": 604_800, "day": 86_400, "hour": 3600, "minute": 60, "second": 1}[unit]
            return moment + dt.timedelta(seconds=seconds) * amount
        year, month = divmod(moment.year * 12 + moment.month - 1 + months * amount, 12)
        return moment.replace(year=year, month=month + 1, day=min(moment.day, _days(year, month + 1)))
    except (OverflowError, ValueError):
        raise Uncomputable from None


def _days(year: int, month: int) -> int:
    if not 1 <= year <= 9999:
        raise Uncomputable
    return calendar.monthrange(year, month)[1]


def _anything(*_: float) -> bool:
    return True


def _real(function: Callable[..., float], allowed: Callable[..., bool] = _anything) -> Callable[..., float]:
    def computed(*numbers: Any) -> float:
        given = [float(number) for number in numbers]
        if not allowed(*given):
            raise Uncomputable
        try:
            return _finite(function(*given))
        except (OverflowError, ValueError, ZeroDivisionError):
            raise Uncomputable from None

    return computed


def _whole(function: Callable[[float], int]) -> Callable[[Any], Any]:
    def computed(number: Any) -> Any:
        if isinstance(number, float):
            return math.copysign(function(number), number) if number else number
        return _integer(number)

    return computed


def _split(text: str, separator: str) -> list[str]:
    if not separator:
        raise Uncomputable
    return text.split(separator)


_LOWER: Final = _by_letter(str.lower, {"İ": "i"})
_UPPER: Final = _by_letter(str.upper, {"ß": "ẞ"})

KNOWN: Final[Mapping[str, Known]] = {
    "+": Known(_arithmetic(lambda a, b: a + b), "({0} + {1})"),
    "-": Known(_arithmetic(lambda a, b: a - b), "({0} - {1})"),
    "*": Known(_arithmetic(lambda a, b: a * b), "({0} * {1})"),
    "/": Known(_arithmetic(_divided), None),
    "%": Known(_arithmetic(_rest), None),
    "minus": Known(lambda a: -a if isinstance(a, float) else _integer(-_integer(a)), "(-{0})"),
    "to_string": Known(_to_text, None),
    "to_integer": Known(_to_integer, None),
    "to_float": Known(_to_float, "cast({0} as double)"),
    "to_date": Known(_to_date, None),
    "to_datetime": Known(_to_datetime, None),
    "lower": Known(_LOWER, "lower({0})"),
    "upper": Known(_UPPER, "upper({0})"),
    "trim": Known(str.strip, None),
    "length": Known(len, "length({0})"),
    "concat": Known(lambda *texts: "".join(texts), "({0} || {1})"),
    "substring": Known(_substring, None),
    "replace": Known(lambda text, old, new: text.replace(old, new) if old else text, "replace({0}, {1}, {2})"),
    "split": Known(_split, "string_split({0}, {1})"),
    "starts_with": Known(str.startswith, "starts_with({0}, {1})"),
    "ends_with": Known(str.endswith, "ends_with({0}, {1})"),
    "icontains": Known(lambda text, part: _LOWER(part) in _LOWER(text), "contains(lower({0}), lower({1}))"),
    "regex_match": Known(lambda text, pattern: re.search(pattern, text) is not None, "regexp_matches({0}, {1})"),
    "abs": Known(lambda a: abs(a) if isinstance(a, float) else _integer(abs(_integer(a))), "abs({0})"),
    "round": Known(_rounded, "round({0})"),
    "floor": Known(_whole(math.floor), "floor({0})"),
    "ceil": Known(_whole(math.ceil), "ceil({0})"),
    "sqrt": Known(_real(math.sqrt, lambda a: a >= 0), "sqrt({0})"),
    "power": Known(_real(math.pow), "power({0}, {1})"),
    "ln": Known(_real(math.log, lambda a: a > 0), "ln({0})"),
    "exp": Known(_real(math.exp), "exp({0})"),
    "year": Known(lambda moment: moment.year, "year({0})"),
    "month": Known(lambda moment: moment.month, "month({0})"),
    "day": Known(lambda moment: moment.day, "day({0})"),
    "hour": Known(lambda moment: getattr(moment, "hour", 0), "hour({0})"),
    "weekday": Known(lambda moment: moment.isoweekday(), "isodow({0})"),
    "date_trunc": Known(_truncated, "date_trunc({0}, {1})"),
    "date_diff": Known(
        lambda unit, one, other: _units(unit, other) - _units(unit, one), "date_diff({0}, {1}, {2})"
    ),
    "date_add": Known(_moved, None),
    "size": Known(len, "len({0})"),
    "first": Known(lambda items: items[0] if items else None, "list_extract({0}, 1)"),
    "last": Known(lambda items: items[-1] if items else None, "list_extract({0}, -1)"),
}

SPECIAL: Final = frozenset({"coalesce", "nullif", "has"})
"""Functions with a rule of their own for nulls, which the interpreter has itself."""

_LISTED: Final = Path(__file__).parents[3] / "docs/reference/sql-differences.md"
DIFFERENCES: Final[Mapping[str, str]] = dict(
    re.findall(r"^\| `(\S+)` \| (.+) \|$", _LISTED.read_text(encoding="utf-8"), re.MULTILINE)
)
"""Every intended difference from DuckDB, as the documentation lists them."""
_LARGE: Final = "1" + "0" * 300 + ".0"
PARTLY: Final[Mapping[str, tuple[str, str]]] = {
    "+": (f"{_LARGE} * 100000000.0 + {_LARGE} * 100000000.0", "1e308::double + 1e308::double"),
    "-": (f"-{_LARGE} * 100000000.0 - {_LARGE} * 100000000.0", "-1e308::double - 1e308::double"),
    "*": (f"{_LARGE} * {_LARGE}", "1e300::double * 1e300::double"),
    "power": ("power(-8, 0.5)", "power(-8, 0.5)"),
    "exp": ("exp(1000)", "exp(1000)"),
    "sqrt": ("sqrt(-1)", "sqrt(-1)"),
    "ln": ("ln(0)", "ln(0)"),
    "to_float": ('to_float("inf")', "cast('inf' as double)"),
    "split": ('size(split("ab", ""))', "len(string_split('ab', ''))"),
    "date_diff": (
        'date_diff("week", date("1969-12-31"), date("1970-01-05"))',
        "date_diff('week', date '1969-12-31', date '1970-01-05')",
    ),
    "avg": (f"avg($v.x * 100000000.0 * {_LARGE})", "avg(x * 1e308::double)"),
}
"""Functions that are compared with DuckDB and listed too: an example for which the two differ."""
