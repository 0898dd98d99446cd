"""From which variables a pattern could be answered by look-ups, whatever is in memory."""

from __future__ import annotations

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.read.pattern.pattern import Node, Pattern
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class Starts:
    """The variables whose key or indexed property has one given value, keys first; and whether links lead from the
    first of them to every other variable."""

    possible: bool
    """Can the pattern be answered without whole tables at all?"""
    keyed: tuple[str, ...] = ()
    connected: bool = False


def starts_of(pattern: Pattern, catalog: Catalog) -> Starts:
    """Where look-ups for a pattern could start."""
    if not pattern.nodes or not _can_look_up(pattern):
        return Starts(possible=False)
    fixed = {name: fixed_properties(node) for name, node in pattern.nodes.items()}
    keyed = sorted(
        (name for name in pattern.nodes if _is_indexed(pattern.nodes[name], fixed[name], catalog)),
        key=lambda name: not _is_key(pattern.nodes[name], fixed[name], catalog),
    )
    return Starts(True, tuple(keyed), bool(keyed) and _is_connected(pattern, keyed[0]))


def _can_look_up(pattern: Pattern) -> bool:
    """Can the pattern be answered without whole tables? Chains of hops cannot."""
    return all(link.is_hop for link in pattern.links) and not any(map(_chains, pattern.rest))


def _chains(operation: ir.Operation) -> bool:
    if isinstance(operation, ir.Optionally | ir.AntiJoin):
        return any(map(_chains, operation.inner))
    return isinstance(operation, ir.Expand) and (operation.min_hops, operation.max_hops) != (1, 1)


def fixed_properties(node: Node) -> set[str]:
    """The properties for which the conditions of a variable say one value."""
    return {
        condition.left.property
        for condition in node.filters
        if condition.op is ir.Op.EQ
        and isinstance(condition.left, ir.Prop)
        and isinstance(condition.right, ir.Param | ir.Constant)
    }


def _is_key(node: Node, fixed: set[str], catalog: Catalog) -> bool:
    """Do these properties hold the id or the whole key?"""
    key = catalog.nodes[node.type_name].key
    return "id" in fixed or (bool(key) and fixed >= set(key))


def _is_indexed(node: Node, fixed: set[str], catalog: Catalog) -> bool:
    """Do these properties hold the id, or all of those that are unique or indexed together?"""
    kind = catalog.nodes[node.type_name]
    return "id" in fixed or any(fixed >= set(group) for group in (*kind.uniques, *kind.indexes))


def _is_connected(pattern: Pattern, start: str) -> bool:
    """Do links lead from the start to every other variable?"""
    reached, grew = {start}, True
    while grew:
        grew = False
        for link in pattern.links:
            if link.ends & reached and not link.ends <= reached:
                reached |= link.ends
                grew = True
    return reached == pattern.nodes.keys()
