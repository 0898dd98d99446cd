"""Following edges: which nodes lead to which, in one hop or in several, each pair once."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from omnigraph.errors import NotOnSpark
from omnigraph.lang.query.ir import Direction
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.spark.queries.scanning import Bound, Tables
from omnigraph.spark.queries.steps import Hop

_MAX_HOPS: Final = 32
"""Each hop adds a join and a grouping to the plan, and Spark takes long to optimise long plans."""


def max_hops(hop: Hop, graph: Snapshot) -> int:
    """How many hops to follow: no shortest way has more hops than there are nodes. Refuses too many for Spark."""
    nodes = graph.rows(graph.catalog.nodes[hop.edge.source].table_key)
    hops = min(hop.max_hops, max(nodes, 1))
    if hops > _MAX_HOPS:
        what = f"`{hop.edge.name}` over up to {hops} hops"
        raise NotOnSpark(what, f"follow at most {_MAX_HOPS}, or use the embedded engine")
    return hops


def pairs(tables: Tables, edge: EdgeType, direction: Direction) -> tuple[DataFrame, str, str]:
    """Each pair of neighbours once: where an edge starts as it is followed, and where it leads."""
    frame, at, to = _followed(tables, edge, direction)
    is_distinct = direction is not Direction.BOTH and any(set(one) == {"src", "dst"} for one in edge.uniques)
    return (frame if is_distinct else frame.distinct()), at, to


def _followed(tables: Tables, edge: EdgeType, direction: Direction) -> tuple[DataFrame, str, str]:
    """The ends of all edges of a type, as they are followed; several edges may have the same."""
    frame, source, target = tables.ends(edge)
    match direction:
        case Direction.OUT:
            return frame, source, target
        case Direction.IN:
            return frame, target, source
        case Direction.BOTH:
            return _both_ways(tables, frame, source, target)


def edges(tables: Tables, hop: Hop) -> tuple[DataFrame, Bound, str, str]:
    """The edges that a hop names, one row for each way in which one can be followed; a loop leads one way."""
    assert hop.edges is not None  # noqa: S101  asked of hops that name their edges
    frame, bound, source, target = tables.edges(hop.edges)
    match hop.direction:
        case Direction.OUT:
            return frame, bound, source, target
        case Direction.IN:
            return frame, bound, target, source
        case Direction.BOTH:
            both, at, to = _both_ways(tables, frame, source, target)
            return both, bound, at, to


def _both_ways(tables: Tables, frame: DataFrame, source: str, target: str) -> tuple[DataFrame, str, str]:
    """The rows once for each way from one end to the other, with the names of the ends."""
    at, to, way = tables.fresh(), tables.fresh(), tables.fresh()
    forth = fn.struct(fn.col(source).alias(at), fn.col(target).alias(to))
    back = fn.struct(fn.col(target).alias(at), fn.col(source).alias(to))
    ways = fn.when(fn.col(source) == fn.col(target), fn.array(forth)).otherwise(fn.array(forth, back))
    rest = [name for name in frame.columns if name not in (source, target)]
    opened = frame.select(*rest, fn.explode(ways).alias(way))
    return opened.select(*rest, fn.col(f"{way}.{at}"), fn.col(f"{way}.{to}")), at, to


def reached(tables: Tables, hop: Hop, sources: DataFrame) -> tuple[DataFrame, str, str]:
    """What each source is related to by several hops: pairs of the source and a node, by the shortest way.

    ``sources`` has one column, of distinct ids. A loop at the right variable of the clause makes up for one hop
    that the way is too short. Every hop joins what was found with the edges and, so that it is not lost, with the
    nodes themselves: so the plan has each hop once.
    """
    links, at, to, step = _links(tables, hop)
    origin, here, far = (tables.fresh() for _ in range(3))
    [given] = sources.columns
    found = sources.select(fn.col(given).alias(origin), fn.col(given).alias(here), fn.lit(0).alias(far))
    for distance in range(max_hops(hop, tables.graph)):
        near = (fn.col(step) == 0) | (fn.col(far) == distance)
        ahead = found.join(links, fn.col(here) == fn.col(at)).where(near)
        shortest = fn.min(fn.col(far) + fn.col(step)).alias(far)
        found = ahead.groupBy(origin, to).agg(shortest).withColumnRenamed(to, here)
    looped, loop = _loops(tables, hop)
    joined = found.join(looped, fn.col(origin if hop.backwards else here) == fn.col(loop), "left")
    by_loop = (fn.col(far) == hop.min_hops - 1) & fn.col(loop).isNotNull()
    return joined.where((fn.col(far) >= hop.min_hops) | by_loop).select(origin, here), origin, here


def _loops(tables: Tables, hop: Hop) -> tuple[DataFrame, str]:
    """The ids of nodes that have an edge to themselves."""
    frame, source, target = tables.ends(hop.edge)
    return frame.where(fn.col(source) == fn.col(target)).select(source).distinct(), source


def _links(tables: Tables, hop: Hop) -> tuple[DataFrame, str, str, str]:
    """Neighbours, one step apart, if there is such a node; and every node with itself, no step apart."""
    near, at, to = _followed(tables, hop.edge, hop.direction)
    ids, own = tables.ids(tables.graph.catalog.nodes[hop.edge.source])
    step = tables.fresh()
    existing = near.join(ids, fn.col(to) == fn.col(own), "left_semi")
    apart = existing.select(at, to, fn.lit(1).alias(step))
    itself = ids.select(fn.col(own).alias(at), fn.col(own).alias(to), fn.lit(0).alias(step))
    return apart.unionByName(itself), at, to, step
