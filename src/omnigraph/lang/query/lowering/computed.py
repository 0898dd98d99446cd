"""Lowering of computed expressions: conditions, arithmetic, `case` and function calls, with their types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.signature import numeric, unified
from omnigraph.lang.query.functions.table import FUNCTIONS, may_fail
from omnigraph.lang.query.syntax.expressions import (
    Arithmetic,
    Case,
    Comparison,
    ComparisonOperator,
    Computed,
    Connected,
    Duration,
    Expression,
    FunctionCall,
    Minus,
    Not,
    NullTest,
)
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.values import BOOL, DATETIME, F64, I64, STRING, U64, Scalar, ValueType

COMPARISONS: Final[Mapping[str, ir.Op]] = {
    op.value: op for op in (ir.Op.EQ, ir.Op.NE, ir.Op.GT, ir.Op.LT, ir.Op.GE, ir.Op.LE)
}
_TRUTH: Final = BOOL.or_null()


class Typing:
    """The types of lowered expressions, by the variables and parameters of a query."""

    def __init__(self, scope: Scope, params: Mapping[str, ValueType]) -> None:
        self.scope = scope
        self.params = params

    def of(self, expression: ir.Expr) -> ValueType:
        """The type of a lowered expression."""
        match expression:
            case ir.Prop(variable, name):
                return self._property(variable, name)
            case ir.Param(name):
                return DATETIME if name == ir.NOW else self.params[name]
            case ir.Constant(_, kind) | ir.Call(_, _, kind) | ir.Agg(_, _, _, kind):
                return kind
            case ir.Filter() | ir.TextMatch():
                return _TRUTH
            case ir.Score() | ir.Rrf():
                return F64.or_null()
            case _:
                return STRING

    def _property(self, variable: str, name: str) -> ValueType:
        bound = self.scope.find(variable)
        assert bound is not None  # noqa: S101  the checker found it
        assert bound.type is not None  # noqa: S101
        found = bound.type.properties.get(name)
        if found is None:
            return STRING
        return found.type.or_null() if bound.nullable else found.type


def aggregate_type(function: str, found: ValueType) -> ValueType:
    """The type of an aggregate over values of a type."""
    match function:
        case "count":
            return I64
        case "collect":
            return ValueType(found.scalar, is_list=True)
        case "min" | "max":
            return found.or_null()
        case "sum" if found.is_integer:
            return (U64 if found.scalar in (Scalar.U32, Scalar.U64) else I64).or_null()
        case _:
            return F64.or_null()


def lower_computed(expression: Computed, lower: Callable[[Expression], ir.Expr], typing: Typing) -> ir.Expr:
    """The IR of a computed expression; ``lower`` lowers its operands."""
    match expression:
        case Comparison(left, operator, right):
            return _comparison(lower(left), operator, lower(right), typing)
        case NullTest(operand, negated):
            return ir.Filter(lower(operand), ir.Op.IS_NOT_NULL if negated else ir.Op.IS_NULL)
        case Connected(connective, operands):
            return ir.Call(connective, tuple(map(lower, operands)), _TRUTH)
        case Not(operand):
            return ir.Call("not", (lower(operand),), _TRUTH)
        case Arithmetic():
            return _arithmetic(expression, lower, typing)
        case Minus(operand):
            lowered = lower(operand)
            return ir.Call("minus", (lowered,), numeric((typing.of(lowered),)))
        case Case():
            return _case(expression, lower, typing)
        case FunctionCall(name, operands):
            lowered_operands = tuple(map(lower, operands))
            if name == "has":
                return ir.Filter(lowered_operands[0], ir.Op.CONTAINS, lowered_operands[1])
            types = [typing.of(one) for one in lowered_operands]
            return ir.Call(name, lowered_operands, FUNCTIONS[name].result(types))
        case Duration():
            raise TypeError("a duration has no value of its own")


def _comparison(left: ir.Expr, operator: ComparisonOperator, right: ir.Expr, typing: Typing) -> ir.Filter:
    if isinstance(left, ir.Var) and isinstance(right, ir.Var):
        return ir.Filter(ir.Prop(left.name, "id"), COMPARISONS[operator], ir.Prop(right.name, "id"))
    if operator == "in":
        return ir.Filter(right, ir.Op.CONTAINS, left)
    if operator == "contains":
        op = ir.Op.CONTAINS if typing.of(left).is_list else ir.Op.STRING_CONTAINS
        return ir.Filter(left, op, right)
    return ir.Filter(left, ir.Op.STARTS_WITH if operator == "starts_with" else COMPARISONS[operator], right)


def _arithmetic(expression: Arithmetic, lower: Callable[[Expression], ir.Expr], typing: Typing) -> ir.Call:
    left, right = expression.left, expression.right
    if isinstance(left, Duration):
        left, right = right, left
    if isinstance(right, Duration):
        moment = lower(left)
        amount = -right.amount if expression.operator == "-" else right.amount
        steps = ir.Constant(amount, I64)
        return ir.Call("date_add", (moment, ir.Constant(right.unit, STRING), steps), typing.of(moment))
    operands = (lower(left), lower(right))
    types = [typing.of(one) for one in operands]
    if types[0].is_string:
        return ir.Call("concat", operands, FUNCTIONS["concat"].result(types))
    return ir.Call(expression.operator, operands, numeric(types))


def _case(expression: Case, lower: Callable[[Expression], ir.Expr], typing: Typing) -> ir.Call:
    operands: list[ir.Expr] = []
    values: list[ir.Expr] = []
    for branch in expression.branches:
        value = lower(branch.value)
        operands += [lower(branch.condition), value]
        values.append(value)
    if expression.otherwise is not None:
        values.append(lower(expression.otherwise))
        operands.append(values[-1])
    shared = unified([typing.of(value) for value in values])
    assert shared is not None  # noqa: S101  the checker refuses values without a shared type
    return ir.Call("case", tuple(operands), shared.or_null() if expression.otherwise is None else shared)


def conditions_of(truth: ir.Expr) -> Iterator[ir.Filter]:
    """A truth value as conditions that all have to hold. Conditions that decide whether a later one can be
    computed stay in front of it."""
    if not isinstance(truth, ir.Call) or truth.function != "and":
        yield ir.condition(truth)
        return
    safe = [one for one in truth.operands if not may_fail(one)]
    for one in safe:
        yield from conditions_of(one)
    if len(safe) < len(truth.operands):
        first = next(index for index, one in enumerate(truth.operands) if may_fail(one))
        if first == 0 and len(safe) == len(truth.operands) - 1:
            yield ir.condition(truth.operands[0])
        else:
            yield ir.condition(truth)
