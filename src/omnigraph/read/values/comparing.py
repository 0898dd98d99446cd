"""Comparisons, exactly as the language defines them: a null is never a match, and numbers compare as numbers.

One side is a series (a column at some positions), the other a constant or another series.
"""

from __future__ import annotations

import datetime as dt
import math
import operator
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.parameters import Value
from omnigraph.lang.query.ir import Op
from omnigraph.read.values.columns import Array, Bools, Column, Positions, bounds_of
from omnigraph.read.values.textual import text_against_constant, text_between
from omnigraph.records import dataclass

_EPOCH: Final = dt.date(1970, 1, 1)
_INSTANT: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND: Final = dt.timedelta(milliseconds=1)
ORDERED: Final[dict[Op, Callable[[Any, Any], Any]]] = {
    Op.EQ: operator.eq,
    Op.NE: operator.ne,
    Op.LT: operator.lt,
    Op.LE: operator.le,
    Op.GT: operator.gt,
    Op.GE: operator.ge,
}
_SHARE: Final = 8
"""A column is read whole for the sake of a series that has at least one of so many of its rows."""
_FLIPPED: Final = {Op.LT: Op.GT, Op.LE: Op.GE, Op.GT: Op.LT, Op.GE: Op.LE, Op.EQ: Op.EQ, Op.NE: Op.NE}


@dataclass(frozen=True, slots=True)
class Series:
    """A column at some positions; None stands for all of them, a negative position for null."""

    column: Column
    positions: Array | None = None

    def __len__(self) -> int:
        return len(self.column) if self.positions is None else len(self.positions)

    @property
    def arrow(self) -> pa.Array:
        return self.column.arrow if self.positions is None else self.column.take(self.positions)

    @property
    def values(self) -> Array:
        """The numbers; anything where there is none."""
        if self.positions is None:
            return self.column.values
        if not len(self.column):
            return np.zeros(len(self.positions), dtype=self.column.values.dtype)
        return self.column.values[self.positions]

    @property
    def valid(self) -> Bools | None:
        """Where there is a value; None if everywhere."""
        valid = self.column.valid
        if self.positions is None:
            return valid
        present = None
        if len(self.positions) and int(self.positions.min()) < 0:
            present = self.positions >= 0
        if valid is None:
            return present
        here = valid[self.positions] if len(valid) else np.zeros(len(self.positions), dtype=np.bool_)
        return here if present is None else here & present

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The bounds of the column's integers; None if they are unknown and these rows too few to find out."""
        if "bounds" not in vars(self.column) and len(self) * _SHARE < len(self.column):
            return None
        return self.column.bounds


Operand = Series | Value


def compare(op: Op, left: Operand, right: Operand, count: int) -> Bools:
    """For each of the rows: does the comparison hold?"""
    if op in (Op.IS_NULL, Op.IS_NOT_NULL):
        present = is_present(left, count)
        return ~present if op is Op.IS_NULL else present
    if left is None or right is None:
        return np.zeros(count, dtype=np.bool_)
    if op is Op.CONTAINS:
        return _has_member(left, right, count)
    if not isinstance(left, Series):
        if not isinstance(right, Series):
            return np.full(count, _between_constants(op, left, right))
        if op in _FLIPPED:
            left, right, op = right, left, _FLIPPED[op]
        else:
            return text_between(op, left, right.column, right.positions, count)
    if isinstance(right, Series):
        if left.column.is_text:
            return _both_present(left, right, text_between(op, left.arrow, right.arrow, None, count))
        return _both_present(left, right, _between_numbers(op, left.values, right.values))
    if left.column.is_text:
        return text_against_constant(op, left.column, left.positions, str(right))
    if isinstance(right, tuple):
        return _is_vector(left, right)
    if op is Op.EQ and left.positions is None and (places := places_of(left.column, right)) is not None:
        held = np.zeros(count, dtype=np.bool_)
        held[places] = True
        return held
    held = _against_number(op, left.values, plain(right))
    valid = left.valid
    return held if valid is None else held & valid


def places_of(column: Column, value: Value) -> Positions | None:
    """The positions at which a column has a value, if it can be found without a pass over the column."""
    if column.is_text:
        return column.places_of(str(value))
    number = plain(value)
    if not column.is_whole_number or not isinstance(number, int) or isinstance(number, bool):
        return None
    return column.places_of(number)


def _is_vector(left: Series, right: tuple[Value, ...]) -> Bools:
    """Which vectors are exactly this one, as 32 bits store it."""
    from omnigraph.read.values.vectors import VectorBlock

    vectors = VectorBlock(left.arrow)
    held = np.asarray((vectors.matrix == np.asarray(right, dtype=np.float32)).all(axis=1))
    return held if vectors.valid is None else held & vectors.valid


def plain(value: Value) -> Any:
    """A date as days, an instant as milliseconds, and everything else as it is."""
    if isinstance(value, dt.datetime):
        return (value - _INSTANT) // _MILLISECOND
    if isinstance(value, dt.date):
        return (value - _EPOCH).days
    return value


