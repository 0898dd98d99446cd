"""The parts of a query that are written on one line: expressions, and what is made of nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.lang.query.syntax.clauses import PropertyMatch, Requirement, Traversal
from omnigraph.lang.query.syntax.expressions import (
    COMPUTED,
    SUMS,
    WORD_OPERATORS,
    Aggregate,
    AliasRef,
    Arithmetic,
    BoolLiteral,
    Case,
    Comparison,
    Computed,
    Connected,
    DateLiteral,
    DateTimeLiteral,
    Duration,
    Everything,
    Expression,
    FloatLiteral,
    FunctionCall,
    IntegerLiteral,
    ListLiteral,
    Minus,
    Not,
    Now,
    NullTest,
    PropertyRef,
    ScoreCall,
    StringLiteral,
    TextCall,
    Variable,
    Whole,
)
from omnigraph.lang.query.syntax.queries import Assignment, Condition, Ordering, ParameterSyntax, Projection
from omnigraph.lang.tokens import spell_float, spell_string


def spell_expression(expression: Expression) -> str:
    """An expression as a query writes it; strings and floats as the author did."""
    match expression:
        case Variable(name):
            return f"${name}"
        case PropertyRef(variable, name):
            return f"${variable.name}.{name}"
        case Whole(variable):
            return f"${variable.name}.*"
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
        case _ if isinstance(expression, COMPUTED):
            return _computed(expression)
        case Everything():
            return "*"
        case Aggregate(function, argument, distinct, fraction):
            last = "" if fraction is None else f", {spell_expression(fraction)}"
            return f"{function}({'distinct ' if distinct else ''}{spell_expression(argument)}{last})"
        case TextCall(function, subject, query, edits):
            return _call(function, subject, query, edits)
        case ScoreCall(function, operands):
            return _call(function, *operands)


def _computed(expression: Computed) -> str:
    match expression:
        case Comparison(left, operator, right):
            return f"{_within(left, _SUM)} {operator} {_within(right, _SUM)}"
        case NullTest(operand, negated):
            return f"{_within(operand, _SUM)} is {'not null' if negated else 'null'}"
        case Connected(connective, operands):
            return f" {connective} ".join(_within(one, _level(expression) + 1) for one in operands)
        case Not(Comparison(left, operator, right)) if operator in WORD_OPERATORS:
            return f"{_within(left, _SUM)} not {operator} {_within(right, _SUM)}"
        case Not(operand):
            return f"not {_within(operand, _SUM)}"
        case Arithmetic(operator, left, right):
            level = _level(expression)
            return f"{_within(left, level)} {operator} {_within(right, level + 1)}"
        case Minus(operand):
            inner = _within(operand, _SIGNED)
            is_number = isinstance(operand, IntegerLiteral | FloatLiteral | Duration)
            return f"-({inner})" if is_number else f"-{inner}"
        case Duration(amount, unit):
            return f"{amount} {unit if amount == 1 else unit + 's'}"
        case Case(branches, otherwise):
            shown = [f"when {spell_expression(b.condition)} then {spell_expression(b.value)}" for b in branches]
            last = [] if otherwise is None else [f"else {spell_expression(otherwise)}"]
            return " ".join(["case", *shown, *last, "end"])
        case FunctionCall(function, operands):
            return _call(function, *operands)


_OR, _AND, _NOT, _COMPARED, _SUM, _PRODUCT, _SIGNED, _WHOLE = range(8)
"""How tightly the operators of an expression bind, from the loosest on."""


def _level(expression: Expression) -> int:
    match expression:
        case Connected(connective):
            return _OR if connective == "or" else _AND
        case Not(Comparison(_, operator)) if operator in WORD_OPERATORS:
            return _COMPARED
        case Not():
            return _NOT
        case Comparison() | NullTest():
            return _COMPARED
        case Arithmetic(operator):
            return _SUM if operator in SUMS else _PRODUCT
        case Minus():
            return _SIGNED
        case _:
            return _WHOLE


def _within(expression: Expression, level: int) -> str:
    """An operand, in parentheses if it binds more loosely than the operator around it."""
    spelled = spell_expression(expression)
    return f"({spelled})" if _level(expression) < level else spelled


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


def spell_assignment(assignment: Assignment | PropertyMatch | Requirement) -> str:
    """`p: value`, or a condition in its place."""
    if isinstance(assignment, Requirement):
        return spell_expression(assignment.condition)
    return f"{assignment.property}: {spell_expression(assignment.value)}"


def spell_where(conditions: Sequence[Condition | Requirement]) -> str:
    """`where p op value and …`."""
    return f"where {' and '.join(_condition(one, len(conditions)) for one in conditions)}"


def _condition(condition: Condition | Requirement, count: int) -> str:
    if isinstance(condition, Requirement):
        return _within(condition.condition, _OR if count == 1 else _NOT)
    return f"{condition.property} {condition.operator} {spell_expression(condition.value)}"


def spell_traversal(traversal: Traversal) -> str:
    """`$a edge $b` in all its forms."""
    edge = "|".join(name.text for name in traversal.edges)
    if traversal.undirected:
        edge = f"<{edge}>"
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
