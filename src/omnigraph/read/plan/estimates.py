"""Estimates for the planner: how many entities match, how many neighbours there are, and which order is cheapest
for a pattern with cycles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.data.tables import GraphTables
from omnigraph.read.pattern.pattern import Link, Node, Pattern
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.relations import adjacency_of, rows_of

_GATHER: Final = 0.3
"""The cost per row of a link with at most one neighbour; any other link costs 1 for each neighbour."""
_CHECK: Final = 3.0
"""The cost of checking whether two nodes are connected."""


class Estimates:
    """Counts of the variables of one pattern, exact for small types, estimated for others."""

    def __init__(self, tables: GraphTables, expressions: Expressions) -> None:
        self.tables = tables
        self.expressions = expressions
        self.is_particular = False
        """Do the counts depend on the parameters of the query?"""
        self._counts: dict[str, float] = {}

    def of(self, node: Node) -> float:
        """About how many entities match a variable's own conditions."""
        if node.variable not in self._counts:
            self._counts[node.variable] = self._count(node)
        return self._counts[node.variable]

    def whole(self, node: Node) -> int:
        """How many entities the type has."""
        return rows_of(self.tables, node).count

    def adjacency(self, link: Link) -> Adjacency:
        """The adjacency that a link follows."""
        return adjacency_of(self.tables, link)

    def _count(self, node: Node) -> float:
        """About how many positions match a variable's own conditions."""
        rows = rows_of(self.tables, node)
        if not node.filters:
            return rows.count
        if rows.size <= self.tables.settings.estimate_from:
            self.is_particular = True
            own = Node(node.variable, node.type_name, node.filters)
            frame = Frame.of(own.variable, rows, rows.whole)
            held = np.ones(rows.size, dtype=np.bool_) if rows.live is None else rows.live.copy()
            for condition in own.filters:
                held &= self.expressions.holds(condition, frame)
            return float(np.count_nonzero(held))
        estimate = float(rows.count)
        for condition in node.filters:
            estimate *= self._share(node, condition)
        return estimate

    def _share(self, node: Node, condition: ir.Filter) -> float:
        """About which share of a type a condition lets through."""
        rows = self.tables.nodes(node.type_name)
        kind = self.tables.catalog.nodes[node.type_name]
        names = [side.property for side in (condition.left, condition.right) if isinstance(side, ir.Prop)]
        if condition.op is ir.Op.EQ and names:
            if (names[0],) == kind.key or names[0] == "id":
                return 1 / rows.count
            column = rows.column(names[0])
            if column.repeats:
                return 1 / max(1, len(column.codes.dictionary))
            return 0.01 if column.is_text else 0.1
        return 1 / 3 if condition.op in (ir.Op.LT, ir.Op.LE, ir.Op.GT, ir.Op.GE) else 1 / 4


class _Walk:
    """An order of variables as it grows, with the estimated number of rows and the cost so far."""

    def __init__(self, start: str, pattern: Pattern, links: Sequence[Link], estimates: Estimates) -> None:
        self.pattern, self.links, self.estimates = pattern, links, estimates
        self.order = [start]
        self.rows = estimates.of(pattern.nodes[start])
        self.cost = self.rows * _GATHER

    def copy(self) -> _Walk:
        twin = _Walk.__new__(_Walk)
        twin.pattern, twin.links, twin.estimates = self.pattern, self.links, self.estimates
        twin.order, twin.rows, twin.cost = list(self.order), self.rows, self.cost
        return twin

    def options(self) -> dict[str, list[Link]]:
        """The variables that can be bound next, with the links that lead to each."""
        found: dict[str, list[Link]] = {}
        for link in self.links:
            bound = [end for end in (link.source, link.target) if end in self.order]
            if len(bound) == 1 and link.source != link.target:
                found.setdefault(link.other(bound[0]), []).append(link.from_(bound[0]))
        return found

    def bind(self, name: str, links: Sequence[Link]) -> None:
        """Bind a variable, and then every variable that a link with at most one neighbour leads to."""
        node = self.pattern.nodes[name]
        whole = max(1, self.estimates.whole(node))
        adjacencies = [self.estimates.adjacency(link) for link in links]
        growth = self.estimates.of(node) / whole
        for adjacency in adjacencies:
            growth *= adjacency.mean_degree / whole
        fewest = min(adjacency.mean_degree for adjacency in adjacencies)
        looked_at = self.rows * fewest
        is_function = any(adjacency.is_function for adjacency in adjacencies)
        self.cost += self.rows * _GATHER if is_function else self.rows * _GATHER + looked_at
        self.cost += looked_at * _CHECK * (len(links) - 1)
        self.order.append(name)
        self.rows *= growth * whole
        for other, leading in self.options().items():
            if other not in self.order and any(self.estimates.adjacency(link).is_function for link in leading):
                self.bind(other, leading)
                return


def best_order(core: Iterable[str], links: Sequence[Link], pattern: Pattern, estimates: Estimates) -> list[str]:
    """The order in which to bind the variables of a pattern with cycles: the cheapest of the greedy walks from
    every start."""
    names = [name for name in pattern.nodes if name in core]
    best: _Walk | None = None
    for start in names:
        walk = _Walk(start, pattern, links, estimates)
        while len(walk.order) < len(names) and (options := walk.options()):
            steps = []
            for name, leading in options.items():
                step = walk.copy()
                step.bind(name, leading)
                steps.append(step)
            walk = min(steps, key=lambda step: (step.rows, step.cost))
        if best is None or walk.cost < best.cost:
            best = walk
    assert best is not None  # noqa: S101  a core has variables
    return best.order
