"""Comparing two columns in Spark as the language compares: numbers as numbers, whatever their types, and exactly.

Spark by itself would round: an integer against a float becomes a float, a 64-bit one loses digits.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as fn

from omnigraph.lang.query.ir import Op
from omnigraph.lang.values import FLOATS, NUMERIC, Scalar, ValueType
from omnigraph.spark.frames import spark_type

_COMPARED: Final[dict[Op, Callable[[Any, Any], Any]]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
_WIDE: Final = {Scalar.I64: (-float(2**63), float(2**63)), Scalar.U64: (0.0, float(2**64))}
"""The integers that a double cannot hold, with the floats that bound them."""
_HALF: Final = float(2**32)
_BEYOND: Final = str(10**20 - 1)
"""A number of twenty digits that is larger than every integer."""


def compare(op: Op, left: Column, right: Column, kinds: tuple[ValueType, ValueType]) -> Column:
    """The comparison of two values; null where either is missing."""
    one, other = kinds
    match op:
        case Op.CONTAINS:
            return fn.exists(left, lambda item: compare(Op.EQ, item, right, (one.item, other)))
        case Op.STRING_CONTAINS:
            return fn.contains(left, right)
        case Op.STARTS_WITH:
            return fn.startswith(left, right)
    compared: Column = _ordered(op, left, right, one.scalar, other.scalar)
    return compared


def _ordered(op: Op, left: Column, right: Column, one: Scalar, other: Scalar) -> Any:
    compared = _COMPARED[op]
    if one is other or one not in NUMERIC or other not in NUMERIC:
        return compared(left, right)
    if op is Op.EQ and one in _WIDE and other in FLOATS:
        return left.cast("decimal(20,0)") == _whole(right, one)
    if op is Op.EQ and other in _WIDE and one in FLOATS:
        return _whole(left, other) == right.cast("decimal(20,0)")
    if one in _WIDE and other in FLOATS:
        return compared(_sign(left, right, one), fn.lit(0))
    if other in _WIDE and one in FLOATS:
        return compared(fn.lit(0), _sign(right, left, other))
    shared = "double" if FLOATS & {one, other} else "decimal(20,0)" if Scalar.U64 in (one, other) else "bigint"
    return compared(left.cast(shared), right.cast(shared))


def _parts(number: Column, kind: Scalar) -> tuple[Column, Column]:
    """The whole part of floats as exact numbers, and the rest; those beyond the integers of a kind count as 0."""
    low, high = _WIDE[kind]
    wide = number.cast("double")
    within = fn.when((wide >= low) & (wide < high), wide).otherwise(fn.lit(0.0))
    upper = fn.floor(within / _HALF)
    lower = fn.floor(within - upper.cast("double") * _HALF)
    whole = upper.cast("decimal(20,0)") * fn.lit(2**32).cast("decimal(10,0)") + lower.cast("decimal(20,0)")
    return whole.cast("decimal(20,0)"), within - upper.cast("double") * _HALF - lower.cast("double")


def _whole(number: Column, kind: Scalar) -> Column:
    """Floats as exact numbers; for those that are no integers of a kind, one that is none either. It depends on
    one side only, so that Spark joins by it instead of comparing each row with each."""
    low, high = _WIDE[kind]
    wide = number.cast("double")
    whole, rest = _parts(number, kind)
    is_whole = (wide >= low) & (wide < high) & (rest == 0)
    return fn.when(is_whole, whole).when(wide.isNotNull(), fn.lit(_BEYOND).cast("decimal(20,0)"))


def _sign(integer: Column, number: Column, kind: Scalar) -> Column:
    """Whether 64-bit integers are below, at or above floats: -1, 0 or 1."""
    low, high = _WIDE[kind]
    wide = number.cast("double")
    whole, rest = _parts(number, kind)
    exact = integer.cast("decimal(20,0)")
    return (
        fn.when(integer.isNull() | wide.isNull(), fn.lit(None).cast("int"))
        .when(wide < low, 1)
        .when(wide >= high, -1)
        .when(exact > whole, 1)
        .when(exact < whole, -1)
        .when(rest > 0, -1)
        .otherwise(0)
    )


def comparable(value: Column, kind: ValueType) -> Column:
    """A value as groups, distinct rows and sort keys take it: -0.0 is the same number as 0.0."""
    if kind.scalar not in FLOATS:
        return value
    zero = fn.lit(0.0).cast(spark_type(kind.item))
    if kind.is_plain:
        return value + zero
    return fn.transform(value, lambda item: item + zero)
