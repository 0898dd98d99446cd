"""Adjacency says what a dictionary of neighbours would say: also with loops, parallel edges and missing ends."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.read.data.adjacency import Adjacency, from_keys, hashed_rows, packed, reversed_, shared, stored
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.read.values.counting import MANY
from omnigraph.settings import ReadSettings

SIZES = ReadSettings(pair_block=3, parallel_from=4)
"""What is done block by block, and in several threads, is so for small graphs too."""


@dataclass(frozen=True)
class Edges:
    """Edges between two kinds of nodes; an end of -1 is a node that does not exist."""

    rows: int
    width: int
    ends: tuple[tuple[int, int], ...]

    @property
    def sources(self) -> Positions:
        return np.array([source for source, _ in self.ends], dtype=np.int32)

    @property
    def targets(self) -> Positions:
        return np.array([target for _, target in self.ends], dtype=np.int32)

    @property
    def whole(self) -> list[tuple[int, int, int]]:
        """Edges with both ends: source, target, number."""
        return [(a, b, number) for number, (a, b) in enumerate(self.ends) if a >= 0 and b >= 0]

    @property
    def neighbours(self) -> dict[int, set[int]]:
        return {row: {b for a, b, _ in self.whole if a == row} for row in range(self.rows)}

    def distinct(self) -> Adjacency:
        return from_keys(packed(self.sources, self.targets), self.rows, self.width, SIZES)

    @property
    def numbered(self) -> Ints:
        """The sources of the edges that have both ends, packed with the edges' numbers."""
        near = np.where(self.targets < 0, -1, self.sources).astype(np.int32)
        return packed(near, np.arange(len(near), dtype=np.int32))

    def stored(self) -> Adjacency:
        return stored([self.numbered], [self.targets], None, self.rows, self.width, SIZES)


@st.composite
def edges(draw: st.DrawFn, *, square: bool = False) -> Edges:
    rows = draw(st.integers(0, 6))
    width = rows if square else draw(st.integers(0, 6))
    ends = st.tuples(st.integers(-1, rows - 1), st.integers(-1, width - 1))
    return Edges(rows, width, tuple(draw(st.lists(ends, max_size=25))))


def listed(adjacency: Adjacency) -> dict[int, list[int]]:
    """The rows as lists."""
    bounds = adjacency.starts.tolist()
    return {row: adjacency.targets[low:high].tolist() for row, (low, high) in enumerate(pairwise(bounds))}


def listed_edges(adjacency: Adjacency) -> list[tuple[int, int, int]]:
    assert adjacency.edges is not None
    triples = zip(adjacency.owners().tolist(), adjacency.targets.tolist(), adjacency.edges.tolist(), strict=True)
    return list(triples)


@settings(deadline=None)
@given(edges())
def test_distinct_pairs_are_there_once_in_order(some: Edges) -> None:
    adjacency = some.distinct()
    assert listed(adjacency) == {row: sorted(near) for row, near in some.neighbours.items()}
    assert (len(adjacency), adjacency.width) == (some.rows, some.width)
    assert adjacency.pairs == sum(map(len, some.neighbours.values()))
    assert adjacency.degrees.tolist() == [len(near) for near in some.neighbours.values()]
    assert adjacency.edges is None


@settings(deadline=None)
@given(edges(square=True))
def test_pairs_of_both_directions_become_one(some: Edges) -> None:
    keys = [packed(some.sources, some.targets), packed(some.targets, some.sources)]
    both = from_keys(np.concatenate(keys), some.rows, some.width, SIZES)
    near = {row: set(some.neighbours[row]) for row in range(some.rows)}
    for a, b, _ in some.whole:
        near[b].add(a)
    assert listed(both) == {row: sorted(found) for row, found in near.items()}


@settings(deadline=None)
@given(edges())
def test_stored_edges_are_all_there_in_their_own_order(some: Edges) -> None:
    found = listed_edges(some.stored())
    assert found == sorted(some.whole, key=lambda edge: (edge[0], edge[2]))


@settings(deadline=None)
@given(edges())
def test_stored_edges_keep_the_numbers_they_are_given(some: Edges) -> None:
    numbers = np.arange(len(some.ends), dtype=np.int32)[::-1].copy()
    found = listed_edges(stored([some.numbered], [some.targets], numbers, some.rows, some.width, SIZES))
    assert sorted(found) == sorted((a, b, len(some.ends) - 1 - number) for a, b, number in some.whole)


@settings(deadline=None)
@given(edges())
def test_the_other_side_says_the_same(some: Edges) -> None:
    back = reversed_(some.distinct())
    assert (len(back), back.width) == (some.width, some.rows)
    near = {column: {a for a, b, _ in some.whole if b == column} for column in range(some.width)}
    assert listed(back) == {column: sorted(found) for column, found in near.items()}
    assert listed(reversed_(back)) == listed(some.distinct())
    turned = [(b, a, number) for a, b, number in some.whole]
    assert sorted(listed_edges(reversed_(some.stored()))) == sorted(turned)


@settings(deadline=None)
@given(edges(), st.data())
def test_contains_knows_every_pair(some: Edges, data: st.DataObject) -> None:
    if not some.rows or not some.width:
        return
    asked = data.draw(st.lists(st.tuples(st.integers(0, some.rows - 1), st.integers(0, some.width - 1))))
    rows = np.array([a for a, _ in asked], dtype=np.int32)
    targets = np.array([b for _, b in asked], dtype=np.int32)
    near = some.neighbours
    expected = [b in near[a] for a, b in asked]
    for adjacency in (some.distinct(), some.stored()):
        assert adjacency.contains(rows, targets).tolist() == expected
        maybe = set(adjacency.maybe_contains(hashed_rows(rows), targets).tolist())
        assert maybe >= {number for number, held in enumerate(expected) if held}


