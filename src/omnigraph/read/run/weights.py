"""Counting without enumerating: how often each position of a variable matches its subtrees.

The count of a tree is a product over its branches of sums over neighbours, so it costs one pass over the edges of
each branch, however many paths there are.
"""

from __future__ import annotations

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.table import may_fail
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import Node, Reach
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.relations import adjacency_of, rows_of
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.read.values.comparing import places_of
from omnigraph.read.values.counting import product, segment_sums


class Weights:
    """The counts of one execution; those of whole types are kept until its end."""

    def __init__(self, tables: GraphTables, expressions: Expressions, limits: Limits) -> None:
        self.tables = tables
        self.expressions = expressions
        self.limits = limits
        self._whole: dict[int, tuple[Node, Array]] = {}

    def of(self, node: Node, positions: Array | None = None) -> Array:
        """For each of the positions (None: all) how often the node's tree matches there: truth values if it can be
        at most once, else counts."""
        if positions is None:
            return self.everywhere(node)
        size = rows_of(self.tables, node).size
        if len(positions) > size or (id(node) in self._whole):
            return self.everywhere(node)[positions]
        return self._weigh(node, positions)

    def everywhere(self, node: Node) -> Array:
        """The counts for the whole type."""
        found = self._whole.get(id(node))
        if found is None:
            self.limits.check()
            found = self._whole[id(node)] = (node, self._weigh(node, None))
        return found[1]

    def matching(self, node: Node) -> tuple[Positions, Ints | None]:
        """The positions at which the node's tree matches, and how often it does; None if once everywhere."""
        few = self._found(node)
        weights = self.everywhere(node) if few is None else self._weigh(node, few)
        index = np.flatnonzero(weights)
        positions = index.astype(np.int32) if few is None else few[index]
        return positions, None if weights.dtype == np.bool_ else weights[index].astype(np.int64)

    def _found(self, node: Node) -> Positions | None:
        """The positions with the value that a condition asks for, if a column of the type is in order by value."""
        rows = rows_of(self.tables, node)
        if rows.size < self.tables.settings.order_from or id(node) in self._whole:
            return None
        if any(map(may_fail, node.filters)):  # whether they do must not depend on which rows they are put to
            return None
        for condition in node.filters:
            match condition:
                case ir.Filter(ir.Prop(name, prop), ir.Op.EQ, ir.Param() | ir.Constant() as right):
                    value, column = self.expressions.constant(right), rows.column(prop)
                    places = places_of(column, value) if name == node.variable and column.is_ordered else None
                    if places is not None:
                        return np.sort(places if rows.live is None else places[rows.live[places]])
        return None

    def _weigh(self, node: Node, positions: Array | None) -> Array:
        rows = rows_of(self.tables, node)
        count = rows.size if positions is None else len(positions)
        held = self._filtered(node, positions, count)
        if not node.has_subtrees:
            return np.ones(count, dtype=np.bool_) if held is None else held
        if held is not None:
            index = np.flatnonzero(held)
            if len(index) * 4 < count * 3:
                inner = self._subtrees(node, index if positions is None else positions[index])
                spread = np.zeros(count, dtype=inner.dtype)
                spread[index] = inner
                return spread
        weights = self._subtrees(node, positions)
        return weights if held is None else product(weights, held)

    def _filtered(self, node: Node, positions: Array | None, count: int) -> Bools | None:
        """Which positions have a row that satisfies the node's own conditions; None if all have."""
        rows = rows_of(self.tables, node)
        held = rows.live if positions is None else None
        for condition in node.filters:
            here = rows.whole if positions is None else positions
            frame = Frame(count, {node.variable: rows}, {node.variable: here})
            mask = self.expressions.holds(condition, frame)
            held = mask if held is None else held & mask
        return held

    def _subtrees(self, node: Node, positions: Array | None) -> Array:
        weights: Array | None = None
        for reach in node.reaches:
            counted = self._reach(reach, positions)
            weights = counted if weights is None else product(weights, counted)
        for absent in node.absent:
            none = self.of(absent, positions) == 0
            weights = none if weights is None else product(weights, none)
        for optional in node.optional:
            least = np.maximum(self.of(optional, positions).astype(np.int64), 1)
            weights = least if weights is None else product(weights, least)
        assert weights is not None  # noqa: S101  only called where there are subtrees
        return weights

    def _reach(self, reach: Reach, positions: Array | None) -> Array:
        """For each position the sum of its neighbours' counts."""
        link, child = reach.link, reach.child
        adjacency = adjacency_of(self.tables, link)
        if child.is_free:
            return adjacency.degrees if positions is None else adjacency.degrees[positions]
        if positions is None:
            self.limits.allocate(0, adjacency.pairs * 8)
            return _sums_everywhere(adjacency, self.everywhere(child))
        if adjacency.is_function:
            only = adjacency.only[positions]
            present = np.flatnonzero(only >= 0)
            below = self.of(child, only[present])
            if len(present) == len(only):
                return below
            spread = np.zeros(len(only), dtype=below.dtype)
            spread[present] = below
            return spread
        _, places, counts = adjacency.expand(positions, lambda total: self.limits.allocate(total, total * 32))
        neighbours = adjacency.targets[places]
        return segment_sums(self._of_many(child, neighbours), counts)

    def _of_many(self, child: Node, neighbours: Array) -> Array:
        """Counts at positions that may repeat."""
        if child.has_subtrees and len(neighbours) <= rows_of(self.tables, child).size:
            unique, inverse = np.unique(neighbours, return_inverse=True)
            return self.of(child, unique)[inverse]
        return self.of(child, neighbours)


def _sums_everywhere(adjacency: Adjacency, weights: Array) -> Array:
    if adjacency.is_function:
        only = adjacency.only
        if not len(weights):
            return np.zeros(len(only), dtype=np.bool_)
        found = weights[only]
        return found & (only >= 0) if found.dtype == np.bool_ else np.where(only >= 0, found, 0)
    return adjacency.row_sums(weights)
