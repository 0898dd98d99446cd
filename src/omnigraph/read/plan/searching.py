"""Whether the nearest vectors are looked for in an index, and how far the search goes to find enough of them."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Node, Pattern
from omnigraph.read.plan.access import forced_path
from omnigraph.read.run.nearest import IndexedSearch, SearchNearest
from omnigraph.read.run.ranking import resolved
from omnigraph.storage.nearest import VectorIndex, vector_index

REFINE: Final = 4
"""An index knows vectors by a few bits for each number, so it is asked for so many times the rows that are wanted;
their exact distances decide."""

_LOSS: Final = (1.2, 1.3)
"""How many of the nearest are missed: e^-(a + b·p/√n) of them if p of n partitions are searched."""


@dataclass(frozen=True, slots=True)
class _Known:
    """The index of a column, or that there is none, as the cache keeps it."""

    index: VectorIndex | None
    nbytes: int = 512


def probes_for(recall: float, partitions: int) -> int:
    """In how many partitions to look for that share of the nearest vectors, and half of what may be missed to
    spare: data differ."""
    start, slope = _LOSS
    share = (-log((1 - recall) / 2) - start) / slope
    return max(1, min(partitions, ceil(share * sqrt(partitions))))


def nearest_search(query: ir.QueryIR, pattern: Pattern, tables: GraphTables, wanted: int) -> SearchNearest | None:
    """The step that finds the rows of a query by an index of vectors; None if they are found in memory.

    The query has to take the nearest of all entities of a type, and the type has to be large.
    """
    settings = tables.settings
    if not wanted or settings.recall >= 1 or forced_path() == "memory":
        return None
    score, node = _ranked(query), _only(pattern)
    if score is None or node is None or wanted * REFINE > settings.lookup_rows:
        return None
    table = tables.nodes(node.type_name)
    if table.count < settings.search_from:
        return None
    index = _index(table, score.property, tables)
    if index is None or index.metric != score.metric or table.count - index.rows > settings.search_from:
        return None
    search = IndexedSearch(index, probes_for(settings.recall, index.partitions), REFINE)
    return SearchNearest(node, score, search, wanted)


def _ranked(query: ir.QueryIR) -> ir.Nearest | None:
    """The ranking of a query that is ordered by the distance of a vector first, and has no other scores."""
    if query.aggregates or query.distinct or len(query.rankings) != 1 or not query.order:
        return None
    first = query.order[0]
    score = resolved(first.expression, query)
    return score if isinstance(score, ir.Nearest) and not first.descending else None


def _only(pattern: Pattern) -> Node | None:
    """The only variable of a pattern, if it matches all entities of its type."""
    if len(pattern.nodes) != 1 or pattern.links or pattern.rest:
        return None
    [node] = pattern.nodes.values()
    return node if node.is_free else None


def _index(table: WholeTable, column: str, tables: GraphTables) -> VectorIndex | None:
    key = (table.ref, ("vector index", column))
    return tables.cache.get(key, lambda: _Known(vector_index(tables.storage, table.ref, column))).index
