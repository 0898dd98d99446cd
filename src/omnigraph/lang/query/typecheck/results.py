"""Type checking of `return`, `order`, `limit` and `offset`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.scores import SCORES
from omnigraph.lang.query.spelling import spell_expression
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    LITERALS,
    Aggregate,
    AliasRef,
    Arithmetic,
    Case,
    Comparison,
    Connected,
    Everything,
    Expression,
    FloatLiteral,
    FunctionCall,
    IntegerLiteral,
    Minus,
    Not,
    Now,
    NullTest,
    PropertyRef,
    ScoreCall,
    TextCall,
    Variable,
)
from omnigraph.lang.query.syntax.parts import operands_of, parts_of, with_operands
from omnigraph.lang.query.syntax.queries import Ordering, Projection, ReadBody
from omnigraph.lang.query.typecheck.computed import computed_type, require_truth
from omnigraph.lang.query.typecheck.operands import literal_type, unknown_variable, value_type
from omnigraph.lang.query.typecheck.rankings import check_ranking
from omnigraph.lang.query.typecheck.scope import Context, Scope, property_type
from omnigraph.lang.values import DATETIME, F64, I64, STRING, U64, Scalar, ValueType

_COMPARABLE = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME})


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of the result: its name, what computes it, and its type (None after a reported mistake)."""

    name: str
    expression: Expression
    type: ValueType | None
    aliased: bool


def check_results(body: ReadBody, scope: Scope, context: Context) -> list[ResultColumn]:
    """Check everything behind `match`; the columns come back in order."""
    columns = [_column(projection, scope, context) for projection in body.projections]
    grouped = any(_aggregates(p.expression) for p in body.projections)
    if grouped:
        for projection, column in zip(body.projections, columns, strict=True):
            is_key = isinstance(projection.expression, (Aggregate, PropertyRef, Variable, *COMPUTED))
            if not is_key and column.type is not None:
                context.report(
                    "T9",
                    "beside an aggregate only `$x` and `$x.p` can be returned",
                    projection.span,
                    "they are the group's key",
                )
        keys = [p.expression for p in body.projections if not _aggregates(p.expression)]
        for projection in body.projections:
            if _aggregates(projection.expression):
                _check_grouped(projection.expression, keys, context)
        known = {column.name: column for column in columns}
        for condition in body.having:
            _check_having(condition.condition, known, keys, scope, context)
    elif body.having:
        context.report(
            "Q117",
            "`having` needs an aggregate in `return`",
            body.having[0].span,
            "put conditions on rows into `match`",
        )
    _Orderings(body, columns, grouped, scope, context).check()
    for word, count in (("limit", body.limit), ("offset", body.offset)):
        _check_count(word, count, context)
    if body.limit is None:
        for column in columns:
            if isinstance(column.expression, ScoreCall):
                _check_limit(column.expression, context, ordered=False)
    return columns


def _aggregates(expression: Expression) -> bool:
    return any(isinstance(part, Aggregate) for part in parts_of(expression))


def _check_grouped(expression: Expression, keys: Sequence[Expression], context: Context) -> None:
    """Everything in an expression over groups is an aggregate, a key, or the same for all rows."""
    if isinstance(expression, Aggregate) or expression in keys:
        return
    is_of_row = isinstance(expression, PropertyRef) or (
        isinstance(expression, Variable) and expression.name not in context.parameters
    )
    if is_of_row:
        shown = spell_expression(expression)
        context.report(
            "T9", f"`{shown}` is no key of the groups", expression.span, f"return `{shown}` too, or aggregate it"
        )
    for operand in operands_of(expression):
        _check_grouped(operand, keys, context)


def _check_having(
    condition: Expression,
    columns: Mapping[str, ResultColumn],
    keys: Sequence[Expression],
    scope: Scope,
    context: Context,
) -> None:
    """A condition on groups: its aliases are columns of the result."""
    plain = without_aliases(condition, columns)
    found = _operand_type(plain, scope, context)
    require_truth(condition, found, "`having`", context)
    _check_grouped(plain, keys, context)


def without_aliases(expression: Expression, columns: Mapping[str, ResultColumn]) -> Expression:
    """An expression with what the columns compute in place of their aliases."""
    if isinstance(expression, AliasRef):
        column = columns.get(expression.name)
        return expression if column is None or not column.aliased else column.expression
    return with_operands(expression, lambda part: without_aliases(part, columns))


