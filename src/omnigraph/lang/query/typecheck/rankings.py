"""The type rules of score functions: what the operands of each must be, and which ranking a call means."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.lang.query.syntax.expressions import (
    IntegerLiteral,
    ListLiteral,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    Variable,
)
from omnigraph.lang.query.typecheck.operands import (
    check_constant,
    check_text_search,
    check_vector_literal,
    searched_type,
    value_type,
)
from omnigraph.lang.query.typecheck.scope import Context, Scope
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.lang.values import I64
from omnigraph.records import dataclass

_DEFAULT_K: Final = ir.Constant(60, I64)


def _score(function: str, operands: Sequence[ir.Expr], scope: Scope) -> ir.Score:  # noqa: ARG001
    """The ranking of a function that takes a property and a query."""
    target, query = operands
    assert isinstance(target, ir.Prop)  # noqa: S101  the check refuses anything else
    return ir.Score(target.variable, target.property, query, function)


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule of one function. ``check`` reports mistakes; ``ranking`` makes the ranking of a call without
    mistakes from the function's name and the lowered operands."""

    check: Callable[[ScoreCall, Scope, Context], None]
    ranking: Callable[[str, Sequence[ir.Expr], Scope], ir.Ranking] = _score


def check_ranking(call: ScoreCall, scope: Scope, context: Context) -> None:
    """The operands of a score function."""
    RULES[call.function].check(call, scope, context)


def _check_nearest(call: ScoreCall, scope: Scope, context: Context) -> None:
    target, query = call.operands
    assert isinstance(target, PropertyRef)  # noqa: S101  the grammar allows nothing else
    if scope.find(target.variable.name) is None:
        context.report("T15", f"variable `${target.variable.name}` is not bound here", target.span)
        return
    vector = searched_type(target, scope, context)
    if vector is None:
        return
    if vector.dimension is None:
        context.report("T15", f"`nearest` needs a Vector property, not {vector}", target.span)
        return
    if isinstance(query, ListLiteral):
        check_vector_literal(query, vector.dimension, "T15", context)
        return
    if not isinstance(query, StringLiteral | Variable):
        context.report(
            "T15",
            "the query of `nearest` is a list of numbers, a text, or a parameter",
            query.span,
            "it has to be the same for all rows",
        )
        return
    found = value_type(query, scope, context, "a query of `nearest`")
    if found is None or found.is_string or found.dimension == vector.dimension:
        return
    context.report("T15", f"the query is {found}, and `{target.property}` is {vector.required()}", query.span)


def _nearest(function: str, operands: Sequence[ir.Expr], scope: Scope) -> ir.Nearest:
    """A distance: by angle between vectors that a model computed, else in a straight line."""
    score = _score(function, operands, scope)
    bound = scope.find(score.variable)
    assert bound is not None  # noqa: S101  the check found it
    assert isinstance(bound.type, NodeType)  # noqa: S101
    prop = bound.type.properties[score.property]
    return ir.Nearest(
        score.variable,
        score.property,
        score.query,
        function,
        prop.type.dimension or 0,
        "l2" if prop.embed is None else "cosine",
        None if prop.embed is None else prop.embed.model,
    )


def _check_bm25(call: ScoreCall, scope: Scope, context: Context) -> None:
    subject, query = call.operands
    check_text_search(call, subject, query, "T20", scope, context)


def _check_rrf(call: ScoreCall, scope: Scope, context: Context) -> None:
    first, second, *rest = call.operands
    assert isinstance(first, ScoreCall)  # noqa: S101  the grammar allows nothing else
    assert isinstance(second, ScoreCall)  # noqa: S101
    check_ranking(first, scope, context)
    check_ranking(second, scope, context)
    one, other = first.variable or "", second.variable or ""
    if one != other:
        context.report("T21", f"`rrf` fuses rankings of one variable, not of `${one}` and `${other}`", call.span)
    for k in rest:
        check_constant(k, "integer", "T21", "rrf", scope, context)
        if isinstance(k, IntegerLiteral) and k.value <= 0:
            context.report("T21", "the constant of `rrf` must be positive", k.span)


def _rrf(function: str, operands: Sequence[ir.Expr], scope: Scope) -> ir.Rrf:  # noqa: ARG001
    first, second, *rest = operands
    assert isinstance(first, ir.Score)  # noqa: S101
    assert isinstance(second, ir.Score)  # noqa: S101
    return ir.Rrf(first, second, rest[0] if rest else _DEFAULT_K, function)


RULES: Final[Mapping[str, Rule]] = {
    "nearest": Rule(_check_nearest, _nearest),
    "bm25": Rule(_check_bm25),
    "rrf": Rule(_check_rrf, _rrf),
}
