"""Values of the reference interpreter: comparing, testing and ordering them, one at a time."""

from __future__ import annotations

import math
import statistics
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from omnigraph.lang.query.ir import Op
from omnigraph.lang.values import Scalar, ValueType


class Refused(Exception):
    """A parameter has a value that no query can use, such as a negative limit."""


@dataclass(frozen=True)
class Entity:
    """A node or an edge. ``values`` has the id too, and of an edge its ends."""

    type_name: str
    id: str
    values: Mapping[str, Any]
    types: Mapping[str, ValueType]


@dataclass(frozen=True)
class Operand:
    """A value in a condition: ``constant`` if the same for all rows, ``narrow`` if it is from an F32 column."""

    value: Any
    constant: bool = False
    narrow: bool = False


def property_of(entity: Entity | None, name: str) -> Operand:
    """A property as an operand; an entity that is missing has none."""
    if entity is None:
        return Operand(None)
    declared = entity.types.get(name)
    return Operand(entity.values[name], narrow=declared is not None and declared.scalar is Scalar.F32)


def round_f32(value: Any) -> Any:
    """A number, or each number of a list, as 32 bits can hold it."""
    if isinstance(value, list | tuple):
        return [round_f32(item) for item in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def holds(left: Operand, op: Op, right: Operand | None) -> bool:
    """Is the condition certainly true? Neither false nor unknown is."""
    if op is Op.IS_NULL:
        return left.value is None
    if op is Op.IS_NOT_NULL:
        return left.value is not None
    assert right is not None
    one, other = left.value, right.value
    if one is None or other is None:
        return False
    if left.narrow and right.constant:
        other = round_f32(other)
    if right.narrow and left.constant:
        one = round_f32(one)
    match op:
        case Op.EQ:
            return same(one, other)
        case Op.NE:
            return not same(one, other)
        case Op.LT:
            return bool(one < other)
        case Op.LE:
            return bool(one <= other)
        case Op.GT:
            return bool(one > other)
        case Op.GE:
            return bool(one >= other)
        case Op.CONTAINS:
            return any(item is not None and same(item, other) for item in one)
        case Op.STRING_CONTAINS:
            return bool(other.encode() in one.encode())
        case Op.STARTS_WITH:
            return bool(one.encode().startswith(other.encode()))
        case _:
            raise AssertionError(op)


def same(one: Any, other: Any) -> bool:
    """Are two values equal? Python compares whole numbers and floats without rounding either."""
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def frozen(value: Any) -> Any:
    """A value that can be the key of a group."""
    return tuple(value) if isinstance(value, list) else value


def _quantile(ranked: Sequence[float], share: float) -> float:
    place = share * (len(ranked) - 1)
    below, above = ranked[math.floor(place)], ranked[math.ceil(place)]
    part = place - math.floor(place)
    between = above - below
    return below + between * part if math.isfinite(between) else below * (1 - part) + above * part


def sorted_by(rows: Sequence[Any], keys: Sequence[Sequence[Any]], descending: Sequence[bool]) -> list[Any]:
    """Rows by several keys, each a value per row: null is below everything, equal rows keep their order."""
    positions = list(range(len(rows)))
    for key, down in reversed(list(zip(keys, descending, strict=True))):
        positions.sort(key=lambda i, key=key: _rank(key[i]), reverse=down)  # type: ignore[misc]
    return [rows[i] for i in positions]


def _rank(value: Any) -> tuple[Any, ...]:
    return (0,) if value is None else (1, frozen(value))


def aggregate(function: str, values: Sequence[Any], distinct: bool, fraction: float | None = None) -> Any:
    """An aggregate over the values of a group, nulls left out."""
    present = [value for value in values if value is not None]
    if function == "collect":
        return sorted(set(present) if distinct else present)
    if function == "count":
        return len({frozen(value) for value in present}) if distinct else len(present)
    if not present:
        return None
    if function == "min":
        return min(present)
    if function == "max":
        return max(present)
    if function == "stddev":
        return statistics.stdev(map(float, present)) if len(present) > 1 else None
    if function in ("median", "percentile"):
        return _quantile(sorted(map(float, present)), 0.5 if fraction is None else fraction)
    total = sum(map(Fraction, present), Fraction())
    if function == "avg":
        return float(total / len(present))
    return int(total) if all(isinstance(value, int) for value in present) else _float(total)


def _float(total: Fraction) -> float:
    """A sum as a float; infinite if floats do not reach that far."""
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf
