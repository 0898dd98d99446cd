"""Type checking of `return` and `having`: the columns of a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    LITERALS,
    Aggregate,
    AliasRef,
    Comparison,
    Everything,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    Now,
    NullTest,
    PropertyRef,
    ScoreCall,
    TextCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.parts import operands_of, parts_of
from omnigraph.lang.query.syntax.queries import Projection, ReadBody
from omnigraph.lang.query.typecheck.computed import computed_type, require_truth
from omnigraph.lang.query.typecheck.naming import (
    ResultColumn,
    column_name,
    warn_of_repeated_names,
    without_aliases,
)
from omnigraph.lang.query.typecheck.operands import literal_type, unknown_variable, value_type
from omnigraph.lang.query.typecheck.scope import Context, Scope, property_type, unbound_property
from omnigraph.lang.values import DATETIME, F64, I64, STRING, U64, Scalar, ValueType
from omnigraph.records import dataclass

_COMPARABLE = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME})


@dataclass(frozen=True, slots=True)
class Returned:
    """What one `return` gives: its columns in order, and whether they are of groups of rows."""

    columns: list[ResultColumn]
    grouped: bool


def check_returned(body: ReadBody, scope: Scope, context: Context) -> Returned:
    """Check `return` and `having`."""
    columns = [_column(projection, scope, context) for projection in body.projections]
    grouped = any(aggregates(p.expression) for p in body.projections)
    if grouped:
        for projection in body.projections:
            if isinstance(projection.expression, ScoreCall):
                context.report(
                    "T9",
                    "beside an aggregate no score can be returned",
                    projection.span,
                    "a score is of a row, and not of a group; rank in a query of its own",
                )
        keys = [p.expression for p in body.projections if not aggregates(p.expression)]
        for projection in body.projections:
            if aggregates(projection.expression):
                check_grouped(projection.expression, keys, context)
        known = {column.name: column for column in columns}
        for condition in body.having:
            _check_having(condition.condition, known, keys, scope, context)
    elif body.having:
        counts = any(aggregates(condition.condition) for condition in body.having)
        context.report(
            "Q117",
            "`having` needs an aggregate in `return`",
            body.having[0].span,
            "return what it asks about: `count(*) as n`" if counts else "put conditions on rows into `match`",
        )
    warn_of_repeated_names(body, columns, context)
    return Returned(columns, grouped)


def aggregates(expression: Expression) -> bool:
    """Is an expression computed from groups of rows?"""
    return any(isinstance(part, Aggregate) for part in parts_of(expression))


def check_grouped(expression: Expression, keys: Sequence[Expression], context: Context) -> None:
    """Everything in an expression over groups is an aggregate, a key, or the same for all rows."""
    if isinstance(expression, Aggregate) or expression in keys:
        return
    is_variable = isinstance(expression, Variable) and expression.name not in context.parameters
    if isinstance(expression, PropertyRef | Whole) or is_variable:
        named = expression if isinstance(expression, Variable) else getattr(expression, "variable", None)
        if any(isinstance(key, Whole) and key.variable == named for key in keys):
            return
        from omnigraph.lang.query.spelling import spell_expression

        shown = spell_expression(expression)
        context.report(
            "T9", f"`{shown}` is no key of the groups", expression.span, f"return `{shown}` too, or aggregate it"
        )
    for operand in operands_of(expression):
        check_grouped(operand, keys, context)


def _check_having(
    condition: Expression,
    columns: Mapping[str, ResultColumn],
    keys: Sequence[Expression],
    scope: Scope,
    context: Context,
) -> None:
    """A condition on groups: its aliases are columns of the result."""
    plain = without_aliases(condition, columns)
    unknown = [part for part in parts_of(plain) if isinstance(part, AliasRef) and part.name != "null"]
    for part in unknown:
        aliases = [column.name for column in columns.values() if column.aliased]
        remedy = partial(suggest, part.name, aliases, "", f"a property is written `$x.{part.name}`")
        context.report("T7", f"`{part.name}` is no column of this `return`", part.span, remedy)
    if unknown:
        return
    found = operand_type(plain, scope, context)
    require_truth(condition, found, "`having`", context)
    check_grouped(plain, keys, context)


def _column(projection: Projection, scope: Scope, context: Context) -> ResultColumn:
    expression, alias = projection.expression, projection.alias
    if isinstance(expression, Whole):
        check_whole(expression, scope, context)
        found = None
    else:
        found = projected_type(expression, scope, context)
    if isinstance(expression, ScoreCall) and alias is None:
        context.report(
            "Q113", "a score needs a name", projection.span, "add an alias: `as score`, and order by it"
        )
    if found is not None and found.is_blob:
        context.report("T24", "a Blob cannot be returned by a query", projection.span, "read it by id instead")
    name = alias.text if alias is not None else column_name(expression)
    return ResultColumn(name, expression, found, alias is not None)


def check_whole(whole: Whole, scope: Scope, context: Context) -> None:
    """Report `$x.*` of something that is no node and no edge."""
    if scope.find(whole.variable.name) is None:
        unbound_property(whole.variable, scope, context)


def projected_type(expression: Expression, scope: Scope, context: Context) -> ValueType | None:
    """The type of what is returned; None after reporting why it cannot be."""
    match expression:
        case Variable():
            return _node_or_parameter(expression, scope, context)
        case PropertyRef():
            return property_type(expression, scope, context)
        case Aggregate():
            return _aggregate_type(expression, scope, context)
        case Now():
            return DATETIME
        case AliasRef():
            context.report(
                "Q112",
                f"`{expression.name}` is not a value here",
                expression.span,
                f"a property is written `$x.{expression.name}`; aliases can be used in `order` only",
            )
            return None
        case ScoreCall():
            from omnigraph.lang.query.typecheck.rankings import check_ranking

            check_ranking(expression, scope, context)
            return F64.or_null()
        case TextCall():
            context.report(
                "Q112",
                f"`{expression.function}` is a condition and cannot be returned",
                expression.span,
                "put it into `match`; return `bm25(…) as score` for a score",
            )
            return None
        case NullTest(Variable(name)) if name not in context.parameters:
            return value_type(expression, scope, context, "returned")
        case Comparison(Variable(), _, Variable()):
            return value_type(expression, scope, context, "compared")
        case _ if isinstance(expression, COMPUTED):
            return computed_type(expression, lambda part: operand_type(part, scope, context), context)
        case _ if isinstance(expression, LITERALS):
            return literal_type(expression, context)
    return None


def operand_type(expression: Expression, scope: Scope, context: Context) -> ValueType | None:
    """The type of a part of a returned expression."""
    if isinstance(expression, TextCall | ScoreCall | AliasRef | Whole):
        return value_type(expression, scope, context, "a part of a returned expression")
    if isinstance(expression, Variable) and expression.name not in context.parameters:
        return value_type(expression, scope, context, "an operand")
    return projected_type(expression, scope, context)


def _node_or_parameter(variable: Variable, scope: Scope, context: Context) -> ValueType | None:
    """A parameter's own type, or the id of a node."""
    if variable.name in context.parameters:
        return context.parameters[variable.name]
    bound = scope.find(variable.name)
    if bound is None:
        unknown_variable(variable, scope, context)
        return None
    return STRING.or_null() if bound.nullable else STRING


