"""Which way a query finds its rows: whole tables in memory, or look-ups through the indexes of the tables.

A query that starts at one key, or at one value of an indexed property, and takes a few hops touches a handful of
rows; reading whole tables for it would be waste. After enough such queries the tables are read after all, because
from then on that is cheaper.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

from omnigraph.lang.query import ir
from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Node, Pattern

Path = Literal["index", "memory"]
_FORCED: Final[ContextVar[Path | None]] = ContextVar("forced access path", default=None)


@contextmanager
def forced_access(path: Path) -> Iterator[None]:
    """Make all queries of this context take one path, where they can; both give the same rows. For tests."""
    token = _FORCED.set(path)
    try:
        yield
    finally:
        _FORCED.reset(token)


def forced_path() -> Path | None:
    """The path that `forced_access` chose, if any."""
    return _FORCED.get()


def lookup_start(pattern: Pattern, tables: GraphTables) -> str | None:
    """The variable from which a query should be answered by look-ups; None if by memory."""
    forced = _FORCED.get()
    if forced == "memory" or not pattern.nodes or not _can_look_up(pattern):
        return None
    fixed = {name: _fixed(pattern.nodes[name]) for name in pattern.nodes}
    keyed = sorted(
        (name for name in pattern.nodes if _is_indexed(pattern.nodes[name], fixed[name], tables)),
        key=lambda name: not _is_key(pattern.nodes[name], fixed[name], tables),
    )
    if forced == "index":
        return (keyed or list(pattern.nodes))[0]
    if not keyed or not _is_connected(pattern, keyed[0]):
        return None
    return keyed[0] if _pays(pattern, tables) else None


def _can_look_up(pattern: Pattern) -> bool:
    """Can the pattern be answered without whole tables? Chains of hops cannot."""
    return all(link.is_hop for link in pattern.links) and not any(map(_chains, pattern.rest))


def _chains(operation: ir.Operation) -> bool:
    if isinstance(operation, ir.Optionally | ir.AntiJoin):
        return any(map(_chains, operation.inner))
    return isinstance(operation, ir.Expand) and (operation.min_hops, operation.max_hops) != (1, 1)


def _fixed(node: Node) -> set[str]:
    """The properties for which the conditions of a variable say one value."""
    return {
        condition.left.property
        for condition in node.filters
        if condition.op is ir.Op.EQ
        and isinstance(condition.left, ir.Prop)
        and isinstance(condition.right, ir.Param | ir.Constant)
    }


def _is_key(node: Node, fixed: set[str], tables: GraphTables) -> bool:
    """Do these properties hold the id or the whole key?"""
    key = tables.catalog.nodes[node.type_name].key
    return "id" in fixed or (bool(key) and fixed >= set(key))


def _is_indexed(node: Node, fixed: set[str], tables: GraphTables) -> bool:
    """Do these properties hold the id, or all of those that are unique or indexed together?"""
    kind = tables.catalog.nodes[node.type_name]
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


def _pays(pattern: Pattern, tables: GraphTables) -> bool:
    """Is a large table of the query not in memory, and not looked up often enough for reading it to pay?"""
    nodes = any(_pays_for_nodes(node, tables) for node in pattern.nodes.values())
    return nodes or any(
        _pays_for_edges(edges, tables) for link in pattern.links for edges in tables.each_edges(link.edge_type)
    )


def _pays_for_nodes(node: Node, tables: GraphTables) -> bool:
    table, settings = tables.nodes(node.type_name), tables.settings
    fixed = _fixed(node)
    if table.count <= settings.small_table or table.has("id") or (fixed and all(map(table.has, fixed))):
        return False
    return tables.cache.lookups(table.ref.location) * settings.rows_per_lookup < table.count


def _pays_for_edges(edges: WholeTable, tables: GraphTables) -> bool:
    edge_type, settings = edges.entity.name, tables.settings
    if edges.count <= settings.small_table or tables.has_adjacency(edge_type):
        return False
    lookups = tables.cache.lookups(edges.ref.location)
    if lookups >= settings.lookups_for_saved and tables.has_saved_adjacency(edge_type):
        return False
    return lookups * settings.rows_per_lookup < edges.count
