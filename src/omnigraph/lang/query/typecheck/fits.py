"""Whether a value fits the property it is compared with or stored in."""

from __future__ import annotations

from functools import partial

from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.query.syntax.expressions import (
    LITERALS,
    Expression,
    FloatLiteral,
    IntegerLiteral,
    ListLiteral,
    Now,
    StringLiteral,
)
from omnigraph.lang.query.typecheck.operands import check_vector_literal, value_type
from omnigraph.lang.query.typecheck.scope import Context, Scope
from omnigraph.lang.schema.catalog import Property
from omnigraph.lang.values import FLOATS, INTEGERS, Scalar, ValueType, compatible, fitting_float, in_range


def check_match(owner: str, prop: Property, value: Expression, scope: Scope, context: Context) -> None:
    """May `p: value` stand in a binding? On a list property it asks for membership."""
    if prop.type.is_blob:
        context.report("T3", f"{owner}.{prop.name} is a Blob and cannot be matched", value.span)
        return
    if prop.type.is_list and isinstance(value, Now):
        context.report("T7", f"`now()` fits a DateTime, and {owner}.{prop.name} is {prop.type}", value.span)
        return
    if prop.type.is_list:
        found = value_type(value, scope, context, "matched")
        if found is not None and not compatible(prop.type.item, found):
            context.report(
                "T3" if isinstance(value, LITERALS) else "T7",
                f"{owner}.{prop.name} is {prop.type}; match one item of type {prop.type.item}, not {found}",
                value.span,
            )
        return
    check_fits(owner, prop, value, scope, context)


def check_fits(owner: str, prop: Property, value: Expression, scope: Scope, context: Context) -> bool:
    """Is a value of the property's type: T3 for literals, T7 for parameters and now()."""
    name, wanted = f"{owner}.{prop.name}", prop.type.required()
    if isinstance(value, ListLiteral) and wanted.dimension is not None:
        before = context.diagnostics.count
        check_vector_literal(value, wanted.dimension, "T3", context)
        return context.diagnostics.count == before
    found = value_type(value, scope, context, f"a value of {name}")
    if found is None:
        return False
    empty = isinstance(value, ListLiteral) and not value.items and wanted.is_list
    if not empty and not compatible(wanted, found):
        literal = isinstance(value, LITERALS)
        context.report(
            "T3" if literal else "T7",
            f"{name} is {wanted}, not {found.required()}",
            value.span,
            _conversion(wanted, value),
        )
        return False
    if isinstance(value, StringLiteral) and wanted.members is not None and not wanted.has_member(value.value):
        close = partial(suggest, value.value, wanted.members)
        context.report("T3", f'"{value.value[:40]}" is not one of {name}\'s values', value.span, close)
        return False
    return True


def check_stored(owner: str, prop: Property, value: Expression, context: Context) -> None:
    """Does a literal of a compatible type survive being stored: in range, and without loss?"""
    literals = value.items if isinstance(value, ListLiteral) else (value,)
    scalar = prop.type.scalar
    for literal in literals:
        if not isinstance(literal, IntegerLiteral | FloatLiteral):
            continue
        if scalar in INTEGERS:
            if literal.value != int(literal.value):
                context.report("T3", f"{owner}.{prop.name} is {scalar} and cannot hold a fraction", literal.span)
            elif not in_range(literal.value, scalar):
                context.report("T3", f"{int(literal.value)} exceeds {scalar}", literal.span)
        elif scalar in FLOATS and fitting_float(literal.value, scalar) is None:
            context.report("T3", f"this number exceeds {scalar}", literal.span)


def _conversion(wanted: ValueType, value: Expression) -> str | None:
    """How to write the value so that it fits."""
    if isinstance(value, StringLiteral):
        if wanted.scalar is Scalar.DATE and wanted.is_plain:
            return f'write `date("{value.value[:40]}")`'
        if wanted.scalar is Scalar.DATETIME and wanted.is_plain:
            return f'write `datetime("{value.value[:40]}")`'
        if wanted.is_blob:
            return "pass it as a parameter"
    if wanted.is_list and not isinstance(value, ListLiteral):
        return "write a list: `[…]`"
    return None
