"""The match of a query as a graph of variables: what has to hold, free of the order in which it was written.

An unbound hop relates two variables by the distinct pairs of an edge type, so the order in which hops are followed
does not matter. What cannot be arranged freely (optional blocks, negations over several variables) is kept as
operations that run last, as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from typing import TYPE_CHECKING

from omnigraph.lang.query import ir
from omnigraph.records import dataclass

if TYPE_CHECKING:
    from omnigraph.read.data.equality import Equality, ValueHop

REVERSED = {
    ir.Direction.OUT: ir.Direction.IN,
    ir.Direction.IN: ir.Direction.OUT,
    ir.Direction.BOTH: ir.Direction.BOTH,
}


@dataclass(frozen=True, slots=True)
class Link:
    """Two variables connected by an edge type. A chain of hops may be followed ``backwards``, as an expand."""

    source: str
    target: str
    edge_type: str
    direction: ir.Direction
    edge_variable: str | None = None
    min_hops: int = 1
    max_hops: int = 1
    backwards: bool = False
    value: ValueHop | None = None
    """Between an entity and the value of some of its properties: the edge type is then their names."""

    @property
    def is_hop(self) -> bool:
        """Is it a single hop? That can be followed from either end."""
        return self.min_hops == self.max_hops == 1

    @property
    def is_impossible(self) -> bool:
        """Is the least number of hops larger than edges of the type can be followed in a row?"""
        return self.min_hops > self.max_hops

    @property
    def ends(self) -> frozenset[str]:
        return frozenset((self.source, self.target))

    def from_(self, variable: str) -> Link:
        """The same link, seen from one of its ends."""
        if variable == self.source:
            return self
        return replace(
            self,
            source=self.target,
            target=self.source,
            direction=REVERSED[self.direction],
            backwards=not self.backwards and not self.is_hop,
        )

    def other(self, variable: str) -> str:
        return self.target if variable == self.source else self.source

    @property
    def relation(self) -> tuple[object, ...]:
        """The key by which links are equal: the same relation between the same variables."""
        if self.is_hop:
            seen = self.from_(min(self.source, self.target))
        else:
            seen = self.from_(self.target) if self.backwards else self
        if seen.direction is ir.Direction.BOTH and seen.is_hop:
            return (seen.ends, seen.edge_type, seen.direction)
        return (seen.source, seen.target, seen.edge_type, seen.direction, self.min_hops, self.max_hops)


@dataclass(slots=True)
class Node:
    """A variable with everything that concerns only it: its conditions, and subtrees that hang from it.

    The subtrees multiply how often the node matches: a reach by the number of its matches, an absent one by zero
    if it matches, an optional one by the number of its matches, at least by one.
    """

    variable: str
    type_name: str
    filters: list[ir.Filter] = field(default_factory=list)
    reaches: list[Reach] = field(default_factory=list)
    absent: list[Node] = field(default_factory=list)
    optional: list[Node] = field(default_factory=list)
    equality: Equality | None = None
    """Of a variable for a value that two others have in common: what is equal. It has no type."""

    @property
    def is_free(self) -> bool:
        """Is every entity of the type a match, once?"""
        return not self.filters and not self.has_subtrees

    @property
    def has_subtrees(self) -> bool:
        return bool(self.reaches or self.absent or self.optional)

    def copy(self) -> Node:
        return Node(
            self.variable,
            self.type_name,
            list(self.filters),
            list(self.reaches),
            list(self.absent),
            list(self.optional),
            self.equality,
        )


@dataclass(frozen=True, slots=True)
class Reach:
    """A link from a node to the root of a subtree."""

    link: Link
    child: Node


@dataclass(slots=True)
class Pattern:
    """Variables, links between them, conditions over several of them, and the operations that run last."""

    nodes: dict[str, Node] = field(default_factory=dict)
    links: list[Link] = field(default_factory=list)
    conditions: list[ir.Filter] = field(default_factory=list)
    unequal: list[tuple[str, str]] = field(default_factory=list)
    unconnected: list[Link] = field(default_factory=list)
    rest: list[ir.Operation] = field(default_factory=list)
    impossible: bool = False

    def copy(self) -> Pattern:
        return Pattern(
            {name: node.copy() for name, node in self.nodes.items()},
            list(self.links),
            list(self.conditions),
            list(self.unequal),
            list(self.unconnected),
            list(self.rest),
            self.impossible,
        )

    @property
    def is_single(self) -> bool:
        """Is there one variable, with conditions of its own only?"""
        others = self.links or self.conditions or self.unequal or self.unconnected or self.rest
        return len(self.nodes) == 1 and not others

    def mentioned_at_end(self) -> set[str]:
        """The variables that the operations at the end need."""
        names = {name for operation in self.rest for name in mentioned(operation)}
        return names & self.nodes.keys() | names & {link.edge_variable or "" for link in self.links}

    @property
    def variables(self) -> set[str]:
        edges = {link.edge_variable for link in self.links if link.edge_variable is not None}
        return self.nodes.keys() | edges


def link_of(expand: ir.Expand) -> Link:
    """The link that an expand follows."""
    min_hops, max_hops = expand.hops
    return Link(
        expand.source,
        expand.end,
        expand.edge_type,
        expand.direction,
        expand.edge_variable,
        min_hops,
        max_hops,
        expand.backwards,
    )


def distinct_links(links: Iterable[Link]) -> list[Link]:
    """The links without those that repeat another one; of links with a bound edge every one counts."""
    kept: dict[object, Link] = {}
    for link in links:
        kept.setdefault(link.relation if link.edge_variable is None else link, link)
    return list(kept.values())


def mentioned(item: ir.Operation | ir.Expr | None) -> Iterator[str]:
    """All variables that an operation or expression names, hidden ones too."""
    match item:
        case ir.Prop(variable, _) | ir.Var(variable):
            yield variable
        case ir.TextMatch() | ir.Score() | ir.Rrf():
            yield item.variable
        case ir.Agg(_, argument, _):
            yield from mentioned(argument)
        case ir.Call(_, operands):
            yield from (name for operand in operands for name in mentioned(operand))
        case ir.Filter(left, _, right):
            yield from mentioned(left)
            yield from mentioned(right)
        case ir.NodeScan(variable, _, filters):
            yield variable
            yield from (name for condition in filters for name in mentioned(condition))
        case ir.Expand():
            own = (item.source, item.target, item.edge_variable, item.closes)
            yield from (name for name in own if name is not None)
            yield from (name for condition in item.target_filters for name in mentioned(condition))
        case ir.Optionally(inner, introduces):
            yield from introduces
            yield from (name for operation in inner for name in mentioned(operation))
        case ir.AntiJoin(outer, inner):
            yield from outer
            yield from (name for operation in inner for name in mentioned(operation))
