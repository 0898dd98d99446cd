"""Comparisons as filters of Lance write them, with the meaning that queries give them."""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir

_ANY: Final = "is not null"
_I64_MIN: Final = -(2**63)


def compared(kind: pa.DataType, op: ir.Op, value: Value) -> str | None:
    """What stands behind the column's name; None if nothing can match."""
    if pa.types.is_list(kind):
        return None
    if isinstance(value, int | float) and pa.types.is_integer(kind):
        return _against_integer(kind, op, value)
    if isinstance(value, int | float) and pa.types.is_floating(kind):
        if isinstance(value, int) and pa.types.is_float64(kind) and int(float(value)) != value:
            return _between_floats(op, value)
        return _against_float(kind, op, float(value))
    return f"{op.value} {sql_literal(pa.scalar(value, kind))}"


def _against_integer(kind: pa.DataType, op: ir.Op, value: float) -> str | None:
    """An integer column against any number, exactly."""
    whole = math.floor(value)
    if whole != value:
        if op in (ir.Op.EQ, ir.Op.NE):
            return None if op is ir.Op.EQ else _ANY
        op = ir.Op.GT if op in (ir.Op.GT, ir.Op.GE) else ir.Op.LE
    unsigned = pa.types.is_unsigned_integer(kind)
    low = 0 if unsigned else -(1 << (kind.bit_width - 1))
    high = (1 << (kind.bit_width if unsigned else kind.bit_width - 1)) - 1
    if low <= whole <= high:
        return f"{op.value} {sql_literal(pa.scalar(whole, kind))}"
    return _beyond(op, above=whole > high)


def _against_float(kind: pa.DataType, op: ir.Op, value: float) -> str | None:
    """A float column against a number, rounded as the column stores numbers.

    Lance puts -0.0 before 0.0. For queries they are the same number.
    """
    rounded = pa.scalar(value, kind)
    if math.isinf(rounded.as_py()):
        return _beyond(op, above=value > 0)
    if rounded.as_py() != 0:
        return f"{op.value} {sql_literal(rounded)}"
    below, above = (sql_literal(pa.scalar(zero, kind)) for zero in (-0.0, 0.0))
    match op:
        case ir.Op.EQ:
            return f"between {below} and {above}"
        case ir.Op.NE:
            return f"not between {below} and {above}"
        case ir.Op.LT | ir.Op.GE:
            return f"{op.value} {below}"
        case _:
            return f"{op.value} {above}"


def _between_floats(op: ir.Op, value: int) -> str | None:
    """A column of 64-bit floats against an integer that lies between two of them."""
    near = float(value)
    if op in (ir.Op.EQ, ir.Op.NE):
        return None if op is ir.Op.EQ else _ANY
    below, above = (ir.Op.LT, ir.Op.GE) if near > value else (ir.Op.LE, ir.Op.GT)
    op = below if op in (ir.Op.LT, ir.Op.LE) else above
    return f"{op.value} {sql_literal(pa.scalar(near, pa.float64()))}"


def _beyond(op: ir.Op, *, above: bool) -> str | None:
    """A column against a number that is larger, or smaller, than anything it can hold."""
    holds = {ir.Op.NE, *((ir.Op.LT, ir.Op.LE) if above else (ir.Op.GT, ir.Op.GE))}
    return _ANY if op in holds else None


def sql_literal(value: pa.Scalar) -> str:
    """A value as filters of Lance write it."""
    kind = value.type
    if pa.types.is_string(kind):
        text: str = value.as_py()
        return "'" + text.replace("'", "''") + "'"
    if pa.types.is_boolean(kind):
        return "true" if value.as_py() else "false"
    if pa.types.is_date32(kind):
        return f"date '{value.as_py().isoformat()}'"
    if pa.types.is_timestamp(kind):
        return f"arrow_cast({value.value}, 'Timestamp(Millisecond, Some(\"UTC\"))')"
    if pa.types.is_float32(kind):
        return f"arrow_cast({value.as_py()!r}, 'Float32')"
    if pa.types.is_floating(kind):
        return f"arrow_cast({value.as_py()!r}, 'Float64')"
    if pa.types.is_int64(kind) and value.as_py() == _I64_MIN:
        return f"arrow_cast('{_I64_MIN}', 'Int64')"  # as a number it would be minus a number that is too large
    return str(value.as_py())