def _aggregate_type(call: Aggregate, scope: Scope, context: Context) -> ValueType | None:
    argument = call.argument
    if isinstance(argument, Aggregate):
        context.report("T8", "an aggregate cannot hold another one", argument.span)
        return None
    if isinstance(argument, TextCall | ScoreCall | AliasRef | Whole):
        remedy = f"write `{call.function}(${argument.variable.name})`" if isinstance(argument, Whole) else None
        context.report("T8", f"`{call.function}` aggregates properties and nodes", argument.span, remedy)
        return None
    if isinstance(argument, Everything):
        return I64
    if any(isinstance(part, Aggregate) for part in parts_of(argument)):
        context.report("T8", "an aggregate cannot hold another one", argument.span)
        return None
    is_node = isinstance(argument, Variable) and argument.name not in context.parameters
    found = projected_type(argument, scope, context)
    if found is None:
        return I64 if call.function == "count" else None
    if found.is_blob:
        context.report("T24", "a Blob cannot be aggregated", argument.span)
        return None
    if call.function == "count":
        return I64
    if call.function == "collect":
        return _collected(call, found, is_node, context)
    described = "a node" if is_node else str(found.required())
    if call.function in ("sum", "avg", "median", "stddev", "percentile"):
        if is_node or not found.is_numeric:
            context.report(
                "T8",
                f"`{call.function}` needs a number, not {described}",
                argument.span,
                "use `min`, `max`, `count` or `collect`, or make a number of it: `to_float(…)`",
            )
            return None
        if call.fraction is not None and not _is_share(call.fraction):
            context.report(
                "T8", "the share of `percentile` is a literal from 0 to 1", call.fraction.span, "write 0.9"
            )
        return _added_type(found, call.function).or_null()
    comparable = found.is_numeric or (found.is_plain and found.scalar in _COMPARABLE)
    if is_node or not comparable:
        context.report(
            "T8",
            f"`{call.function}` needs a number, String, Date or DateTime, not {described}",
            argument.span,
        )
        return None
    return found.or_null()


def _collected(call: Aggregate, found: ValueType, is_node: bool, context: Context) -> ValueType | None:
    if not found.is_plain:
        context.report("T8", f"`collect` makes a list of single values, not of {found}", call.argument.span)
        return None
    return ValueType(STRING.scalar if is_node else found.scalar, is_list=True)


def _is_share(expression: Expression) -> bool:
    return isinstance(expression, IntegerLiteral | FloatLiteral) and 0 <= expression.value <= 1


def _added_type(found: ValueType, function: str) -> ValueType:
    """A sum of integers is an integer, unsigned if they are; averages and sums of floats are floats."""
    if function != "sum" or not found.is_integer:
        return F64
    return U64 if found.scalar in (Scalar.U32, Scalar.U64) else I64
