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

from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Node, Pattern
from omnigraph.read.pattern.starts import Starts, fixed_properties

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


def lookup_start(pattern: Pattern, starts: Starts, tables: GraphTables) -> str | None:
    """The variable from which a query should be answered by look-ups; None if by memory."""
    forced = _FORCED.get()
    if forced == "memory" or not starts.possible:
        return None
    if forced == "index":
        return (starts.keyed or tuple(pattern.nodes))[0]
    if not starts.connected:
        return None
    return starts.keyed[0] if _pays(pattern, tables) else None


def _pays(pattern: Pattern, tables: GraphTables) -> bool:
    """Is a large table of the query not in memory, and not looked up often enough for reading it to pay?"""
    edges = [table for link in pattern.links for table in tables.each_edges(link.edge_type)]
    nodes = any(_pays_for_nodes(node, tables) for node in pattern.nodes.values())
    if not nodes and not any(_pays_for_edges(table, tables) for table in edges):
        return False
    return not _is_quicker_whole(pattern, edges, tables)


def _is_quicker_whole(pattern: Pattern, edges: list[WholeTable], tables: GraphTables) -> bool:
    """Is it quicker to read all nodes and the saved topology than to compare the files of the edges with their
    checksums, which the first look-up in a process does?"""
    settings = tables.settings
    if pattern.rest or any(link.edge_variable is not None for link in pattern.links):
        return False  # what is saved are the pairs of nodes that a pattern's own links connect
    checked = sum(
        min(table.count, settings.edges_checked)
        for table in dict.fromkeys(edges)
        if table.count > settings.small_table and tables.storage.is_to_verify(table.ref)
    )
    types = {node.type_name for node in pattern.nodes.values()}
    rows = sum(tables.nodes(name).count for name in types)
    return rows * settings.edges_per_node <= checked and all(
        tables.has_adjacency(table.entity.name) or tables.has_saved_adjacency(table.entity.name) for table in edges
    )


def _pays_for_nodes(node: Node, tables: GraphTables) -> bool:
    table, settings = tables.nodes(node.type_name), tables.settings
    fixed = fixed_properties(node)
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
