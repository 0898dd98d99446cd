"""Whether the nearest vectors of a large table are looked up by their index, or found among those in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.lang.query import ir
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Node, Pattern
from omnigraph.read.plan.access import forced_path
from omnigraph.read.run.search.ranking import resolved

if TYPE_CHECKING:
    from omnigraph.read.run.search.indexed import IndexedSearch, PartitionedSearch
    from omnigraph.read.run.search.nearest import SearchNearest


def nearest_search(query: ir.QueryIR, pattern: Pattern, tables: GraphTables, wanted: int) -> SearchNearest | None:
    """The step that looks up the rows of a query by an index of vectors; None if they are found in memory.

    The query has to take the nearest of all entities of a type. A table that is searched often is read after all.
    """
    score, node = ranked_first(query), _only(pattern)
    if score is None or node is None or forced_path() == "memory":
        return None
    from omnigraph.read.run.search.indexed import indexed_search
    from omnigraph.read.run.search.nearest import SearchNearest

    table = tables.nodes(node.type_name)
    search = indexed_search(table, score, wanted, tables.settings)
    if search is None or table.keeps_vectors(score.property, score.dimension):
        return None
    return SearchNearest(node, score, search, wanted)


def way_of_ranking(query: ir.QueryIR, pattern: Pattern, tables: GraphTables, wanted: int) -> str:
    """How the scores of a query whose rows are in memory choose the first of them, in words."""
    from omnigraph.read.run.search.indexed import indexed_search, partitioned_search

    score = ranked_first(query)
    search: IndexedSearch | PartitionedSearch | None = None
    if score is not None and score.variable in pattern.nodes:
        table = tables.nodes(pattern.nodes[score.variable].type_name)
        search = indexed_search(table, score, wanted, tables.settings)
        if search is not None and table.has_partitions(score.property, score.metric):
            search = partitioned_search(table, score, tables.settings) or search
    if search is None:
        return "exact, in memory"
    if _only(pattern) is not None:
        return f"{search}, in memory"
    return f"{search}, in memory; exact if few of all ${score.variable if score else ''} match"


def ranked_first(query: ir.QueryIR) -> ir.Nearest | None:
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