def _check_limit(call: ScoreCall, context: Context, *, ordered: bool) -> None:
    """Report a ranking that needs a `limit`, in a query that has none."""
    rule = SCORES[call.function].limit
    if rule is not None and (ordered or rule.returned):
        context.report(rule.code, rule.message, call.span, "add `limit 10`")


def column_name(expression: Expression) -> str:
    """The name of an output column without an alias."""
    match expression:
        case PropertyRef(variable, name):
            return f"{variable.name}.{name.text}"
        case Variable(name):
            return name
        case Aggregate(_, Everything()):
            return spell_expression(expression)
        case Aggregate():
            return column_name(expression.argument)
        case Now():
            return "now"
        case AliasRef(name):
            return name
        case _ if isinstance(expression, COMPUTED):
            return spell_expression(expression)
        case _:
            return "literal"


def _column(projection: Projection, scope: Scope, context: Context) -> ResultColumn:
    expression, alias = projection.expression, projection.alias
    found = _projected_type(expression, scope, context)
    if isinstance(expression, ScoreCall) and alias is None:
        context.report(
            "Q113", "a score needs a name", projection.span, "add an alias: `as score`, and order by it"
        )
    if found is not None and found.is_blob:
        context.report("T24", "a Blob cannot be returned by a query", projection.span, "read it by id instead")
    name = alias.text if alias is not None else column_name(expression)
    return ResultColumn(name, expression, found, alias is not None)


def _projected_type(expression: Expression, scope: Scope, context: Context) -> ValueType | None:
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
        case _ if isinstance(expression, COMPUTED):
            return computed_type(expression, lambda part: _operand_type(part, scope, context), context)
        case _ if isinstance(expression, LITERALS):
            return literal_type(expression, context)
    return None


def _operand_type(expression: Expression, scope: Scope, context: Context) -> ValueType | None:
    """The type of a part of a returned expression."""
    if isinstance(expression, TextCall | ScoreCall | AliasRef):
        return value_type(expression, scope, context, "a part of a returned expression")
    if isinstance(expression, Variable) and expression.name not in context.parameters:
        return value_type(expression, scope, context, "an operand")
    return _projected_type(expression, scope, context)


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
    if isinstance(argument, TextCall | ScoreCall | AliasRef):
        context.report("T8", f"`{call.function}` aggregates properties and nodes", argument.span)
        return None
    if isinstance(argument, Everything):
        return I64
    if any(isinstance(part, Aggregate) for part in parts_of(argument)):
        context.report("T8", "an aggregate cannot hold another one", argument.span)
        return None
    is_node = isinstance(argument, Variable) and argument.name not in context.parameters
    found = _projected_type(argument, scope, context)
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
            context.report("T8", f"`{call.function}` needs a number, not {described}", argument.span)
            return None
        if call.fraction is not None and not _is_share(call.fraction):
            context.report("T8", "the share of `percentile` is a number from 0 to 1", call.fraction.span)
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


