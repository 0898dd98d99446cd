"""Computed values: function calls, arithmetic, `case`, and conditions that are true, false or unknown.

What `case`, `coalesce`, `and` and `or` leave out is not computed for a row, so that it cannot fail there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ComputationFailed, DivisionByZero, NumberOverflow
from omnigraph.formats.columns import column
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.query.functions.signature import CONSTANTS, Function, Kind
from omnigraph.lang.query.functions.table import ROWS, may_fail
from omnigraph.lang.values import Scalar, ValueType
from omnigraph.read.run.frame import Frame
from omnigraph.read.values import integers, kernels
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Bools, Column
from omnigraph.read.values.comparing import Operand, Series, compare, is_present
from omnigraph.read.values.encoded import once_each
from omnigraph.records import dataclass

_NUMBERS: Final = (Kind.NUMBER, Kind.INTEGER)


class Evaluator(Protocol):
    """Gives the value of an operand for the rows of a frame."""

    query: str

    def operand(self, expression: ir.Expr, frame: Frame) -> Operand: ...


@dataclass(frozen=True, slots=True)
class Truth:
    """For which rows a condition is true, and for which it is unknown; None if it is for none."""

    true: Bools
    unknown: Bools | None = None

    @property
    def false(self) -> Bools:
        return ~self.true if self.unknown is None else ~(self.true | self.unknown)

    def column(self) -> Column:
        """The truth values as a column."""
        return Column(to_arrow(self.true, self.unknown))


def truth(expression: ir.Expr, frame: Frame, evaluator: Evaluator) -> Truth:
    """For which rows a condition holds."""
    match expression:
        case ir.Filter(ir.Call() | ir.Filter() as inner, ir.Op.EQ, right) if right == ir.TRUE:
            return truth(inner, frame, evaluator)
        case ir.Filter(left, op, right):
            return _compared(left, op, right, frame, evaluator)
        case ir.Call("not", (operand,)):
            inner_truth = truth(operand, frame, evaluator)
            return Truth(inner_truth.false, inner_truth.unknown)
        case ir.Call("and" | "or" as connective, operands):
            return _connected(connective, operands, frame, evaluator)
        case _:
            operand_value = evaluator.operand(expression, frame)
            if isinstance(operand_value, Series):
                values, valid = operand_value.values.astype(np.bool_), operand_value.valid
                return Truth(values) if valid is None else Truth(values & valid, ~valid)
            unknown = np.ones(frame.count, dtype=np.bool_) if operand_value is None else None
            return Truth(np.full(frame.count, operand_value is True), unknown)


def _compared(left: ir.Expr, op: ir.Op, right: ir.Expr | None, frame: Frame, evaluator: Evaluator) -> Truth:
    one = evaluator.operand(left, frame)
    other = None if right is None else evaluator.operand(right, frame)
    held = compare(op, one, other, frame.count)
    if op in (ir.Op.IS_NULL, ir.Op.IS_NOT_NULL):
        return Truth(held)
    unknown: Bools | None = None
    for side in (one, other):
        if isinstance(side, Series) and side.valid is None:
            continue
        if not isinstance(side, Series) and side is not None:
            continue
        missing = ~is_present(side, frame.count)
        unknown = missing if unknown is None else unknown | missing
    return Truth(held, unknown)


def _connected(connective: str, operands: Sequence[ir.Expr], frame: Frame, evaluator: Evaluator) -> Truth:
    """`and` is false as soon as an operand is, `or` true: what stands behind is not computed for that row."""
    so_far = truth(operands[0], frame, evaluator)
    for operand in operands[1:]:
        open_ = ~so_far.false if connective == "and" else ~so_far.true
        if may_fail(operand) and not open_.all():
            rows = np.flatnonzero(open_)
            found = truth(operand, frame.take(rows), evaluator)
            other = Truth(_spread(found.true, rows, frame.count), _spread_some(found.unknown, rows, frame.count))
            if connective == "and":
                so_far = _both(so_far, other, open_)
                continue
        else:
            other = truth(operand, frame, evaluator)
        so_far = _both(so_far, other) if connective == "and" else _either(so_far, other)
    return so_far


def _both(one: Truth, other: Truth, computed: Bools | None = None) -> Truth:
    """Rows that were not computed are false already."""
    true = one.true & other.true
    if one.unknown is None and other.unknown is None:
        return Truth(true)
    false = one.false | (other.false if computed is None else other.false & computed)
    return Truth(true, ~(true | false))


def _either(one: Truth, other: Truth) -> Truth:
    true = one.true | other.true
    if one.unknown is None and other.unknown is None:
        return Truth(true)
    return Truth(true, ~(true | (one.false & other.false)))


def _spread(values: Bools, rows: Any, count: int) -> Bools:
    spread = np.zeros(count, dtype=np.bool_)
    spread[rows] = values
    return spread


def _spread_some(values: Bools | None, rows: Any, count: int) -> Bools | None:
    return None if values is None else _spread(values, rows, count)


def computed(call: ir.Call, frame: Frame, evaluator: Evaluator) -> Operand:
    """The value of a call for each row, or one value for all."""
    match call.function:
        case "and" | "or" | "not":
            return Series(truth(call, frame, evaluator).column())
        case "case":
            return _chosen(call, list(_branches(call.operands)), frame, evaluator)
        case "coalesce":
            choices: list[tuple[ir.Expr | None, ir.Expr]] = [
                (ir.Filter(one, ir.Op.IS_NOT_NULL), one) for one in call.operands[:-1]
            ]
            return _chosen(call, [*choices, (None, call.operands[-1])], frame, evaluator)
        case "nullif":
            first, second = call.operands
            equal = truth(ir.Filter(first, ir.Op.EQ, second), frame, evaluator).true
            values = _array(evaluator.operand(first, frame), call, frame.count, evaluator)
            return Series(Column(pc.if_else(to_arrow(equal), pa.scalar(None, values.type), values)))
        case _ if (term := _bounded(call, frame, evaluator)) is not None:
            return Series(integers.computed(term))
        case _:
            return _applied(ROWS[call.function], call, frame, evaluator)


def _branches(operands: Sequence[ir.Expr]) -> Iterator[tuple[ir.Expr | None, ir.Expr]]:
    pairs = len(operands) // 2
    for index in range(pairs):
        yield operands[2 * index], operands[2 * index + 1]
    if len(operands) % 2:
        yield None, operands[-1]


def _chosen(
    call: ir.Call, choices: Sequence[tuple[ir.Expr | None, ir.Expr]], frame: Frame, evaluator: Evaluator
) -> Series:
    """For each row the value of the first choice whose condition holds; a choice without one always does."""
    rows = np.arange(frame.count)
    pieces: list[pa.Array] = []
    order: list[Any] = []
    for condition, value in choices:
        some = frame if len(rows) == frame.count else frame.take(rows)
        held = np.ones(len(rows), dtype=np.bool_) if condition is None else truth(condition, some, evaluator).true
        taken = some.keep(held) if not held.all() else some
        if taken.count:
            pieces.append(_array(evaluator.operand(value, taken), call, taken.count, evaluator))
            order.append(rows[held])
        rows = rows[~held]
        if not len(rows):
            break
    kind = column("", call.type).type
    if len(rows):
        pieces.append(pa.nulls(len(rows), kind))
        order.append(rows)
    if not pieces:
        return Series(Column(pa.array([], kind)))
    if len(pieces) == 1:
        return Series(Column(pieces[0]))
    places = np.empty(frame.count, dtype=np.int64)
    places[np.concatenate(order)] = np.arange(frame.count)
    return Series(Column(pa.concat_arrays(pieces).take(to_arrow(places))))


def _array(operand: Operand, call: ir.Call, count: int, evaluator: Evaluator) -> pa.Array:
    """An operand as a column of the type that a call gives."""
    wanted = column("", call.type).type
    if isinstance(operand, Series):
        values = operand.arrow
        try:
            return values if values.type == wanted else values.cast(wanted, safe=pa.types.is_integer(wanted))
        except pa.ArrowInvalid:
            reason = "a value has no room in 64 bits"
            raise NumberOverflow(evaluator.query, show(call), reason) from None
    return pa.repeat(pa.scalar(list(operand) if isinstance(operand, tuple) else operand, wanted), count)


def _bounded(call: ir.Call, frame: Frame, evaluator: Evaluator) -> integers.Operation | None:
    """Arithmetic between integer columns and constants, if none of its results can leave 64 bits."""
    if call.function not in integers.OPERATORS or call.type.scalar is not Scalar.I64 or not frame.count:
        return None
    term = _term(call, frame, evaluator)
    return term if isinstance(term, integers.Operation) and integers.bounds(term) is not None else None


def _term(expression: ir.Expr, frame: Frame, evaluator: Evaluator) -> integers.Term | None:
    """An expression as a term of bounded arithmetic; None if it is something else, or the same for all rows."""
    match expression:
        case ir.Call(function, (one, other), kind) if function in integers.OPERATORS and kind.scalar is Scalar.I64:
            left, right = _term(one, frame, evaluator), _term(other, frame, evaluator)
            if left is None or right is None or (isinstance(left, int) and isinstance(right, int)):
                return None
            return integers.Operation(function, left, right)
        case ir.Prop():
            found = evaluator.operand(expression, frame)
            is_integers = isinstance(found, Series) and pa.types.is_integer(found.column.kind)
            return found if isinstance(found, Series) and is_integers else None
        case ir.Constant() | ir.Param():
            value = evaluator.operand(expression, frame)
            return value if isinstance(value, int) and not isinstance(value, bool) else None
        case _:
            return None


def _applied(function: Function, call: ir.Call, frame: Frame, evaluator: Evaluator) -> Operand:
    """A row of the function table, applied to its operands."""
    operands = [evaluator.operand(one, frame) for one in call.operands]
    if any(one is None for one in operands):
        return None
    series = [one for one in operands if isinstance(one, Series)]
    if len(series) == 1 and not function.fails:
        each = once_each(series[0], lambda values: _of_each(function, call, operands, Series(values), evaluator))
        if each is not None:
            return Series(each)
    return _result(function, call, operands, evaluator)


def _of_each(
    function: Function, call: ir.Call, operands: Sequence[Operand], values: Series, evaluator: Evaluator
) -> Column:
    """A function of other values than those of the one operand that differs by row."""
    given = [values if isinstance(one, Series) else one for one in operands]
    found = _result(function, call, given, evaluator)
    assert isinstance(found, Series)  # noqa: S101  an operand differs by row
    return found.column


def _result(function: Function, call: ir.Call, operands: Sequence[Operand], evaluator: Evaluator) -> Operand:
    """A row of the function table, applied to operands that are not null."""
    assert function.compute is not None  # noqa: S101
    try:
        given = list(_given(function, operands))
        found = function.compute(kernels, *given)
        if function.fails and kernels.is_float(found):
            found = kernels.finite(found)
    except ZeroDivisionError:
        raise DivisionByZero(evaluator.query, show(call), "a number is divided by zero") from None
    except OverflowError as error:
        raise NumberOverflow(evaluator.query, show(call), str(error)) from None
    except (pa.ArrowInvalid, ValueError) as error:
        raise _failure(evaluator.query, call, str(error)) from None
    if isinstance(found, pa.Array) and any(isinstance(one, pa.Array) for one in given):
        wanted = column("", call.type).type
        keeps = found.type == wanted or (pa.types.is_large_string(found.type) and pa.types.is_string(wanted))
        return Series(Column(found if keeps else found.cast(wanted)))
    return _value(found[0] if isinstance(found, pa.Array) else found, call.type)


def _given(function: Function, operands: Sequence[Operand]) -> Iterator[Any]:
    """Operands as kernels take them: numbers as integers of 64 bits, or all as floats if one of them is."""
    kinds = [function.parameter(index).kind for index in range(len(operands))]
    values = [
        operand if kind in CONSTANTS else operand.arrow if isinstance(operand, Series) else _scalar(operand)
        for kind, operand in zip(kinds, operands, strict=True)
    ]
    floats = any(kernels.is_float(one) for one, kind in zip(values, kinds, strict=True) if kind is Kind.NUMBER)
    for one, kind in zip(values, kinds, strict=True):
        if kind is Kind.NUMBER and floats:
            yield kernels.to_float(one)
        else:
            yield kernels.to_integer(one) if kind in _NUMBERS else one


def _scalar(value: Value) -> pa.Scalar:
    if isinstance(value, tuple):
        return pa.scalar(list(value)) if value else pa.scalar([], pa.list_(pa.string()))
    found = pa.scalar(value)
    return found.cast(kernels.INSTANT) if pa.types.is_timestamp(found.type) else found


def _value(found: pa.Scalar, kind: ValueType) -> Value:
    """A computed value that is the same for all rows."""
    value = found.as_py()
    if isinstance(value, list):
        return tuple(value)
    if kind.scalar is Scalar.F64 and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    answer: Value = value
    return answer


def _failure(query: str, call: ir.Call, reason: str) -> ComputationFailed:
    """The error of a kernel, by its name."""
    if "divide by zero" in reason:
        return DivisionByZero(query, show(call), "a number is divided by zero")
    if "overflow" in reason:
        return NumberOverflow(query, show(call), "the result has no room in 64 bits")
    return ComputationFailed(query, show(call), reason)
