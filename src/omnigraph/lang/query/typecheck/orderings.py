"""Type checking of `order`, `limit` and `offset`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.scores import SCORES
from omnigraph.lang.query.syntax.expressions import (
    Aggregate,
    AliasRef,
    Arithmetic,
    Case,
    Comparison,
    Connected,
    Expression,
    FunctionCall,
    IntegerLiteral,
    Minus,
    Not,
    NullTest,
    PropertyRef,
    ScoreCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.queries import Ordering, ReadBody
from omnigraph.lang.query.typecheck.naming import ResultColumn, column_name, without_aliases
from omnigraph.lang.query.typecheck.results import (
    Returned,
    aggregates,
    check_grouped,
    operand_type,
    projected_type,
)
from omnigraph.lang.query.typecheck.scope import Context, Scope, property_type
from omnigraph.lang.values import ValueType


def check_page(body: ReadBody, returned: Returned, scope: Scope, context: Context) -> None:
    """Check the order and the limits of a read."""
    _Orderings(body, returned.columns, returned.grouped, scope, context).check()
    check_counts(body, context)
    if body.limit is None:
        for column in returned.columns:
            if isinstance(column.expression, ScoreCall):
                _check_limit(column.expression, context, ordered=False)


def check_counts(body: ReadBody, context: Context) -> None:
    """Check `limit` and `offset`."""
    for word, count in (("limit", body.limit), ("offset", body.offset)):
        _check_count(word, count, context)


class _Orderings:
    """The rules of `order`, which depend on the columns and on each other."""

    def __init__(
        self, body: ReadBody, columns: list[ResultColumn], grouped: bool, scope: Scope, context: Context
    ) -> None:
        self.body = body
        self.columns = {column.name: column for column in columns}
        self.returned = [column.expression for column in columns]
        self.projected_only = "an aggregating" if grouped else "a `distinct`" if body.distinct else None
        self.keys = [c.expression for c in columns if not aggregates(c.expression)] if grouped else None
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
                from omnigraph.lang.query.typecheck.rankings import check_ranking

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
        is_own = name in self.columns and not self.columns[name].aliased
        if self.projected_only and not is_own and Whole(reference.variable) not in self.returned:
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
        if aggregates(plain) and self.keys is not None:
            check_grouped(plain, self.keys, self.context)
            self._orderable(operand_type(plain, self.scope, self.context), expression)
            return
        if aggregates(plain):
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
        self._orderable(projected_type(plain, self.scope, self.context), expression)

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
        if isinstance(column.expression, Whole):
            whole = column.expression.variable.name
            self.context.report(
                "Q111",
                f"`{name}` is a whole node or edge and has no order",
                reference.span,
                f"order by one of its properties: `${whole}.…`",
            )
        self._orderable(column.type, reference)

    def _orderable(self, found: ValueType | None, expression: Expression) -> None:
        if found is None:
            return
        if found.is_blob:
            self.context.report("T24", "a Blob cannot be ordered by", expression.span)
        elif not found.is_plain:
            self.context.report("Q111", f"{found} has no order", expression.span)


def _check_limit(call: ScoreCall, context: Context, *, ordered: bool) -> None:
    """Report a ranking that needs a `limit`, in a query that has none."""
    rule = SCORES[call.function].limit
    if rule is not None and (ordered or rule.returned):
        context.report(rule.code, rule.message, call.span, "add `limit 10`")


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
