"""What a query needs of its match: which variables, and which properties of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.read.pattern.pattern import mentioned


def entities_of(operations: tuple[ir.Operation, ...]) -> set[str]:
    """The variables that rows bind: nodes and edges, also those of optional blocks."""
    names: set[str] = set()
    for operation in operations:
        match operation:
            case ir.NodeScan(variable, _, _):
                names.add(variable)
            case ir.Expand():
                names.add(operation.target)
                if operation.edge_variable is not None:
                    names.add(operation.edge_variable)
            case ir.Optionally(inner, introduces):
                names |= entities_of(inner) & set(introduces)
    return {name for name in names if "#" not in name}


def needed_by(query: ir.QueryIR, entities: set[str], catalog: Catalog) -> set[str]:
    """The variables that results need. Ordered rows need all, because ids break ties; a count of something that
    every row has needs none."""
    always = _always(query.pipeline, catalog)
    every = (*(column.expression for column in query.columns), *(order.expression for order in query.order))
    names = {name for expression in (*every, *query.having) for name in _needed_for(expression, always)}
    if query.order and not (query.aggregates or query.distinct):
        names |= entities
    return names


def _always(operations: tuple[ir.Operation, ...], catalog: Catalog) -> dict[str, NodeType | EdgeType]:
    """The variables that every row binds, with their types."""
    types: dict[str, NodeType | EdgeType] = {}
    for operation in operations:
        match operation:
            case ir.NodeScan(variable, type_name, _):
                types[variable] = catalog.nodes[type_name]
            case ir.Expand():
                types[operation.target] = catalog.nodes[operation.target_type]
                if operation.edge_variable is not None:
                    types[operation.edge_variable] = catalog.followed(operation.edge_type)
    return types


def _needed_for(expression: ir.Expr | None, always: Mapping[str, NodeType | EdgeType]) -> Iterator[str]:
    """The variables that a returned expression needs."""
    match expression:
        case ir.Agg() if _counts_rows(expression, always):
            return
        case ir.Call(_, operands):
            for operand in operands:
                yield from _needed_for(operand, always)
        case ir.Filter(left, _, right):
            yield from _needed_for(left, always)
            yield from _needed_for(right, always)
        case _:
            yield from mentioned(expression)


def _counts_rows(expression: ir.Expr, always: Mapping[str, NodeType | EdgeType]) -> bool:
    """Is it the count of something that is never null?"""
    match expression:
        case ir.Agg("count", ir.Var(name), False):
            return name in always
        case ir.Agg("count", ir.Prop(name, prop), False) if name in always:
            return prop not in always[name].properties or not always[name].properties[prop].type.nullable
    return False


def aggregates_of(query: ir.QueryIR) -> list[ir.Agg]:
    """The aggregates that a query returns, is ordered by, or keeps groups by; each once."""
    every = (*(column.expression for column in query.columns), *(order.expression for order in query.order))
    found = (part for one in (*every, *query.having) for part in ir.parts(one) if isinstance(part, ir.Agg))
    return list(dict.fromkeys(found))


def properties_of(query: ir.QueryIR) -> dict[str, set[str]]:
    """For each variable the properties that a query reads, wherever it does."""
    found: dict[str, set[str]] = {}
    for part in _parts(query):
        if isinstance(part, ir.Prop | ir.TextMatch | ir.Score):
            found.setdefault(part.variable, set()).add(part.property)
    return found


def _parts(part: object) -> Iterator[object]:
    """A piece of the intermediate representation and all pieces in it."""
    yield part
    if isinstance(part, tuple):
        for one in part:
            yield from _parts(one)
    elif is_dataclass(part) and type(part).__module__ == ir.__name__:
        for field in fields(part):
            yield from _parts(getattr(part, field.name))