class _Orderings:
    """The rules of `order`, which depend on the columns and on each other."""

    def __init__(
        self, body: ReadBody, columns: list[ResultColumn], grouped: bool, scope: Scope, context: Context
    ) -> None:
        self.body = body
        self.columns = {column.name: column for column in columns}
        self.projected_only = "an aggregating" if grouped else "a `distinct`" if body.distinct else None
        self.keys = [c.expression for c in columns if not _aggregates(c.expression)] if grouped else None
        self.scope = scope
        self.context = context

    def check(self) -> None:
        for position, ordering in enumerate(self.body.order):
            self._ordering(position, ordering)
        calls = [o.expression for o in self.body.order if isinstance(o.expression, ScoreCall)]
        alone = next((call for call in calls if not SCORES[call.function].beside_aliases), None)
        by_alias = any(isinstance(o.expression, AliasRef) for o in self.body.order)
        if alone is not None and by_alias:
            self.context.report(
                "T18",
                f"`{alone.function}` cannot be combined with an alias in `order`",
                alone.span,
                "return the distance with an alias and order by that alias",
            )
        if self.body.limit is None:
            for call in self._rankings():
                _check_limit(call, self.context, ordered=True)

    def _rankings(self) -> Iterator[ScoreCall]:
        """The rankings that order the result, directly or through an alias."""
        for ordering in self.body.order:
            expression: Expression = ordering.expression
            if isinstance(expression, AliasRef) and expression.name in self.columns:
                expression = self.columns[expression.name].expression
            if isinstance(expression, ScoreCall):
                yield expression

    def _ordering(self, position: int, ordering: Ordering) -> None:
        expression, context = ordering.expression, self.context
        match expression:
            case PropertyRef():
                self._by_property(expression)
            case AliasRef(name):
                self._by_alias(name, expression)
            case Variable(name) if (given := context.parameters.get(name)) is not None and given.is_blob:
                self._orderable(given, expression)
            case ScoreCall():
                check_ranking(expression, self.scope, context)
                if position > 0:
                    context.report(
                        "Q111",
                        "a ranking comes first in `order`",
                        expression.span,
                        "or return it with an alias and order by that alias",
                    )
                elif self.projected_only:
                    context.report(
                        "Q111", f"{self.projected_only} query cannot be ranked by a search", expression.span
                    )
                if ordering.direction == "asc":
                    context.warn(
                        "L301",
                        "a ranking always puts the best first; `asc` has no effect",
                        ordering.span,
                        "return the score with an alias to sort it the other way",
                    )
            case Aggregate() | Comparison() | NullTest() | Connected() | Not() | Arithmetic() | Minus():
                self._by_value(expression)
            case Case() | FunctionCall():
                self._by_value(expression)
            case _:
                remedy = "order by a property `$x.p` or by an alias of `return`"
                context.report("Q111", "this cannot be ordered by", expression.span, remedy)

    def _by_property(self, reference: PropertyRef) -> None:
        found = property_type(reference, self.scope, self.context)
        name = column_name(reference)
        if self.projected_only and (name not in self.columns or self.columns[name].aliased):
            self.context.report(
                "Q110",
                f"{self.projected_only} query can be ordered by its own columns only, and `{name}` is none",
                reference.span,
                partial(suggest, name, self.columns),
            )
        self._orderable(found, reference)

    def _by_value(self, expression: Expression) -> None:
        """By something computed; groups are ordered by aggregates and keys."""
        plain = without_aliases(expression, self.columns)
        if _aggregates(plain) and self.keys is not None:
            _check_grouped(plain, self.keys, self.context)
            self._orderable(_operand_type(plain, self.scope, self.context), expression)
            return
        if _aggregates(plain):
            self.context.report(
                "Q111",
                "an aggregate orders groups, and this query has none",
                expression.span,
                "return an aggregate",
            )
            return
        name = column_name(expression)
        if self.projected_only and (name not in self.columns or self.columns[name].aliased):
            self.context.report(
                "Q110",
                f"{self.projected_only} query can be ordered by its own columns only, and this is none",
                expression.span,
                "return it with an alias and order by that",
            )
            return
        self._orderable(_projected_type(plain, self.scope, self.context), expression)

    def _by_alias(self, name: str, reference: AliasRef) -> None:
        column = self.columns.get(name)
        if column is None or not column.aliased:
            known = (c.name for c in self.columns.values() if c.aliased)
            self.context.report(
                "Q110",
                f"no projection has the alias `{name}`",
                reference.span,
                partial(suggest, name, known, "", f"write `$x.{name}` for a property, or add `as {name}`"),
            )
            return
        self._orderable(column.type, reference)

    def _orderable(self, found: ValueType | None, expression: Expression) -> None:
        if found is None:
            return
        if found.is_blob:
            self.context.report("T24", "a Blob cannot be ordered by", expression.span)
        elif not found.is_plain:
            self.context.report("Q111", f"{found} has no order", expression.span)


def _check_count(word: str, count: IntegerLiteral | Variable | None, context: Context) -> None:
    if not isinstance(count, Variable):
        return
    if count.name not in context.parameters:
        context.report(
            "Q114",
            f"`{word}` takes a number or a parameter, and `${count.name}` is no parameter",
            count.span,
            partial(suggest, count.name, context.parameters, "$"),
        )
        return
    found = context.parameters[count.name]
    if found is not None and (not found.is_integer or found.nullable):
        context.report("Q114", f"`{word}` needs a whole number, and `${count.name}` is {found}", count.span)
