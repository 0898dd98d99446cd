"""Type checking of whole reads, and of unions: their returns have the same columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.functions.signature import unified
from omnigraph.lang.query.syntax.expressions import AliasRef, ScoreCall, Whole
from omnigraph.lang.query.syntax.queries import Ordering, ReadBody
from omnigraph.lang.query.typecheck.comparisons import conversion
from omnigraph.lang.query.typecheck.naming import ResultColumn, column_name
from omnigraph.lang.query.typecheck.orderings import check_counts, check_page
from omnigraph.lang.query.typecheck.patterns import Pattern, check_match_block
from omnigraph.lang.query.typecheck.results import Returned, check_returned
from omnigraph.lang.query.typecheck.scope import Context, Scope
from omnigraph.lang.query.typecheck.wholes import fields_of
from omnigraph.lang.values import ValueType
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class CheckedRead:
    """A read, or one of those that a union is made of: its pattern and its columns."""

    body: ReadBody
    pattern: Pattern
    columns: list[ResultColumn]


def check_read(body: ReadBody, context: Context) -> list[CheckedRead]:
    """Check a read; several come back if it is a union."""
    checked: list[CheckedRead] = []
    for part in (body, *body.united):
        pattern = check_match_block(part.match, context)
        returned = check_returned(part, pattern.scope, context)
        checked.append(CheckedRead(part, pattern, returned.columns))
        if not body.united:
            check_page(part, Returned(returned.columns, returned.grouped), pattern.scope, context)
    if body.united:
        _check_union(body, checked, context)
    return checked


def _check_union(body: ReadBody, reads: Sequence[CheckedRead], context: Context) -> None:
    for read in reads:
        for column in read.columns:
            if isinstance(column.expression, ScoreCall):
                context.report(
                    "Q118", "a union has no scores", column.expression.span, "rank in a query of its own"
                )
    first = reads[0]
    for other in reads[1:]:
        _check_same(first, other, context)
    known = {column.name: column for column in first.columns}
    for ordering in body.order:
        _check_order(ordering, known, context)
    check_counts(body, context)


def _check_same(first: CheckedRead, other: CheckedRead, context: Context) -> None:
    """The columns of two returns have the same names, in the same order, and types that can be put together."""
    names, others = ([column.name for column in read.columns] for read in (first, other))
    if names != others:
        shown, wanted = ", ".join(others), ", ".join(names)
        context.report(
            "Q118",
            f"this `return` gives {shown}, and the first one of the `union` gives {wanted}",
            other.body.projections[0].span.to(other.body.projections[-1].span),
            "give columns the same names, in the same order: `… as name`",
        )
        return
    for one, two in zip(first.columns, other.columns, strict=True):
        types = [_types(column, read.pattern.scope) for column, read in ((one, first), (two, other))]
        if None not in types and not _alike(*types):
            context.report(
                "Q118",
                f"the column `{two.name}` is {_shown(types[1])} here and {_shown(types[0])} in the first `return`",
                two.expression.span,
                conversion({kind.scalar for some in types if some for _, kind in some})
                or "turn one into the other: `to_string(…)`, `to_float(…)`",
            )


Types = Sequence[tuple[str, ValueType]] | None


def _types(column: ResultColumn, scope: Scope) -> Types:
    """The types of a column, by field if it has any; None after a mistake that was reported."""
    if isinstance(column.expression, Whole):
        bound = scope.find(column.expression.variable.name)
        return None if bound is None or bound.type is None else fields_of(bound)
    return None if column.type is None else [("", column.type)]


def _alike(one: Types, other: Types) -> bool:
    if one is None or other is None or [name for name, _ in one] != [name for name, _ in other]:
        return False
    return all(unified((mine, theirs)) is not None for (_, mine), (_, theirs) in zip(one, other, strict=True))


def _shown(types: Types) -> str:
    if types is None or types[0][0] == "":
        return "" if types is None else str(types[0][1].required())
    return f"a struct of {', '.join(name for name, _ in types)}"


def _check_order(ordering: Ordering, known: dict[str, ResultColumn], context: Context) -> None:
    """A union is ordered by its columns: by an alias, or by what the first return computes."""
    expression = ordering.expression
    column = known.get(column_name(expression))
    if isinstance(expression, AliasRef):
        found = column is not None and column.aliased
    else:
        found = column is not None and not column.aliased and column.expression == expression
    if column is None or not found:
        from omnigraph.lang.query.spelling import spell_expression

        shown = spell_expression(expression)
        context.report(
            "Q110",
            f"a `union` can be ordered by its own columns only, and `{shown}` is none",
            expression.span,
            partial(suggest, shown, known),
        )
    elif isinstance(column.expression, Whole) or (column.type is not None and not column.type.is_plain):
        context.report("Q111", f"the column `{column.name}` has no order", expression.span)