@settings(deadline=None)
@given(edges(), st.data())
def test_expand_lists_the_entries_of_each_position(some: Edges, data: st.DataObject) -> None:
    positions = data.draw(st.lists(st.integers(0, some.rows - 1), max_size=10)) if some.rows else []
    adjacency, announced = some.stored(), list[int]()
    owners, places, counts = adjacency.expand(np.array(positions, dtype=np.int32), announced.append)
    rows = listed(adjacency)
    expected = [(number, near) for number, row in enumerate(positions) for near in rows[row]]
    assert list(zip(owners.tolist(), adjacency.targets[places].tolist(), strict=True)) == expected
    assert counts.tolist() == [len(rows[row]) for row in positions]
    assert announced == [len(expected)]


@settings(deadline=None)
@given(edges(), st.data())
def test_row_sums_add_up_the_neighbours(some: Edges, data: st.DataObject) -> None:
    weights = st.one_of(st.integers(0, 5), st.integers(0, MANY))
    drawn = data.draw(st.lists(weights, min_size=some.width, max_size=some.width))
    for adjacency in (some.distinct(), some.stored()):
        sums = [sum(drawn[near] for near in row) for row in listed(adjacency).values()]
        found = adjacency.row_sums(np.array(drawn, dtype=np.int64))
        assert found.tolist() == [min(total, MANY) for total in sums]
        truths = [weight % 2 == 1 for weight in drawn]
        counted = [sum(truths[near] for near in row) for row in listed(adjacency).values()]
        assert adjacency.row_sums(np.array(truths, dtype=np.bool_)).tolist() == counted


@settings(deadline=None)
@given(edges())
def test_a_function_has_one_neighbour_at_most(some: Edges) -> None:
    adjacency = some.distinct()
    near = some.neighbours.values()
    assert adjacency.is_function == all(len(found) <= 1 for found in near)
    if adjacency.is_function:
        assert adjacency.only.tolist() == [next(iter(found), -1) for found in near]
    owners = Counter(adjacency.owners().tolist())
    assert all(owners[row] == len(found) for row, found in some.neighbours.items())


@settings(deadline=None)
@given(edges(), st.data())
def test_shared_pairs_are_in_both(some: Edges, data: st.DataObject) -> None:
    ends = st.tuples(st.integers(-1, some.rows - 1), st.integers(-1, some.width - 1))
    other = Edges(some.rows, some.width, tuple(data.draw(st.lists(ends, max_size=25))))
    both = shared(some.distinct(), other.distinct())
    assert listed(both) == {row: sorted(near & other.neighbours[row]) for row, near in some.neighbours.items()}
    assert (len(both), both.width) == (some.rows, some.width)


def test_nothing_at_all() -> None:
    for adjacency in (Edges(0, 0, ()).distinct(), Edges(0, 0, ()).stored()):
        assert (len(adjacency), adjacency.pairs, adjacency.is_function) == (0, 0, True)
        assert adjacency.row_sums(np.zeros(0, dtype=np.int64)).tolist() == []
        none = np.zeros(0, dtype=np.int32)
        assert adjacency.contains(none, none).tolist() == []
        assert [part.tolist() for part in adjacency.expand(none)] == [[], [], []]


def test_large_numbers_of_nodes_do_not_run_into_each_other() -> None:
    """Two positions are packed into one number to be sorted."""
    last = 2**31 - 2
    sources = np.array([1, 0, 1], dtype=np.int32)
    targets = np.array([last, last, 0], dtype=np.int32)
    adjacency = from_keys(packed(sources, targets), 2, last + 1, SIZES)
    assert listed(adjacency) == {0: [last], 1: [0, last]}
    assert adjacency.contains(np.array([0, 0, 1]), np.array([0, last, last])).tolist() == [False, True, True]


def test_many_pairs() -> None:
    """Enough of them that several share a slot."""
    random = np.random.default_rng(5)
    sources = random.integers(0, 500, 20_000).astype(np.int32)
    targets = random.integers(0, 500, 20_000).astype(np.int32)
    adjacency = from_keys(packed(sources, targets), 500, 500, SIZES)
    there = set(zip(sources.tolist(), targets.tolist(), strict=True))
    rows, columns = (array.ravel().astype(np.int32) for array in np.meshgrid(np.arange(500), np.arange(500)))
    found = adjacency.contains(rows, columns)
    assert set(zip(rows[found].tolist(), columns[found].tolist(), strict=True)) == there


def test_it_can_be_measured_while_others_derive_from_it() -> None:
    """Readers in other threads fill in what they need at any time."""
    ends = np.arange(50, dtype=np.int32)
    done = threading.Event()
    made = [stored([packed(ends, ends)], [ends], None, 50, 50, SIZES) for _ in range(300)]

    def derive() -> None:
        for adjacency in made:
            assert adjacency.is_function
            assert adjacency.only.tolist() == ends.tolist()
            assert adjacency.contains(ends, ends).all()
        done.set()

    thread = threading.Thread(target=derive)
    thread.start()
    while not done.is_set():
        assert all(adjacency.nbytes > 0 for adjacency in made)
    thread.join()
