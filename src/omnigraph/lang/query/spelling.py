"""The parts of a query that are written on one line: expressions, and what is made of nothing else."""

from __future__ import annotations

from omnigraph.lang.query.syntax import (
    Aggregate,
    AliasRef,
    Assignment,
    BoolLiteral,
    Comparison,
    Condition,
    DateLiteral,
    DateTimeLiteral,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Now,
    Ordering,
    ParameterSyntax,
    Projection,
    PropertyMatch,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    Traversal,
    Variable,
)
from omnigraph.lang.tokens import spell_float, spell_string


def spell_expression(expression: Expression) -> str:
    """An expression as a query writes it; strings and floats as the author did."""
    match expression:
        case Variable(name):
            return f"${name}"
        case PropertyRef(variable, name):
            return f"${variable.name}.{name}"
        case AliasRef(name):
            return name
        case StringLiteral(value, written):
            return spell_string(value) if written is None else written
        case IntegerLiteral(value):
            return str(value)
        case FloatLiteral(value, written):
            return spell_float(value) if written is None else written
        case BoolLiteral(value):
            return "true" if value else "false"
        case DateLiteral(text):
            return f"date({spell_string(text)})"
        case DateTimeLiteral(text):
            return f"datetime({spell_string(text)})"
        case ListLiteral(items):
            return f"[{', '.join(spell_expression(item) for item in items)}]"
        case Now():
            return "now()"
        case Aggregate(function, argument, distinct):
            return f"{function}({'distinct ' if distinct else ''}{spell_expression(argument)})"
        case TextCall(function, subject, query, edits):
            return _call(function, subject, query, edits)
        case ScoreCall(function, operands):
            return _call(function, *operands)


def _call(function: str, *arguments: Expression | None) -> str:
    return f"{function}({', '.join(spell_expression(a) for a in arguments if a is not None)})"


def spell_projection(projection: Projection) -> str:
    """`expression as alias`."""
    alias = "" if projection.alias is None else f" as {projection.alias}"
    return spell_expression(projection.expression) + alias


def spell_ordering(ordering: Ordering) -> str:
    """`expression desc`."""
    direction = "" if ordering.direction is None else f" {ordering.direction}"
    return spell_expression(ordering.expression) + direction


def spell_assignment(assignment: Assignment | PropertyMatch) -> str:
    """`p: value`."""
    return f"{assignment.property}: {spell_expression(assignment.value)}"


def spell_condition(condition: Condition) -> str:
    """`p op value`."""
    return f"{condition.property} {condition.operator} {spell_expression(condition.value)}"


def spell_comparison(comparison: Comparison) -> str:
    """`left op right`."""
    left, right = spell_expression(comparison.left), spell_expression(comparison.right)
    return f"{left} {comparison.operator} {right}"


def spell_traversal(traversal: Traversal) -> str:
    """`$a edge $b` in all its forms."""
    edge = f"<{traversal.edge}>" if traversal.undirected else traversal.edge.text
    if traversal.edge_variable is not None:
        edge = f"${traversal.edge_variable.name}:{edge}"
    if traversal.hops is not None:
        maximum = "" if traversal.hops.maximum is None else str(traversal.hops.maximum)
        edge += f"{{{traversal.hops.minimum},{maximum}}}"
    return f"${traversal.source.name} {edge} ${traversal.target.name}"


def spell_parameter(parameter: ParameterSyntax) -> str:
    """`$name: Type`."""
    shown = parameter.type_name
    if parameter.dimension is not None:
        shown += f"({parameter.dimension})"
    if parameter.is_list:
        shown = f"[{shown}]"
    return f"${parameter.name}: {shown}{'?' if parameter.nullable else ''}"
