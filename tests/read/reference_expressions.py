"""Computed values in the reference interpreter: one row at a time, nothing computed that is not needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.read.functions.rows import KNOWN, Uncomputable
from tests.read.reference_values import Operand, holds, round_f32

from omnigraph.lang.query import ir
from omnigraph.lang.values import FLOATS, INTEGER_BOUNDS, NUMERIC, Scalar, ValueType
from omnigraph.read.pattern.pattern import mentioned

Evaluate = Callable[[ir.Expr], Operand]


def computed(expression: ir.Call | ir.Filter, evaluate: Evaluate) -> Operand:
    """The value of a call or of a comparison."""
    constant = not any(mentioned(expression))
    if isinstance(expression, ir.Filter):
        return Operand(_comparison(expression, evaluate), constant)
    value = _typed(_call(expression, evaluate), expression.type)
    return Operand(value, constant, narrow=expression.type.is_plain and expression.type.scalar is Scalar.F32)


def _comparison(condition: ir.Filter, evaluate: Evaluate) -> bool | None:
    left = evaluate(condition.left)
    right = None if condition.right is None else evaluate(condition.right)
    if right is not None and (left.value is None or right.value is None):
        return None
    return holds(left, condition.op, right)


def _typed(value: Any, kind: ValueType) -> Any:
    """A number as its type has it."""
    if value is None or isinstance(value, bool) or not kind.is_plain or kind.scalar not in NUMERIC:
        return value
    if kind.scalar is Scalar.F32:
        return round_f32(float(value))
    if kind.scalar in FLOATS:
        return float(value)
    low, high = INTEGER_BOUNDS[kind.scalar]
    if not low <= value <= high:
        raise Uncomputable
    return value


def _call(call: ir.Call, evaluate: Evaluate) -> Any:
    operands = call.operands
    match call.function:
        case "and":
            return _connected(operands, evaluate, decisive=False)
        case "or":
            return _connected(operands, evaluate, decisive=True)
        case "not":
            inner = evaluate(operands[0]).value
            return None if inner is None else not inner
        case "case":
            for index in range(len(operands) // 2):
                if evaluate(operands[2 * index]).value is True:
                    return evaluate(operands[2 * index + 1]).value
            return evaluate(operands[-1]).value if len(operands) % 2 else None
        case "coalesce":
            return next((v for v in (evaluate(one).value for one in operands) if v is not None), None)
        case "nullif":
            first = evaluate(operands[0])
            equal = _comparison(ir.Filter(operands[0], ir.Op.EQ, operands[1]), evaluate)
            return None if equal else first.value
    values = [evaluate(one).value for one in operands]
    return None if None in values else KNOWN[call.function].python(*values)


def _connected(operands: Sequence[ir.Expr], evaluate: Evaluate, *, decisive: bool) -> bool | None:
    """`and` and `or`: the first operand that decides; unknown if none does and one is unknown."""
    unknown = False
    for operand in operands:
        value = evaluate(operand).value
        if value is decisive:
            return bool(value)
        unknown |= value is None
    return None if unknown else not decisive
