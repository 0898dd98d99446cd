"""Going through an expression: what it is made of, and the same expression with other parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from omnigraph.lang.query.syntax.expressions import (
    Aggregate,
    AliasRef,
    Arithmetic,
    Case,
    Comparison,
    Connected,
    Expression,
    FunctionCall,
    Minus,
    Not,
    NullTest,
    PropertyRef,
    ScoreCall,
    TextCall,
    Variable,
)
from omnigraph.lang.source import Name


def operands_of(expression: Expression) -> tuple[Expression, ...]:
    """The expressions that an expression is directly made of."""
    match expression:
        case Comparison(left, _, right) | Arithmetic(_, left, right):
            return left, right
        case NullTest(operand) | Not(operand) | Minus(operand):
            return (operand,)
        case Connected(_, operands) | FunctionCall(_, operands) | ScoreCall(_, operands):
            return operands
        case Case(branches, otherwise):
            every = tuple(part for branch in branches for part in (branch.condition, branch.value))
            return every if otherwise is None else (*every, otherwise)
        case Aggregate(_, argument):
            return (argument,)
        case TextCall(_, subject, query, edits):
            return (subject, query) if edits is None else (subject, query, edits)
        case _:
            return ()


def parts_of(expression: Expression) -> Iterator[Expression]:
    """An expression, and all expressions in it."""
    yield expression
    for operand in operands_of(expression):
        yield from parts_of(operand)


def with_operands(expression: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """An expression whose direct operands are changed."""
    match expression:
        case Comparison(left, _, right) | Arithmetic(_, left, right):
            return replace(expression, left=change(left), right=change(right))
        case NullTest(operand) | Not(operand) | Minus(operand):
            return replace(expression, operand=change(operand))
        case Connected(_, operands) | FunctionCall(_, operands):
            return replace(expression, operands=tuple(map(change, operands)))
        case Case(branches, otherwise):
            changed = tuple(replace(b, condition=change(b.condition), value=change(b.value)) for b in branches)
            return replace(
                expression, branches=changed, otherwise=None if otherwise is None else change(otherwise)
            )
        case Aggregate(_, argument):
            return replace(expression, argument=change(argument))
        case TextCall(_, subject):
            return replace(expression, subject=change(subject))
        case _:
            return expression


def of_properties(expression: Expression, variable: Variable) -> Expression:
    """An expression whose bare names are properties of a variable."""
    if isinstance(expression, AliasRef):
        return PropertyRef(variable, Name(expression.name, expression.span), expression.span)
    return with_operands(expression, lambda part: of_properties(part, variable))
