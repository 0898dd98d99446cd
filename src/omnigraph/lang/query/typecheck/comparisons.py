"""Which types can be compared, by which operator."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.syntax.expressions import Comparison, Expression, ListLiteral, StringLiteral
from omnigraph.lang.query.typecheck.scope import Context
from omnigraph.lang.values import NUMERIC, Scalar, ValueType, compatible


def check_comparison(clause: Comparison, left: ValueType, right: ValueType, context: Context) -> None:
    """Report two types that an operator cannot compare, and warn of a comparison that never matches."""
    problem = comparison_problem(clause, left, right)
    if problem is not None:
        context.report("T7", problem, clause.span, remedy_of(clause, left, right))
        return
    for side, other in ((left, clause.right), (right, clause.left)):
        if side.members is None or not isinstance(other, StringLiteral) or clause.operator != "=":
            continue
        if not side.has_member(other.value):
            context.warn(
                "L302",
                f'"{other.value[:40]}" is not one of the enum\'s values, so this never matches',
                other.span,
                partial(suggest, other.value, side.members),
            )


def comparison_problem(clause: Comparison, left: ValueType, right: ValueType) -> str | None:
    """Why two types cannot be compared by an operator; None if they can."""
    operator = clause.operator
    if left.is_blob or right.is_blob:
        return "a Blob cannot be compared"
    if operator == "starts_with":
        if left.is_string and right.is_string:
            return None
        return f"`starts_with` compares String with String, not {left} with {right}"
    if operator == "contains":
        if left.is_list:
            return _membership_problem(operator, clause.left, left, right)
        if left.is_string and right.is_string:
            return None
        return (
            f"`contains` needs a list or a String on the left and one value on the right, not {left} and {right}"
        )
    if operator == "in":
        if not right.is_list:
            return f"`in` needs a list on the right, not {right}"
        return _membership_problem(operator, clause.right, right, left)
    for side in (left, right):
        if not side.is_plain:
            what = "a list" if side.is_list else "a vector"
            return f"{what} cannot be compared by `{operator}`"
    if not compatible(left, right):
        return f"{left.required()} cannot be compared with {right.required()}"
    return None


def remedy_of(clause: Comparison, left: ValueType, right: ValueType) -> str | None:
    """How two values that cannot be compared could be."""
    sides = {
        left.item.scalar if left.is_list else left.scalar,
        right.item.scalar if right.is_list else right.scalar,
    }
    texts = [side.value for side in (clause.left, clause.right) if isinstance(side, StringLiteral)]
    if left.is_blob or right.is_blob or left.is_vector or right.is_vector:
        return None
    if clause.operator not in ("in", "contains") and (left.is_list or right.is_list):
        return "ask for an item: `contains`, `in`; or compare `size(…)`, `first(…)` or `last(…)`"
    return conversion(sides, texts)


def conversion(sides: Set[Scalar], texts: Sequence[str] = ()) -> str | None:
    """How values of one type become those of the other; ``texts`` are the literals among them."""
    moments = sides & {Scalar.DATE, Scalar.DATETIME}
    if len(moments) == len(sides) > 1:
        return "make both a Date or both a DateTime: `to_date(…)`, `to_datetime(…)`"
    if moments and Scalar.STRING in sides:
        word = next(iter(moments)).lower()
        return f'write `{word}("{texts[0]}")`' if texts else f"make a {next(iter(moments))} of it: `to_{word}(…)`"
    if sides & NUMERIC and Scalar.STRING in sides:
        return "numbers are written without quotes" if texts else "make both alike: `to_string(…)`, `to_float(…)`"
    if Scalar.STRING in sides and len(sides) > 1:
        return "make a text of the other one: `to_string(…)`"
    if Scalar.BOOL in sides and len(sides) > 1:
        return "a Bool is compared with `true`, `false` or another Bool"
    return None


def _membership_problem(operator: str, list_side: Expression, list_type: ValueType, item: ValueType) -> str | None:
    if not item.is_plain:
        return f"`{operator}` looks for one value in a list, not for {item}"
    empty = isinstance(list_side, ListLiteral) and not list_side.items
    if not empty and not compatible(list_type.item, item):
        return f"{list_type} cannot hold {item.required()}"
    return None
