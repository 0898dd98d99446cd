"""Types and columns by the names that callers give. An unknown name is a RequestError that names the nearest."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from omnigraph.errors import RequestError
from omnigraph.lang.diagnostics import suggest
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType, NodeType


def node_type(catalog: Catalog, name: str) -> NodeType:
    """The node type of that name."""
    found = catalog.nodes.get(name)
    if found is None:
        raise unknown_name("node type", name, catalog.nodes)
    return found


def edge_type(catalog: Catalog, name: str) -> EdgeType:
    """The edge type of that name, as declared or as queries write it."""
    found = catalog.edge(name)
    if found is None:
        raise unknown_name("edge type", name, catalog.edges)
    return found


def table_keys(catalog: Catalog, names: Iterable[str] | None = None) -> list[str]:
    """The tables of some types, or of all: nodes before edges, each sorted by name."""
    if names is None:
        return [f"node:{name}" for name in sorted(catalog.nodes)] + [
            f"edge:{name}" for name in sorted(catalog.edges)
        ]
    chosen: set[str] = set()
    for name in names:
        found = {t.table_key for t in (catalog.nodes.get(name), catalog.edge(name)) if t is not None}
        if not found:
            raise unknown_name("type", name, (*catalog.nodes, *catalog.edges))
        chosen |= found
    return [key for key in table_keys(catalog) if key in chosen]


def checked_columns(entity: EntityType, columns: Iterable[str] | None) -> Sequence[str]:
    """Some columns of a type, or all of them."""
    if columns is None:
        return entity.columns
    chosen = list(dict.fromkeys(columns))
    for name in chosen:
        if name not in entity.columns:
            raise unknown_name(f"column of {entity.name} called", name, entity.columns)
    if not chosen:
        raise RequestError(f"no column of {entity.name} is asked for; known: {', '.join(entity.columns)}")
    return chosen


def unknown_name(what: str, name: str, known: Iterable[str]) -> RequestError:
    """The error for a name that is not among the known ones."""
    remedy = suggest(name, known)
    return RequestError(f"there is no {what} '{name}'" + (f"; {remedy}" if remedy else ""))
