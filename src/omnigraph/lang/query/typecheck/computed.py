"""The types of computed expressions: conditions, arithmetic, `case` and function calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from omnigraph.lang.diagnostics import Remedy, suggest
from omnigraph.lang.query.functions.signature import (
    CLOCK_UNITS,
    CONSTANTS,
    UNITS,
    Function,
    Kind,
    accepts,
    numeric,
    unified,
)
from omnigraph.lang.query.functions.table import FUNCTIONS
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
    StringLiteral,
    Variable,
)
from omnigraph.lang.query.typecheck.comparisons import check_comparison, comparison_problem, conversion
from omnigraph.lang.query.typecheck.scope import Context
from omnigraph.lang.values import BOOL, STRING, Scalar, ValueType

Typed = Callable[[Expression], ValueType | None]
"""Gives the type of an operand; None after reporting what is wrong with it."""


def computed_type(expression: Computed, typed: Typed, context: Context) -> ValueType | None:
    """The type of a computed expression, or None after reporting why it has none."""
    match expression:
        case Comparison(left, _, right):
            one, other = typed(left), typed(right)
            if one is not None and other is not None:
                check_comparison(expression, one, other, context)
            return BOOL.or_null()
        case NullTest(operand):
            found = typed(operand)
            if found is not None and found.is_blob:
                context.report("T7", "a Blob cannot be tested in a query", operand.span)
            return BOOL
        case Connected(connective, operands):
            return _truth(operands, f"an operand of `{connective}`", typed, context)
        case Not(operand):
            return _truth((operand,), "the operand of `not`", typed, context)
        case Arithmetic():
            return _arithmetic(expression, typed, context)
        case Minus(operand):
            found = typed(operand)
            if found is None:
                return None
            if not found.is_numeric:
                remedy = 'a part of a text goes by `replace(…, "…", "")`' if found.is_string else None
                context.report("T25", f"`-` needs a number, not {found.required()}", operand.span, remedy)
                return None
            return numeric((found,))
        case Duration(amount, unit):
            context.report(
                "T25",
                f"`{amount} {unit}s` is no value of its own",
                expression.span,
                "add it to a Date or a DateTime: `$x.day + 3 days`",
            )
            return None
        case Case():
            return _case(expression, typed, context)
        case FunctionCall(name, operands):
            return _call(FUNCTIONS[name], expression, operands, typed, context)


def require_truth(expression: Expression, found: ValueType | None, what: str, context: Context) -> None:
    """Report a condition that is no Bool."""
    if found is not None and not accepts(Kind.BOOL, found):
        context.report(
            "T7",
            f"{what} is a condition, and this is {found.required()}",
            expression.span,
            "compare it: `=`, `!=`, `<`, `<=`, `>`, `>=`, `contains`, `starts_with`, `in`, `is null`",
        )


def _truth(operands: Sequence[Expression], what: str, typed: Typed, context: Context) -> ValueType:
    for operand in operands:
        require_truth(operand, typed(operand), what, context)
    return BOOL.or_null()


def _arithmetic(expression: Arithmetic, typed: Typed, context: Context) -> ValueType | None:
    operator, left, right = expression.operator, expression.left, expression.right
    if isinstance(right, Duration) and operator in ("+", "-"):
        return _moved(left, right, typed, context)
    if isinstance(left, Duration) and operator == "+":
        return _moved(right, left, typed, context)
    one, other = typed(left), typed(right)
    if one is None or other is None:
        return None
    if one.is_numeric and other.is_numeric:
        return numeric((one, other))
    if operator == "+" and one.is_string and other.is_string:
        return STRING.or_null() if one.nullable or other.nullable else STRING
    remedy: Remedy = None
    if operator == "-" and accepts(Kind.MOMENT, one) and accepts(Kind.MOMENT, other):
        remedy = 'write `date_diff("day", earlier, later)`'
    elif accepts(Kind.MOMENT, one) and other.is_integer:
        remedy = f"say of what: `{operator} 3 days`"
    elif operator == "+" and (one.is_string or other.is_string):
        remedy = "make a text of the other one: `to_string(…)`"
    context.report(
        "T25", f"`{operator}` does not take {one.required()} and {other.required()}", expression.span, remedy
    )
    return None


def _moved(moment: Expression, duration: Duration, typed: Typed, context: Context) -> ValueType | None:
    found = typed(moment)
    if found is None:
        return None
    if not accepts(Kind.MOMENT, found):
        context.report(
            "T25", f"a duration is added to a Date or a DateTime, not to {found.required()}", moment.span
        )
        return None
    return found if _has_unit(found, duration.unit, duration, context) else None


def _has_unit(moment: ValueType, unit: str, at: Expression, context: Context) -> bool:
    if unit in CLOCK_UNITS and moment.scalar is Scalar.DATE:
        context.report("T25", f"a Date has no {unit}s", at.span, "make a DateTime of it: `to_datetime(…)`")
        return False
    return True


def _case(expression: Case, typed: Typed, context: Context) -> ValueType | None:
    for branch in expression.branches:
        require_truth(branch.condition, typed(branch.condition), "what stands behind `when`", context)
    values = [branch.value for branch in expression.branches]
    if expression.otherwise is not None:
        values.append(expression.otherwise)
    shared = _shared(values, typed, "the branches of a `case`", context)
    return shared.or_null() if shared is not None and expression.otherwise is None else shared


def _shared(values: Sequence[Expression], typed: Typed, what: str, context: Context) -> ValueType | None:
    types = [typed(value) for value in values]
    known = [found for found in types if found is not None]
    if len(known) < len(types):
        return None
    for value, found in zip(values, known, strict=True):
        if unified((known[0], found)) is None or found.is_blob:
            context.report(
                "T26",
                f"{what} have one type, not {known[0].required()} and {found.required()}",
                value.span,
                None if found.is_blob else conversion({known[0].scalar, found.scalar}),
            )
            return None
    return unified(known)


def _call(
    function: Function, call: FunctionCall, operands: Sequence[Expression], typed: Typed, context: Context
) -> ValueType | None:
    if function.name == "coalesce":
        shared = _shared(operands, typed, "the operands of `coalesce`", context)
        types = [typed(one) for one in operands] if shared is not None else []
        return None if shared is None else function.result([one for one in types if one is not None])
    found: list[ValueType] = []
    for index, operand in enumerate(operands):
        parameter = function.parameter(index)
        kind = typed(operand)
        if kind is None:
            return None
        if not _fits(function, parameter.kind, parameter.name, operand, kind, context):
            return None
        found.append(kind)
    if function.name in ("nullif", "has"):
        operator: ComparisonOperator = "=" if function.name == "nullif" else "contains"
        problem = comparison_problem(Comparison(operands[0], operator, operands[1], call.span), *found)
        if problem is not None:
            context.report("T25", problem, call.span, conversion({one.scalar for one in found}))
            return None
    units = [one.value for one in operands if isinstance(one, StringLiteral)]
    if Kind.UNIT in {one.kind for one in function.parameters} and function.name != "date_diff":
        moment = next(one for one in found if accepts(Kind.MOMENT, one))
        if not _has_unit(moment, units[0], call, context):
            return None
    return function.result(found)


def _fits(
    function: Function, kind: Kind, name: str, operand: Expression, found: ValueType, context: Context
) -> bool:
    if not accepts(kind, found):
        context.report(
            "T25",
            f"the operand `{name}` of `{function.name}` is {_a(kind)}, not {found.required()}",
            operand.span,
            f"write `{function.signature}`",
        )
        return False
    if kind is Kind.UNIT:
        if isinstance(operand, StringLiteral) and operand.value in UNITS:
            return True
        remedy: Remedy = f"one of {', '.join(UNITS)}, in double quotes"
        if isinstance(operand, StringLiteral):
            remedy = partial(suggest, operand.value, UNITS)
        context.report("T25", f"the operand `{name}` of `{function.name}` is a unit of time", operand.span, remedy)
        return False
    if kind in CONSTANTS and not isinstance(operand, StringLiteral | Variable):
        context.report(
            "T25",
            f"the operand `{name}` of `{function.name}` must be a literal or a parameter",
            operand.span,
            "it has to be the same for all rows",
        )
        return False
    return True


def _a(kind: Kind) -> str:
    return f"an {kind}" if kind is Kind.INTEGER else f"a {kind}"
