"""From the operations of a query to its pattern."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.read.pattern.equalities import link_equalities
from omnigraph.read.pattern.pattern import Link, Node, Pattern, Reach, distinct_links, link_of, mentioned


def analyse(operations: tuple[ir.Operation, ...], catalog: Catalog, needed: Set[str]) -> Pattern:
    """The pattern of a whole match; ``needed`` are the variables that its results need."""
    pattern = Pattern()
    _collect(pattern, operations, catalog, needed)
    link_equalities(pattern, catalog)
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
    link_equalities(inner, catalog)
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
