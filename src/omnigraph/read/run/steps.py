"""The steps of a plan: each turns a frame into the next one. A step that may grow is run in pieces."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import pairwise
from math import ceil
from typing import Final

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show_condition
from omnigraph.read.pattern.pattern import Link, Node
from omnigraph.read.run.frame import Consume, Frame
from omnigraph.read.run.operators import Operators
from omnigraph.read.run.relations import rows_of
from omnigraph.read.run.weights import Weights
from omnigraph.read.values import counting
from omnigraph.read.values.columns import Ints
from omnigraph.read.values.counting import MANY, product
from omnigraph.records import dataclass

_ARROWS: Final = {ir.Direction.OUT: "-{}->", ir.Direction.IN: "<-{}-", ir.Direction.BOTH: "<-{}->"}


@dataclass(frozen=True, slots=True)
class Tools:
    """The operators and counts that the steps of one execution share."""

    operators: Operators
    weights: Weights


@dataclass(slots=True)
class Step(ABC):
    """A step of a plan, with the rows it made and the seconds it took, for `explain`."""

    rows: int = field(default=0, init=False)
    seconds: float = field(default=0.0, init=False)

    @abstractmethod
    def run(self, frame: Frame, tools: Tools) -> Frame:
        """The frame behind the step."""

    def again(self) -> Step:
        """The same step for another execution."""
        return replace(self)

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:  # noqa: ARG002
        """How many rows each row becomes; None if no more than one."""
        return None

    @abstractmethod
    def __str__(self) -> str:
        """The step as `explain` shows it, with its access path."""


@dataclass(slots=True)
class Start(Step):
    """The rows of a variable that match its tree, each as often as the tree does; joined to the rows so far."""

    node: Node

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:
        return np.full(frame.count, self._matching(tools).count)

    def run(self, frame: Frame, tools: Tools) -> Frame:
        mine = self._matching(tools)
        return mine if not frame.positions and frame.total == 1 else tools.operators.crossed(frame, mine)

    def _matching(self, tools: Tools) -> Frame:
        rows = rows_of(tools.operators.tables, self.node)
        if self.node.is_free:
            return Frame.of(self.node.variable, rows, rows.everything)
        return Frame.of(self.node.variable, rows, *tools.weights.matching(self.node))

    def __str__(self) -> str:
        return f"Scan {_shown(self.node)}: in memory"


@dataclass(slots=True)
class LookUp(Step):
    """The rows of a variable that a table finds by its indexes; joined to the rows so far. The edges that the next
    step follows are looked up at the same time."""

    node: Node
    ahead: Link | None = None

    def run(self, frame: Frame, tools: Tools) -> Frame:
        if self.ahead is not None:
            tools.operators.look_ahead(self.node, self.ahead)
        return tools.operators.scanned(frame, self.node.variable, self.node.type_name, self.node.filters)

    def __str__(self) -> str:
        return f"Look up {_shown(self.node)}: index"


@dataclass(slots=True)
class FollowEdges(Step):
    """A link from a bound variable to a new one, by the index on the ends of edges."""

    link: Link
    node: Node

    def run(self, frame: Frame, tools: Tools) -> Frame:
        followed = tools.operators.follow(frame, self.link, self.node.type_name)
        return tools.operators.filtered(followed, self.node.filters)

    def __str__(self) -> str:
        return f"Expand {shown_link(self.link)}{shown_trees(self.node)}: index"


@dataclass(slots=True)
class Total(Step):
    """How often a part of the pattern matches, where no variable of it is needed."""

    node: Node

    def run(self, frame: Frame, tools: Tools) -> Frame:
        if self.node.is_free:
            total = rows_of(tools.operators.tables, self.node).count
        else:
            total = counting.total(tools.weights.everywhere(self.node))
        weights = np.ones(frame.count, dtype=np.int64) if frame.weights is None else frame.weights
        counted = product(weights, np.array([min(total, MANY)]))
        return Frame(frame.count, frame.rows, frame.positions, counted).keep(np.full(frame.count, total > 0))

    def __str__(self) -> str:
        return f"Count {_shown(self.node)}: in memory, without enumerating"


@dataclass(slots=True)
class Follow(Step):
    """A link from a bound variable to a new one."""

    link: Link
    node: Node

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:
        return tools.operators.sizes(frame, self.link)

    def run(self, frame: Frame, tools: Tools) -> Frame:
        followed = tools.operators.follow(frame, self.link, self.node.type_name)
        if self.node.is_free or not followed.count:
            return followed
        return followed.times(tools.weights.of(self.node, followed.positions[self.node.variable]))

    def __str__(self) -> str:
        if self.link.value is None:
            return f"Expand {shown_link(self.link)}{shown_trees(self.node)}: adjacency in memory"
        if self.node.equality is not None:
            return f"Hash {shown_link(self.link)}{shown_trees(self.node)}: values in memory"
        return f"Join {self.link.source.removesuffix('#')}{shown_trees(self.node)}: values in memory"


@dataclass(slots=True)
class Intersect(Step):
    """A new variable that several bound ones link to: from the one with fewest neighbours, checked against the
    others."""

    links: Sequence[Link]
    node: Node

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:
        return tools.operators.intersection(frame, self.links).sizes()

    def run(self, frame: Frame, tools: Tools) -> Frame:
        index, targets = tools.operators.intersection(frame, self.links).found()
        rows = rows_of(tools.operators.tables, self.node)
        found = frame.take(index).bind(self.node.variable, rows, targets)
        if self.node.is_free or not found.count:
            return found
        return found.times(tools.weights.of(self.node, targets))

    def __str__(self) -> str:
        links = " and ".join(shown_link(link) for link in self.links)
        return f"Intersect {links}{shown_trees(self.node)}: adjacency in memory"


@dataclass(slots=True)
class CountCommon(Step):
    """A variable that several bound ones link to and that is not needed itself: only how many there are."""

    links: Sequence[Link]
    node: Node

    def run(self, frame: Frame, tools: Tools) -> Frame:
        weigh = None if self.node.is_free else partial(tools.weights.of, self.node)
        return frame.times(tools.operators.intersection(frame, self.links).counts(weigh))

    def __str__(self) -> str:
        links = " and ".join(shown_link(link) for link in self.links)
        return f"Count common {links}{shown_trees(self.node)}: adjacency in memory"


@dataclass(slots=True)
class Close(Step):
    """A link between two bound variables."""

    link: Link

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:
        """A chain, and a bound edge, are followed to everything they reach before the ends are compared."""
        if self.link.is_hop and self.link.edge_variable is None:
            return None
        return tools.operators.sizes(frame, self.link)

    def run(self, frame: Frame, tools: Tools) -> Frame:
        return tools.operators.close(frame, self.link)

    def __str__(self) -> str:
        return f"Check {shown_link(self.link)}: adjacency in memory"


@dataclass(slots=True)
class Unconnected(Step):
    """Two bound variables that must not be linked."""

    link: Link

    def run(self, frame: Frame, tools: Tools) -> Frame:
        return frame.keep(~tools.operators.connected(frame, self.link))

    def __str__(self) -> str:
        return f"Check not {shown_link(self.link)}: adjacency in memory"


@dataclass(slots=True)
class Unequal(Step):
    """Two bound variables that must not be the same node."""

    left: str
    right: str

    def run(self, frame: Frame, tools: Tools) -> Frame:
        return frame.keep(~tools.operators.same(frame, self.left, self.right))

    def __str__(self) -> str:
        return f"Filter ${self.left} is not ${self.right}"


@dataclass(slots=True)
class Condition(Step):
    """A condition over several variables."""

    condition: ir.Filter

    def run(self, frame: Frame, tools: Tools) -> Frame:
        return tools.operators.filtered(frame, (self.condition,))

    def __str__(self) -> str:
        return f"Filter {show_condition(self.condition)}"


@dataclass(slots=True)
class Keep(Step):
    """Only the variables that are still needed; equal rows become one that counts for all, where that pays."""

    variables: frozenset[str]
    merge: bool

    def run(self, frame: Frame, tools: Tools) -> Frame:  # noqa: ARG002
        kept = frame.only(self.variables)
        if not self.merge or len(kept.positions) > 1:
            return kept
        width = max((rows.size for rows in kept.rows.values()), default=1)
        return kept.merged() if kept.count > width // 2 else kept

    def __str__(self) -> str:
        return "Keep " + (", ".join(f"${name}" for name in sorted(self.variables)) or "the count")


@dataclass(slots=True)
class AsWritten(Step):
    """An operation of the IR that runs as written."""

    operations: tuple[ir.Operation, ...]
    shown: str

    def sizes(self, frame: Frame, tools: Tools) -> Ints | None:
        return np.full(frame.count, ceil(tools.operators.growth(self.operations, frame.rows)))

    def run(self, frame: Frame, tools: Tools) -> Frame:
        return tools.operators.run(self.operations, frame)

    def __str__(self) -> str:
        return self.shown


def stream(steps: Sequence[Step], frame: Frame, tools: Tools, consume: Consume, first: int = 0) -> None:
    """Run a frame through all steps. Where it would grow too large, pieces of it go on one after the other."""
    for index in range(first, len(steps)):
        step = steps[index]
        tools.operators.limits.check()
        began = time.perf_counter()
        sizes = step.sizes(frame, tools) if frame.count > 1 else None
        size = tools.operators.tables.settings.piece_rows
        if sizes is not None and int(sizes.sum()) > size:
            for piece in _pieces(frame, sizes, size):
                stream(steps, piece, tools, consume, index)
            return
        frame = step.run(frame, tools)
        step.rows += frame.count
        step.seconds += time.perf_counter() - began
        if not frame.count:
            return
    consume(frame)


def _pieces(frame: Frame, sizes: Ints, size: int) -> Iterator[Frame]:
    """The frame in stretches that each become about so many rows; a single row may become more."""
    number = (np.cumsum(sizes) - 1) // size
    cuts = np.flatnonzero(np.diff(number)) + 1
    if not len(cuts):
        cuts = np.array([frame.count // 2])
    for low, high in pairwise([0, *cuts.tolist(), frame.count]):
        yield frame.slice(low, high)


def shown_link(link: Link) -> str:
    """A link, close to how a query writes it."""
    if link.value is not None:
        entity = link.source if link.direction is ir.Direction.OUT else link.target
        return " and ".join(f"${entity}.{name}" for name in link.value.side.properties)
    edge = link.edge_type if link.edge_variable is None else f"${link.edge_variable}:{link.edge_type}"
    if not link.is_hop:
        edge += f"{{{link.min_hops},{link.max_hops}}}"
    return f"${link.source} {_ARROWS[link.direction].format(edge)} ${link.target}"


def _shown(node: Node) -> str:
    if node.equality is not None:
        return f"values of {node.variable.removesuffix('#')}{shown_trees(node)}"
    return f"${node.variable}: {node.type_name}{shown_trees(node)}"


def shown_trees(node: Node) -> str:
    """The conditions and subtrees of a node, in words."""
    parts = []
    if node.filters:
        parts.append(" where " + " and ".join(map(show_condition, node.filters)))
    parts.extend(f" counting ({shown_link(reach.link)}{shown_trees(reach.child)})" for reach in node.reaches)
    parts.extend(f" without ({_below(absent)})" for absent in node.absent)
    parts.extend(f" optionally ({_below(optional)})" for optional in node.optional)
    return "".join(parts)


def _below(node: Node) -> str:
    return shown_trees(node).strip() or f"${node.variable}"
