"""The names of result columns, and what they stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    Aggregate,
    AliasRef,
    Everything,
    Expression,
    Now,
    PropertyRef,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.parts import with_operands
from omnigraph.lang.query.syntax.queries import ReadBody
from omnigraph.lang.query.typecheck.scope import Context
from omnigraph.lang.values import ValueType
from omnigraph.records import dataclass

NAMED_BY_ARGUMENT = frozenset({"count", "sum", "avg", "min", "max"})
"""The aggregates that have always been called as what they aggregate, if that is a property or a variable."""
_TEXTUAL = (Everything, *COMPUTED)
"""What is called as it is written."""


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """One column of the result: its name, what computes it, and its type (None after a reported mistake)."""

    name: str
    expression: Expression
    type: ValueType | None
    aliased: bool


def column_name(expression: Expression) -> str:
    """The name of an output column without an alias."""
    match expression:
        case PropertyRef(variable, name):
            return f"{variable.name}.{name.text}"
        case Variable(name) | Whole(Variable(name)):
            return name
        case Aggregate(function, argument) if function in NAMED_BY_ARGUMENT and not isinstance(argument, _TEXTUAL):
            return column_name(argument)
        case Aggregate():
            return _spelt(expression)
        case Now():
            return "now"
        case AliasRef(name):
            return name
        case _ if isinstance(expression, COMPUTED):
            return _spelt(expression)
        case _:
            return "literal"


def _spelt(expression: Expression) -> str:
    from omnigraph.lang.query.spelling import spell_expression

    return spell_expression(expression)


def without_aliases(expression: Expression, columns: Mapping[str, ResultColumn]) -> Expression:
    """An expression with what the columns compute in place of their aliases."""
    if isinstance(expression, AliasRef):
        column = columns.get(expression.name)
        return expression if column is None or not column.aliased else column.expression
    return with_operands(expression, lambda part: without_aliases(part, columns))


def warn_of_repeated_names(body: ReadBody, columns: Sequence[ResultColumn], context: Context) -> None:
    """Two columns may have one name, but a row as a dictionary has only the last of them."""
    seen: set[str] = set()
    for projection, column in zip(body.projections, columns, strict=True):
        if column.name in seen:
            context.warn(
                "L303",
                f"another column is called `{column.name}` too, and a row as a dictionary has only the last one",
                projection.span,
                "give it a name of its own: `… as name`",
            )
        seen.add(column.name)
