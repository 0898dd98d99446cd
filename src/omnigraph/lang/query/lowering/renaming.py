"""Renaming the variables of lowered operations, so that equal names of different blocks stay apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from omnigraph.lang.query import ir


def rename(operations: Iterable[ir.Operation], names: Mapping[str, str]) -> tuple[ir.Operation, ...]:
    """The operations with other names for some of their variables."""
    return tuple(_operation(operation, names) for operation in operations)


def _operation(operation: ir.Operation, names: Mapping[str, str]) -> ir.Operation:
    match operation:
        case ir.NodeScan(variable, type_name, filters):
            return ir.NodeScan(names.get(variable, variable), type_name, _filters(filters, names))
        case ir.Expand():
            edge, closes = operation.edge_variable, operation.closes
            return replace(
                operation,
                source=names.get(operation.source, operation.source),
                target=names.get(operation.target, operation.target),
                target_filters=_filters(operation.target_filters, names),
                edge_variable=None if edge is None else names.get(edge, edge),
                closes=None if closes is None else names.get(closes, closes),
            )
        case ir.Filter():
            return _filter(operation, names)
        case ir.Optionally(inner, introduces):
            return ir.Optionally(rename(inner, names), _all(introduces, names))
        case ir.AntiJoin(outer, inner):
            return ir.AntiJoin(_all(outer, names), rename(inner, names))


def _filters(filters: Iterable[ir.Filter], names: Mapping[str, str]) -> tuple[ir.Filter, ...]:
    return tuple(_filter(condition, names) for condition in filters)


def _filter(condition: ir.Filter, names: Mapping[str, str]) -> ir.Filter:
    renamed = ir.replaced(condition, lambda part: _renamed(part, names))
    assert isinstance(renamed, ir.Filter)  # noqa: S101
    return renamed


def _renamed(expression: ir.Expr, names: Mapping[str, str]) -> ir.Expr | None:
    """What a condition may hold: rankings and aggregates are no conditions."""
    match expression:
        case ir.Prop(variable) | ir.TextMatch(_, variable):
            return replace(expression, variable=names.get(variable, variable))
        case ir.Var(name):
            return ir.Var(names.get(name, name))
        case _:
            return None


def _all(variables: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(variable, variable) for variable in variables)
