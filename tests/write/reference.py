"""A second opinion on the evaluator's rules, in plain Python: apply the whole change, then look at everything."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType

Rows = dict[str, dict[str, Any]]
"""Rows by id."""


@dataclass
class Change:
    """The change of one table: rows written, ids deleted, or a whole new content."""

    upserts: Rows = field(default_factory=dict)
    deletes: set[str] = field(default_factory=set)
    replaces: bool = False


Graph = Mapping[str, Rows]
Changes = Mapping[str, Change]


def after(graph: Graph, changes: Changes) -> dict[str, Rows]:
    """The graph once the changes are made."""
    done: dict[str, Rows] = {}
    for table_key, rows in graph.items():
        change = changes.get(table_key, Change())
        kept = {} if change.replaces else {name: row for name, row in rows.items() if name not in change.deletes}
        done[table_key] = {**kept, **change.upserts}
    return done


def complaints(catalog: Catalog, graph: Graph, changes: Changes) -> list[str]:
    """Every message the evaluator owes, sorted. What was there before must be without fault."""
    image = after(graph, changes)
    found: list[str] = []
    for node in catalog.nodes.values():
        found += _shared(node, image[node.table_key])
    for edge in catalog.edges.values():
        found += _shared(edge, image[edge.table_key])
        found += _dangling(edge, image)
        found += _miscounted(edge, graph, changes, image)
    return sorted(found)


def _shared(entity: EntityType, rows: Rows) -> Iterator[str]:
    for group in entity.uniques:
        holders = defaultdict(list)
        for name, row in rows.items():
            values = tuple(row[column] for column in group)
            if None not in values:
                holders[values].append(name)
        for values, names in holders.items():
            if len(names) > 1:
                shown = [str(value + 0.0 if isinstance(value, float) else value) for value in values]
                where = group[0] if len(group) == 1 else f"({', '.join(group)})"
                value = shown[0] if len(group) == 1 else f"({', '.join(shown)})"
                held = f"held by '{min(names)}' and '{max(names)}'"
                yield f"@unique violation on {entity.name}.{where}: value '{value}' {held}"


def _dangling(edge: EdgeType, image: Graph) -> Iterator[str]:
    for name, row in image[edge.table_key].items():
        for column, node_type in (("src", edge.source), ("dst", edge.target)):
            if row[column] not in image[f"node:{node_type}"]:
                yield f"{column} '{row[column]}' not found in {node_type} (edge {edge.name} '{name}')"


def _miscounted(edge: EdgeType, graph: Graph, changes: Changes, image: Graph) -> Iterator[str]:
    change = changes.get(edge.table_key)
    if change is None:
        return
    before = {} if change.replaces else graph[edge.table_key]
    touched = {row["src"] for row in change.upserts.values()}
    touched |= {row["src"] for name, row in before.items() if name in change.upserts or name in change.deletes}
    touched -= changes.get(f"node:{edge.source}", Change()).deletes
    counts = Counter(row["src"] for row in image[edge.table_key].values())
    for source in touched:
        said = f"@card violation on edge {edge.name}: source '{source}' has {counts[source]} edges"
        if edge.maximum is not None and counts[source] > edge.maximum:
            yield f"{said} (max {edge.maximum})"
        elif counts[source] < edge.minimum:
            yield f"{said} (min {edge.minimum})"
