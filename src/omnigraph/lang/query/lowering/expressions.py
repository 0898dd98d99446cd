"""Lowering of expressions: values, properties, aggregates and searches."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.lang.query import ir
from omnigraph.lang.query.lowering.computed import Typing, aggregate_type, lower_computed
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    Aggregate,
    AliasRef,
    BoolLiteral,
    DateLiteral,
    DateTimeLiteral,
    Everything,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Now,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.typecheck.scope import Scope
from omnigraph.lang.values import (
    BOOL,
    DATE,
    DATETIME,
    F64,
    I64,
    STRING,
    Scalar,
    ValueType,
    parse_date,
    parse_datetime,
)

_DEFAULT_EDITS = ir.Constant(2, I64)


def lower_expression(expression: Expression, scope: Scope, params: Mapping[str, ValueType]) -> ir.Expr:
    """The IR of an expression that has passed the type checker."""
    match expression:
        case PropertyRef(variable, name):
            return ir.Prop(variable.name, name.text)
        case Variable(name):
            return ir.Param(name) if name in params else ir.Var(name)
        case Now():
            return ir.Param(ir.NOW)
        case AliasRef(name):
            return ir.Alias(name)
        case Aggregate():
            return _aggregate(expression, scope, params)
        case TextCall():
            return _text_call(expression, scope, params)
        case ScoreCall(function, operands):
            lowered = [lower_expression(one, scope, params) for one in operands]
            from omnigraph.lang.query.typecheck.rankings import RULES

            return RULES[function].ranking(function, lowered, scope)
        case _ if isinstance(expression, COMPUTED):
            typing = Typing(scope, params)
            return lower_computed(expression, lambda part: lower_expression(part, scope, params), typing)
        case Everything() | Whole():
            raise TypeError("`*` is no value")
        case _:
            return lower_literal(expression)


def _aggregate(call: Aggregate, scope: Scope, params: Mapping[str, ValueType]) -> ir.Agg:
    if isinstance(call.argument, Everything):
        return ir.Agg("count", ir.Constant(1, I64))
    argument = lower_expression(call.argument, scope, params)
    fraction = call.fraction
    share = float(fraction.value) if isinstance(fraction, IntegerLiteral | FloatLiteral) else None
    kind = aggregate_type(call.function, Typing(scope, params).of(argument))
    return ir.Agg(call.function, argument, call.distinct, kind, share)


def lower_literal(
    literal: StringLiteral
    | IntegerLiteral
    | FloatLiteral
    | BoolLiteral
    | DateLiteral
    | DateTimeLiteral
    | ListLiteral,
) -> ir.Constant:
    """A literal as a typed constant; mixed integers and floats in a list become floats."""
    match literal:
        case StringLiteral(value):
            return ir.Constant(value, STRING)
        case IntegerLiteral(value):
            return ir.Constant(value, I64)
        case FloatLiteral(value):
            return ir.Constant(value, F64)
        case BoolLiteral(value):
            return ir.Constant(value, BOOL)
        case DateLiteral(text):
            return ir.Constant(parse_date(text), DATE)
        case DateTimeLiteral(text):
            return ir.Constant(parse_datetime(text), DATETIME)
        case ListLiteral(items):
            return _list(items)


def _list(items: tuple[Expression, ...]) -> ir.Constant:
    values: list[ir.Scalar] = []
    scalars: set[Scalar] = set()
    for item in items:
        assert not isinstance(item, ListLiteral)  # noqa: S101  the checker refuses nested lists
        lowered = lower_literal(item)  # type: ignore[arg-type]
        assert not isinstance(lowered.value, tuple)  # noqa: S101
        values.append(lowered.value)
        scalars.add(lowered.type.scalar)
    if len(scalars) > 1:
        values = [float(v) for v in values if isinstance(v, int | float)]
        scalar = Scalar.F64
    else:
        scalar = next(iter(scalars), Scalar.STRING)
    return ir.Constant(tuple(values), ValueType(scalar, is_list=True))


def _text_call(call: TextCall, scope: Scope, params: Mapping[str, ValueType]) -> ir.TextMatch:
    assert isinstance(call.subject, PropertyRef)  # noqa: S101  the checker asks for a property
    variable, name = call.subject.variable.name, call.subject.property.text
    query = lower_expression(call.query, scope, params)
    edits = None
    if call.function == "fuzzy":
        edits = _DEFAULT_EDITS if call.edits is None else lower_expression(call.edits, scope, params)
    return ir.TextMatch(call.function, variable, name, query, edits)
