"""Scans inside blocks that are joined by equal properties to a variable bound before, instead of crossed with
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from omnigraph.lang.query import ir
from omnigraph.read.data.equality import Equality, Side, ValueHop
from omnigraph.read.data.rows import Rows
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Link

_VALUE = "value#"
Hops = tuple[Link, Link]
"""From a bound variable to its value, and from there to the scanned variable."""


def joining_hops(
    scan: ir.NodeScan, later: Sequence[ir.Operation], bound: Mapping[str, Rows], tables: GraphTables
) -> Hops | None:
    """The hops that find what a scan has to find, if conditions that follow it equate its properties with those of
    a variable that is bound to nodes in memory; None if none do."""
    properties: dict[str, list[tuple[str, str]]] = {}
    for condition in (*scan.filters, *later):
        match condition:
            case ir.Filter(ir.Prop() as left, ir.Op.EQ, ir.Prop() as right):
                own, other = (left, right) if left.variable == scan.variable else (right, left)
                if own.variable == scan.variable and other.variable in bound:
                    properties.setdefault(other.variable, []).append((other.property, own.property))
    for variable, pairs in properties.items():
        type_name = _node_type(bound[variable], tables)
        if type_name is not None and not _has_blob(scan.type_name, [own for _, own in pairs], tables):
            others, names = tuple(one for one, _ in pairs), tuple(one for _, one in pairs)
            outer, inner = Side(type_name, others), Side(scan.type_name, names)
            equality = Equality(outer, inner)
            return (
                Link(variable, _VALUE, ", ".join(others), ir.Direction.OUT, value=ValueHop(equality, outer)),
                Link(_VALUE, scan.variable, ", ".join(names), ir.Direction.IN, value=ValueHop(equality, inner)),
            )
    return None


def _node_type(rows: Rows, tables: GraphTables) -> str | None:
    """The type of rows that are all nodes of a type, by their positions in memory."""
    entity = getattr(rows, "entity", None)
    if entity is None or entity.name not in tables.catalog.nodes or rows is not tables.nodes(entity.name):
        return None
    return str(entity.name)


def _has_blob(type_name: str, names: Sequence[str], tables: GraphTables) -> bool:
    properties = tables.catalog.nodes[type_name].properties
    return any(name in properties and properties[name].type.is_blob for name in names)
