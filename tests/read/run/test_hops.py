"""Chains of hops reach what a breadth-first search reaches, as the language defines it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.errors import QueryCancelled, QueryMemoryExceeded
from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, from_keys, packed
from omnigraph.read.limits import Cancellation, Limits
from omnigraph.read.pattern.pattern import Link
from omnigraph.read.run.hops import reach_bounds, reached
from omnigraph.settings import READ_DEFAULTS, ReadSettings

Pairs = Sequence[tuple[int, int]]


def reached_naively(pairs: Pairs, source: int, least: int, most: int) -> list[int]:
    """The definition, word for word."""
    frontier, visited, seen = [source], {source}, set[int]()
    for hop in range(1, most + 1):
        following = []
        for near in frontier:
            for far in sorted({b for a, b in pairs if a == near}):
                if far == near:
                    if hop >= least:
                        seen.add(far)
                elif far not in visited:
                    visited.add(far)
                    following.append(far)
                    if hop >= least:
                        seen.add(far)
        frontier = following
    return sorted(seen)


def adjacency_of(nodes: int, pairs: Pairs) -> Adjacency:
    sources = np.array([a for a, _ in pairs], dtype=np.int32)
    targets = np.array([b for _, b in pairs], dtype=np.int32)
    return from_keys(packed(sources, targets), nodes, nodes)


def chain(least: int, most: int, *, backwards: bool = False) -> Link:
    return Link("x", "y", "Knows", Direction.OUT, None, least, most, backwards)


def reached_by(
    adjacency: Adjacency, sources: Sequence[int], chained: Link, sizes: ReadSettings = READ_DEFAULTS
) -> list[list[int]]:
    owners, found = reached(adjacency, np.array(sources, dtype=np.int32), chained, Limits("q"), sizes)
    lists: list[list[int]] = [[] for _ in sources]
    for owner, position in zip(owners.tolist(), found.tolist(), strict=True):
        lists[owner].append(position)
    return [sorted(one) for one in lists]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    nodes = draw(st.integers(1, 8))
    node = st.integers(0, nodes - 1)
    return nodes, draw(st.lists(st.tuples(node, node), max_size=24))


SIZES = pytest.mark.parametrize(
    "sizes",
    [READ_DEFAULTS, ReadSettings(visited_cells=20, hop_entries=3)],
    ids=["in one go", "in small parts"],
)
"""Many sources are searched from side by side, as many as there is room for."""


@SIZES
@settings(deadline=None, max_examples=examples(60, of=300))
@given(graphs(), st.integers(1, 4), st.integers(0, 4), st.data())
def test_what_is_reached(
    sizes: ReadSettings, graph: tuple[int, Pairs], least: int, more: int, data: st.DataObject
) -> None:
    nodes, pairs = graph
    sources = data.draw(st.lists(st.integers(0, nodes - 1), max_size=12))
    found = reached_by(adjacency_of(nodes, pairs), sources, chain(least, least + more), sizes)
    assert found == [reached_naively(pairs, source, least, least + more) for source in sources]


@SIZES
@settings(deadline=None, max_examples=examples(60, of=300))
@given(graphs(), st.integers(1, 4), st.integers(0, 4))
def test_backwards_the_same_pairs_are_found(
    sizes: ReadSettings, graph: tuple[int, Pairs], least: int, more: int
) -> None:
    nodes, pairs = graph
    forth = [reached_naively(pairs, source, least, least + more) for source in range(nodes)]
    turned = adjacency_of(nodes, [(b, a) for a, b in pairs])
    back = reached_by(turned, range(nodes), chain(least, least + more, backwards=True), sizes)
    assert back == [[left for left in range(nodes) if right in forth[left]] for right in range(nodes)]


@settings(deadline=None)
@given(graphs(), st.integers(1, 5))
def test_bounds_are_never_too_low(graph: tuple[int, Pairs], most: int) -> None:
    nodes, pairs = graph
    bounds = reach_bounds(adjacency_of(nodes, pairs), most, Limits("q")).tolist()
    for source, bound in enumerate(bounds):
        assert len(reached_naively(pairs, source, 1, most)) <= bound <= nodes
    if most == 1:
        assert bounds == [len({b for a, b in pairs if a == source}) for source in range(nodes)]


@SIZES
@pytest.mark.parametrize(
    ("pairs", "least", "most", "expected"),
    [
        ("ab bc", 1, 2, "bc"),
        ("ab bc", 2, 2, "c"),
        ("ab ac bc", 2, 3, ""),
        ("ab ba", 1, 4, "b"),
        ("aa", 1, 3, "a"),
        ("aa", 2, 3, ""),
        ("ab bb", 2, 2, "b"),
        ("ab bb", 3, 3, ""),
        ("ab bb bc", 1, 3, "bc"),
    ],
)
def test_the_cases_that_are_easy_to_get_wrong(
    sizes: ReadSettings, pairs: str, least: int, most: int, expected: str
) -> None:
    """A node counts at its shortest distance; a loop leads to its own node once more, but to the source only as
    the first hop."""
    listed = [("abc".index(pair[0]), "abc".index(pair[1])) for pair in pairs.split()]
    found = reached_by(adjacency_of(3, listed), [0], chain(least, most), sizes)
    assert found == [["abc".index(name) for name in expected]]
    assert found == [reached_naively(listed, 0, least, most)]


@SIZES
def test_no_sources_and_no_edges(sizes: ReadSettings) -> None:
    assert reached_by(adjacency_of(3, []), [], chain(1, 3), sizes) == []
    assert reached_by(adjacency_of(3, []), [0, 2, 0], chain(1, 3), sizes) == [[], [], []]


@SIZES
def test_a_search_stops_when_the_query_is_cancelled(sizes: ReadSettings) -> None:
    adjacency = adjacency_of(60, [(a, b) for a in range(60) for b in range(60)])
    sources = np.arange(60, dtype=np.int32)
    switch = Cancellation()
    switch.cancel()
    with pytest.raises(QueryCancelled):
        reached(adjacency, sources, chain(1, 3), Limits("q", cancellation=switch), sizes)
    with pytest.raises(QueryMemoryExceeded):
        reached(adjacency, sources, chain(1, 3), Limits("q", memory=50), sizes)
