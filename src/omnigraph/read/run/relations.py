"""What the variables and links of a pattern stand for: rows of tables, and adjacency between them."""

from __future__ import annotations

import numpy as np

from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.rows import Rows
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Link, Node
from omnigraph.read.values.columns import Array, Bools


def rows_of(tables: GraphTables, node: Node) -> Rows:
    """The rows that a variable ranges over: those of its type, or the values that two others have in common."""
    if node.equality is not None:
        from omnigraph.read.data.equality import equal_values

        return equal_values(tables, node.equality).values
    return tables.nodes(node.type_name)


def reached_by(tables: GraphTables, link: Link, target_type: str) -> Rows:
    """The rows that a link leads to."""
    if link.value is not None and link.direction is Direction.OUT:
        from omnigraph.read.data.equality import equal_values

        return equal_values(tables, link.value.equality).values
    return tables.nodes(target_type)


def adjacency_of(tables: GraphTables, link: Link) -> Adjacency:
    """The adjacency that a link follows: with edges if it binds one."""
    if link.value is not None:
        from omnigraph.read.data.equality import equal_values

        return equal_values(tables, link.value.equality).adjacency(link.value.side, link.direction)
    return tables.adjacency(link.edge_type, link.direction, edges=link.edge_variable is not None)


def are_connected(tables: GraphTables, link: Link, sources: Array, targets: Array) -> Bools:
    """Which pairs of positions a hop connects."""
    adjacency = adjacency_of(tables, link)
    if adjacency.is_function:
        return np.asarray(adjacency.only[sources] == targets)
    if link.source == link.target:
        return adjacency.contains(sources, targets)
    back = adjacency_of(tables, link.from_(link.target))
    if back.is_function:
        return np.asarray(back.only[targets] == sources)
    if back.mean_degree < adjacency.mean_degree:
        return back.contains(targets, sources)
    return adjacency.contains(sources, targets)