def is_present(operand: Operand, count: int) -> Bools:
    """In which rows an operand has a value."""
    if not isinstance(operand, Series):
        return np.full(count, operand is not None)
    valid = operand.valid
    return np.ones(count, dtype=np.bool_) if valid is None else valid


def _both_present(left: Series, right: Series, held: Bools) -> Bools:
    for valid in (left.valid, right.valid):
        if valid is not None:
            held = held & valid
    return held


def _between_constants(op: Op, left: Any, right: Any) -> bool:
    if op is Op.STARTS_WITH:
        return str(left).startswith(str(right))
    if op is Op.STRING_CONTAINS:
        return str(right) in str(left)
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return bool(ORDERED[op](left, right))


def _against_number(op: Op, values: Array, value: Any) -> Bools:
    """A column of numbers against one number, as exactly as the column stores numbers."""
    if values.dtype == np.bool_:
        return np.asarray(ORDERED[op](values.view(np.uint8), np.uint8(bool(value))))
    if values.dtype == np.float32:
        with np.errstate(over="ignore"):
            return np.asarray(ORDERED[op](values, np.float32(value)))
    if values.dtype == np.float64:
        return _against_wide_float(op, values, value)
    whole = math.floor(value)
    if whole != value:
        if op in (Op.EQ, Op.NE):
            return np.full(len(values), op is Op.NE)
        op = Op.GT if op in (Op.GT, Op.GE) else Op.LE
    least, most = bounds_of(values.dtype)
    if whole < least or whole > most:
        beyond = (Op.NE, Op.LT, Op.LE) if whole > most else (Op.NE, Op.GT, Op.GE)
        return np.full(len(values), op in beyond)
    return np.asarray(ORDERED[op](values, values.dtype.type(whole)))


def _against_wide_float(op: Op, values: Array, value: Any) -> Bools:
    """64-bit floats against a number that may lie between two of them."""
    near = np.float64(value)
    if isinstance(value, int) and int(near) != value:
        if op in (Op.EQ, Op.NE):
            return np.full(len(values), op is Op.NE)
        if near > value:
            op = Op.LT if op in (Op.LT, Op.LE) else Op.GE
        else:
            op = Op.LE if op in (Op.LT, Op.LE) else Op.GT
    return np.asarray(ORDERED[op](values, near))


def _between_numbers(op: Op, left: Array, right: Array) -> Bools:
    """Two columns of numbers, without rounding either."""
    wide = [side.dtype.kind in "iu" and side.dtype.itemsize == 8 for side in (left, right)]
    floats = [side.dtype.kind == "f" for side in (left, right)]
    if wide[0] and floats[1]:
        return np.asarray(ORDERED[op](_sign(left, right.astype(np.float64)), 0))
    if wide[1] and floats[0]:
        return np.asarray(ORDERED[op](-_sign(right, left.astype(np.float64)), 0))
    if left.dtype == np.bool_:
        left, right = left.view(np.uint8), right.view(np.uint8)
    if floats[0] != floats[1]:
        left, right = left.astype(np.float64), right.astype(np.float64)
    return np.asarray(ORDERED[op](left, right))


def _sign(integers: Array, floats: Array) -> Array:
    """Whether 64-bit integers are below, at or above floats."""
    bounds = np.iinfo(integers.dtype)
    floor = np.floor(floats)
    below, above = floor < float(bounds.min), floor >= float(bounds.max)
    whole = np.where(below | above, 0, floor).astype(integers.dtype)
    sign = (integers > whole).astype(np.int8) - (integers < whole).astype(np.int8)
    sign = np.where((sign == 0) & (floats > floor), -1, sign)
    return np.where(above, -1, np.where(below, 1, sign))


def _has_member(left: Operand, right: Operand, count: int) -> Bools:
    """Is the right side one of the left side's items?"""
    if isinstance(left, Series):
        return _list_has(left, right)
    members = left if isinstance(left, tuple) else (left,)
    if not isinstance(right, Series):
        return np.full(count, right in members)
    if right.column.is_text:
        found = pc.is_in(right.arrow, value_set=pa.array([str(m) for m in members], right.column.arrow.type))
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_) & is_present(right, count)
    held = np.zeros(count, dtype=np.bool_)
    values, valid = right.values, right.valid
    for member in members:
        held |= _against_number(Op.EQ, values, plain(member))
    return held if valid is None else held & valid


def _list_has(lists: Series, wanted: Operand) -> Bools:
    """Which of the lists hold the value; no list, or a null item, holds nothing."""
    held = np.zeros(len(lists), dtype=np.bool_)
    arrow = lists.arrow
    items = Column(pc.list_flatten(arrow))
    owners = np.asarray(pc.list_parent_indices(arrow).to_numpy(), dtype=np.int64)
    if isinstance(wanted, Series):
        inner = compare(Op.EQ, Series(items), Series(Column(wanted.arrow), owners), len(owners))
    else:
        inner = compare(Op.EQ, Series(items), wanted, len(owners))
    held[owners[inner]] = True
    return held
