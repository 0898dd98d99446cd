"""Binding a query's parameters from JSON, or from Python values that stand for the same."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from omnigraph.errors import ParameterError
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.values import (
    F32_MAX,
    FLOATS,
    INTEGERS,
    Scalar,
    ValueType,
    fitting_float,
    in_range,
    instant_of,
    parse_date,
    parse_datetime,
)
from omnigraph.records import dataclass

Value = str | int | float | bool | dt.date | dt.datetime | bytes | tuple["Value", ...] | None

_DECIMAL: Final = re.compile(r"[+-]?[0-9]{1,20}", re.ASCII)
_I64_MAX: Final = 2**63 - 1
_JS_SAFE: Final = 2**53 - 1


@dataclass(frozen=True, slots=True)
class NumberRules:
    """How the sender writes numbers: whether whole floats are integers, and how large integers may get."""

    whole_floats: bool
    largest_integer: int


NATIVE: Final = NumberRules(whole_floats=False, largest_integer=2**64)
"""Senders that have 64-bit integers: the command line, HTTP, Python."""

JAVASCRIPT: Final = NumberRules(whole_floats=True, largest_integer=_JS_SAFE)
"""Senders whose numbers are doubles: larger integers come as strings."""


def bind_parameters(
    query: str,
    declared: Mapping[str, ValueType],
    given: Mapping[str, object] | None,
    numbers: NumberRules = NATIVE,
) -> dict[str, Value]:
    """The typed values of all declared parameters; a nullable one that is left out is null.

    ParameterError names each parameter that is missing, does not fit, or is not declared by the query.
    """
    if given is not None and not isinstance(given, Mapping):
        raise ParameterError(query, {"params": f"must be an object, not {_described(given)}"})
    values = {} if given is None else given
    problems: dict[str, str] = {}
    bound: dict[str, Value] = {}
    for name, wanted in declared.items():
        if name not in values:
            if wanted.nullable:
                bound[name] = None
            else:
                problems[name] = f"is required and has type {wanted}; give it a value"
            continue
        try:
            bound[name] = _convert(values[name], wanted, numbers)
        except ValueError as error:
            problems[name] = str(error)
    for name in values:
        if name not in declared:
            problems[name] = f"is not declared by the query; {_declared_instead(str(name), declared)}"
    if problems:
        raise ParameterError(query, problems)
    return bound


def _declared_instead(name: str, declared: Iterable[str]) -> str:
    """What the caller may have meant by a parameter that the query does not have."""
    return suggest(name, declared) or "it has no parameters"


def _convert(value: object, wanted: ValueType, numbers: NumberRules) -> Value:
    if value is None:
        if wanted.nullable:
            return None
        raise ValueError(f"is null, but {wanted} cannot be null")
    if wanted.dimension is not None:
        return _vector(value, wanted.dimension)
    if wanted.is_list:
        items = []
        for index, item in enumerate(_sequence(value, wanted)):
            if item is None:
                raise ValueError(f"has null as item {index + 1}, and list items cannot be null")
            try:
                items.append(_scalar(item, wanted.scalar, numbers))
            except ValueError as error:
                raise ValueError(f"item {index + 1} {error}") from None
        return tuple(items)
    return _scalar(value, wanted.scalar, numbers)


def _sequence(value: object, wanted: ValueType) -> Sequence[object]:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return value
    raise ValueError(f"is {_described(value)}, not an array for {wanted.required()}")


def _vector(value: object, dimension: int) -> tuple[Value, ...]:
    items = _sequence(value, ValueType(Scalar.F32, dimension=dimension))
    if len(items) != dimension:
        raise ValueError(f"has {len(items)} numbers, and Vector({dimension}) needs {dimension}")
    floats = [item for item in items if type(item) is float and -F32_MAX < item < F32_MAX]
    if len(floats) == dimension:
        return tuple(floats)
    out = []
    for index, item in enumerate(items):
        try:
            out.append(_float(item, Scalar.F32))
        except ValueError as error:
            raise ValueError(f"component {index + 1} {error}") from None
    return tuple(out)


def _scalar(value: object, scalar: Scalar, numbers: NumberRules) -> Value:
    if scalar in INTEGERS:
        return _integer(value, scalar, numbers)
    if scalar in FLOATS:
        return _float(value, scalar)
    if scalar is Scalar.BOOL and isinstance(value, bool):
        return value
    if scalar in (Scalar.STRING, Scalar.BLOB) and isinstance(value, str):
        return _text(value)
    if scalar is Scalar.BLOB and isinstance(value, bytes):
        return value
    if scalar is Scalar.DATE:
        return _date(value)
    if scalar is Scalar.DATETIME:
        return _datetime(value)
    raise ValueError(f"is {_described(value)}, not {scalar}")


def _text(value: str) -> str:
    """A text that can be stored; JSON can spell halves of characters, UTF-8 cannot."""
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"has half a character, U+{ord(value[error.start]):04X}") from None
    return value


def _integer(value: object, scalar: Scalar, numbers: NumberRules) -> int:
    if isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            raise ValueError(f"is {_described(value)}, not {scalar}")
        number = int(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
        if abs(number) > numbers.largest_integer:
            raise ValueError(f"is an integer beyond ±{numbers.largest_integer}; pass it as a string")
    elif isinstance(value, float) and numbers.whole_floats and value.is_integer():
        number = int(value)
        if abs(number) > numbers.largest_integer:
            raise ValueError(f"is an integer beyond ±{numbers.largest_integer}; pass it as a string")
    else:
        raise ValueError(f"is {_described(value)}, not {scalar}")
    if not in_range(number, scalar) or number > _I64_MAX:
        raise ValueError(f"exceeds {scalar}: {number}")
    return number


def _float(value: object, scalar: Scalar) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"is {_described(value)}, not {scalar}")
    number = fitting_float(value, scalar)
    if number is None and fitting_float(value, Scalar.F64) is None:
        raise ValueError(f"is not a finite {scalar}")
    if number is None:
        raise ValueError(f"exceeds {scalar}: {float(value)}")
    return number


def _date(value: object) -> dt.date:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value
    if not isinstance(value, str):
        raise ValueError(f"is {_described(value)}, not Date")
    try:
        return parse_date(value)
    except ValueError as error:
        raise ValueError(f"is no Date: {error}") from None


def _datetime(value: object) -> dt.datetime:
    if not isinstance(value, str | dt.datetime):
        raise ValueError(f"is {_described(value)}, not DateTime")
    try:
        return parse_datetime(value) if isinstance(value, str) else instant_of(value)
    except ValueError as error:
        raise ValueError(f"is no DateTime: {error}") from None


def _described(value: object) -> str:
    """A JSON value as a person would name it."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'the string "{value[:40]}"'
        case int() if abs(value) >= 10**40:
            return "a number of more than 40 digits"
        case int() | float():
            return f"the number {value!r}"
        case list() | tuple():
            return "an array"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
