"""Triangles of a relation that is the same in both directions: each is found once, from the corner with the fewest
neighbours, and stands for all six ways to name its corners."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.read.data.oriented import Oriented, oriented
from omnigraph.read.data.rows import Rows
from omnigraph.read.pattern.pattern import Node
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.steps import Step, Tools, shown_trees
from omnigraph.read.values.columns import Column, Ints, Positions
from omnigraph.records import dataclass

CORNER = "corner#"


class _Corners(Rows):
    """Nodes by their number of neighbours."""

    def __init__(self, count: int) -> None:
        self.count = count

    def column(self, name: str) -> Column:
        raise TypeError(f"a corner has no property `{name}`")


@dataclass(slots=True)
class Corners(Step):
    """The nodes from which triangles are looked for; the first step of a plan."""

    relation: Oriented
    edge_type: str

    def run(self, frame: Frame, tools: Tools) -> Frame:  # noqa: ARG002
        rows = _Corners(len(self.relation.positions))
        return Frame.of(CORNER, rows, rows.everything)

    def __str__(self) -> str:
        return f"Order nodes by neighbours over {self.edge_type}: adjacency in memory"


@dataclass(slots=True)
class Triangles(Step):
    """Three variables that are all connected to each other. Only those in ``kept`` are needed afterwards."""

    relation: Oriented
    edge_type: str
    nodes: Sequence[Node]
    kept: frozenset[str]

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:  # noqa: ARG002
        return self.relation.looked_at(frame.positions[CORNER])

    def run(self, frame: Frame, tools: Tools) -> Frame:
        numbers, limits = frame.positions[CORNER], tools.operators.limits
        parts: list[tuple[Positions, Positions, Positions]] = []
        self.relation.triangles(
            int(numbers[0]), int(numbers[-1]) + 1, limits.check, lambda *corners: parts.append(corners)
        )
        nothing = np.zeros(0, dtype=np.int32)
        corners = [np.concatenate([nothing, *some]) for some in zip(*parts, strict=True)] or [nothing] * 3
        bound = [node for node in self.nodes if node.variable in self.kept or not node.is_free]
        ways = list(permutations(range(3), len(bound)))
        limits.allocate(len(corners[0]) * len(ways), len(corners[0]) * len(ways) * 4 * (len(bound) + 2))
        found = self._named(corners, bound, ways, tools)
        for node in bound:
            if not node.is_free:
                found = found.times(tools.weights.of(node, found.positions[node.variable]))
        return found.only(self.kept)

    def _named(
        self, corners: list[Positions], bound: list[Node], ways: list[tuple[int, ...]], tools: Tools
    ) -> Frame:
        """The triangles in all ways to name their corners, as far as names are bound; one row counts for those
        that differ only in others."""
        count, rows = len(corners[0]), tools.operators.tables.nodes(self.nodes[0].type_name)
        if not bound:
            return Frame(1, {}, {}, np.array([6 * count])).keep(np.array([count > 0]))
        positions = {
            node.variable: np.concatenate([corners[way[number]] for way in ways])
            for number, node in enumerate(bound)
        }
        weights = np.full(count * len(ways), 2, dtype=np.int64) if len(bound) == 1 else None
        return Frame(count * len(ways), dict.fromkeys(positions, rows), positions, weights)

    def __str__(self) -> str:
        names = ", ".join(f"${node.variable}{shown_trees(node)}" for node in self.nodes)
        return f"Triangles {names} over {self.edge_type}: adjacency in memory, each found once"


def symmetric_relation(links: Sequence[tuple[str, ir.Direction]], tools: Tools) -> Oriented | None:
    """The relation that all these edge types and directions are, if it is the same in both directions."""
    [edge_type] = {name for name, _ in links}
    both = all(direction is ir.Direction.BOTH for _, direction in links)
    return oriented(tools.operators.tables, edge_type, ir.Direction.BOTH if both else ir.Direction.OUT)
