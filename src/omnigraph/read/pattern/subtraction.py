"""Counting by subtraction: all matches, minus those for which a negated condition holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Final

from omnigraph.lang.query import ir
from omnigraph.read.pattern.pattern import Link, Node, Pattern

_SUBTRACTED: Final = 3
Signed = tuple[int, Pattern, dict[str, str]]
"""A pattern that is added or taken away, and which of its variables were merged into which others."""


def signed(pattern: Pattern, aggregates: list[ir.Agg]) -> list[Signed]:
    """The pattern as sums and differences of simpler ones, if the query returns only counts.

    A condition that must not hold between two variables would force the planner to enumerate them together.
    Counting all matches, and subtracting those for which it holds, does not.
    """
    excluded: list[tuple[str, str] | Link] = [*pattern.unequal, *pattern.unconnected]
    counts = all(agg.function == "count" and not agg.distinct for agg in aggregates)
    if not excluded or not aggregates or not counts or len(excluded) > _SUBTRACTED or pattern.rest:
        return [(1, pattern, {})]
    parts = []
    for size in range(len(excluded) + 1):
        for chosen in combinations(excluded, size):
            part = pattern.copy()
            part.unequal, part.unconnected = [], []
            merged: dict[str, str] = {}
            for one in chosen:
                if isinstance(one, Link):
                    part.links.append(_moved(one, merged))
                else:
                    _merge(part, one, merged)
            parts.append(((-1) ** size, part, merged))
    return _reduced(parts)


def _reduced(parts: list[Signed]) -> list[Signed]:
    """The parts without those that cancel out: the same pattern, once added and once taken away."""
    kept: list[Signed] = []
    for sign, part, merged in parts:
        links = {link.relation for link in part.links}
        twin = next(
            (
                one
                for one in kept
                if one[0] == -sign and one[2] == merged and {link.relation for link in one[1].links} == links
            ),
            None,
        )
        if twin is None or any(link.edge_variable is not None for link in part.links):
            kept.append((sign, part, merged))
        else:
            kept.remove(twin)
    return kept


def _merge(pattern: Pattern, pair: tuple[str, str], merged: dict[str, str]) -> None:
    """Make two variables one."""
    kept, gone = (merged.get(name, name) for name in pair)
    if kept == gone:
        return
    removed = pattern.nodes.pop(gone)
    node = pattern.nodes[kept]
    pattern.nodes[kept] = Node(
        kept,
        node.type_name,
        node.filters + [_renamed(condition, gone, kept) for condition in removed.filters],
        node.reaches + removed.reaches,
        node.absent + removed.absent,
        node.optional + removed.optional,
    )
    for name, other in list(merged.items()):
        if other == gone:
            merged[name] = kept
    merged[gone] = kept
    pattern.links = [_moved(link, merged) for link in pattern.links]
    pattern.conditions = [_renamed(condition, gone, kept) for condition in pattern.conditions]


def _moved(link: Link, merged: Mapping[str, str]) -> Link:
    source, target = (merged.get(name, name) for name in (link.source, link.target))
    return replace(link, source=source, target=target)


def _renamed(condition: ir.Filter, old: str, new: str) -> ir.Filter:
    from omnigraph.lang.query.lowering.renaming import rename

    [renamed] = rename((condition,), {old: new})
    assert isinstance(renamed, ir.Filter)  # noqa: S101
    return renamed
