"""The match of a query as a graph of variables: what has to hold, free of the order in which it was written.

An unbound hop relates two variables by the distinct pairs of an edge type, so the order in which hops are followed
does not matter. What cannot be arranged freely (optional blocks, negations over several variables) is kept as
operations that run last, as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field, replace

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog

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

    def mentioned_at_end(self) -> set[str]:
        """The variables that the operations at the end need."""
        names = {name for operation in self.rest for name in mentioned(operation)}
        return names & self.nodes.keys() | names & {link.edge_variable or "" for link in self.links}

    @property
    def variables(self) -> set[str]:
        edges = {link.edge_variable for link in self.links if link.edge_variable is not None}
        return self.nodes.keys() | edges


def analyse(operations: tuple[ir.Operation, ...], catalog: Catalog, needed: Set[str]) -> Pattern:
    """The pattern of a whole match; ``needed`` are the variables that its results need."""
    pattern = Pattern()
    _collect(pattern, operations, catalog, needed)
    return pattern


def as_written(operations: tuple[ir.Operation, ...], catalog: Catalog) -> Pattern:
    """The pattern of a match with its blocks left as operations: nodes have conditions, and no subtrees."""
    pattern = Pattern()
    blocks = [operation for operation in operations if isinstance(operation, ir.Optionally | ir.AntiJoin)]
    first = next((i for i, one in enumerate(operations) if isinstance(one, ir.Optionally)), len(operations))
    plain = tuple(one for one in operations[:first] if one not in blocks)
    _collect(pattern, plain, catalog)
    pattern.rest = [one for one in operations[:first] if one in blocks] + list(operations[first:])
    return pattern


def _collect(
    pattern: Pattern, operations: tuple[ir.Operation, ...], catalog: Catalog, needed: Set[str] = frozenset()
) -> None:
    for index, operation in enumerate(operations):
        if pattern.rest and not isinstance(operation, ir.AntiJoin):
            pattern.rest.append(operation)
            continue
        match operation:
            case ir.NodeScan(variable, type_name, filters):
                pattern.nodes[variable] = Node(variable, type_name)
                for condition in filters:
                    _condition(pattern, condition, catalog)
            case ir.Expand():
                _link(pattern, operation, catalog)
            case ir.Filter():
                _condition(pattern, operation, catalog)
            case ir.AntiJoin():
                if not _negation(pattern, operation, catalog):
                    pattern.rest.append(operation)
            case ir.Optionally(inner, introduces):
                later = {name for one in operations[index + 1 :] for name in mentioned(one)}
                root = None
                if not (needed | later) & set(introduces):
                    root = subtree(inner, pattern.nodes, catalog)
                if root is None:
                    pattern.rest.append(operation)
                else:
                    pattern.nodes[root.variable].optional.append(root)


def _link(pattern: Pattern, expand: ir.Expand, catalog: Catalog) -> None:
    link = link_of(expand)
    if link.is_impossible:
        pattern.impossible = True
        link = replace(link, min_hops=1, max_hops=1)
    pattern.links.append(link)
    if expand.closes is None:
        pattern.nodes[expand.target] = Node(expand.target, expand.target_type)
    for condition in expand.target_filters:
        _condition(pattern, condition, catalog)


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


def _condition(pattern: Pattern, condition: ir.Filter, catalog: Catalog) -> None:
    names = set(mentioned(condition))
    if len(names) == 1 and (only := next(iter(names))) in pattern.nodes:
        pattern.nodes[only].filters.append(condition)
        return
    pair = _inequality(pattern, condition, catalog)
    if pair is not None:
        pattern.unequal.append(pair)
    else:
        pattern.conditions.append(condition)


def _inequality(pattern: Pattern, condition: ir.Filter, catalog: Catalog) -> tuple[str, str] | None:
    """Two variables of one type that must not be the same node: a comparison of their keys by `!=`."""
    match condition:
        case ir.Filter(ir.Prop(left, name), ir.Op.NE, ir.Prop(right, other)) if name == other:
            first, second = pattern.nodes.get(left), pattern.nodes.get(right)
            if first is None or second is None or first.type_name != second.type_name:
                return None
            if catalog.nodes[first.type_name].key == (name,) or name == "id":
                return left, right
    return None


def _negation(pattern: Pattern, negation: ir.AntiJoin, catalog: Catalog) -> bool:
    """Add a negation to the node that it concerns, or as a missing link between two; false if it is neither."""
    root = subtree(negation.inner, pattern.nodes, catalog)
    if root is not None:
        pattern.nodes[root.variable].absent.append(root)
        return True
    match negation.inner:
        case (ir.Expand() as expand,) if expand.closes is not None:
            link = replace(link_of(expand), edge_variable=None)
            if link.is_hop and link.ends <= pattern.nodes.keys():
                pattern.unconnected.append(link)
                return True
    return False


def subtree(operations: tuple[ir.Operation, ...], outer: dict[str, Node], catalog: Catalog) -> Node | None:
    """A block as a tree whose root is the one variable outside of it that it mentions; None if it is no such
    tree."""
    names = {name for operation in operations for name in mentioned(operation)} & outer.keys()
    if len(names) != 1:
        return None
    root_name = next(iter(names))
    inner = Pattern({root_name: Node(root_name, outer[root_name].type_name)})
    _collect(inner, operations, catalog)
    if inner.rest or inner.conditions or inner.unequal or inner.unconnected or inner.impossible:
        return None
    if not all(link.ends <= inner.nodes.keys() for link in inner.links):
        return None
    return folded(inner, root_name)


def folded(pattern: Pattern, root: str) -> Node | None:
    """A pattern without cycles as one tree; None if it has cycles, chains of hops or loose parts."""
    links = distinct_links(pattern.links)
    seen = {root}

    def grow(node: Node) -> Node | None:
        grown = node.copy()
        for link in [one for one in links if node.variable in one.ends]:
            if not link.is_hop or link.source == link.target:
                return None
            child = link.other(node.variable)
            if child in seen:
                if child == came_from.get(node.variable) and used.get(node.variable) is link:
                    continue
                return None
            seen.add(child)
            came_from[child], used[child] = node.variable, link
            below = grow(pattern.nodes[child])
            if below is None:
                return None
            grown.reaches.append(Reach(link.from_(node.variable), below))
        return grown

    came_from: dict[str, str] = {}
    used: dict[str, Link] = {}
    tree = grow(pattern.nodes[root])
    return tree if seen == pattern.nodes.keys() else None


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
