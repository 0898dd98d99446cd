"""An adjacency that follows a change is the one that would be built from the tables after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.read.data.adjacency import Adjacency, from_keys, packed, reversed_, stored
from omnigraph.read.data.following import Change, EdgeChange, Moves, edited, followed
from omnigraph.read.values.columns import Ints, Positions
from omnigraph.settings import ReadSettings

SIZES = ReadSettings(pair_block=3, parallel_from=4)


@dataclass(frozen=True)
class World:
    """Nodes by name with their positions, and edges between names by their own positions."""

    nodes: dict[int, int]
    edges: dict[int, tuple[int, int]]
    size: int

    def ends(self, numbers: list[int]) -> tuple[Positions, Positions]:
        near = [self.nodes[self.edges[number][0]] for number in numbers]
        far = [self.nodes[self.edges[number][1]] for number in numbers]
        return np.array(near, dtype=np.int32), np.array(far, dtype=np.int32)

    def change_of(self, numbers: list[int]) -> EdgeChange:
        return EdgeChange(*self.ends(numbers), np.array(numbers, dtype=np.int32))

    def pairs(self) -> Adjacency:
        return from_keys(packed(*self.ends(list(self.edges))), self.size, self.size, SIZES)

    def stored(self) -> Adjacency:
        near, far = self.ends(list(self.edges))
        keys = packed(near, np.arange(len(near), dtype=np.int32))
        return stored([keys], [far], np.array(list(self.edges), dtype=np.int32), self.size, self.size, SIZES)


@st.composite
def changes(draw: st.DrawFn) -> tuple[World, World]:
    """A world before and after: nodes are deleted, with their edges, moved or added, and edges too."""
    count = draw(st.integers(1, 12))
    ends = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1))
    first = draw(st.lists(ends, max_size=30))
    before = World({name: name for name in range(count)}, dict(enumerate(first)), count)
    gone = draw(st.sets(st.integers(0, count - 1), max_size=3))
    moved = draw(st.one_of(st.sets(st.integers(0, count - 1), max_size=3), st.just(set(range(count)))))
    nodes, size = dict(before.nodes), count
    for name in sorted(moved):
        nodes[name], size = size, size + 1
    for name in gone:
        del nodes[name]
    size += draw(st.integers(0, 2))
    dropped = draw(st.sets(st.integers(0, 40), max_size=5))
    edges = {
        number: pair for number, pair in before.edges.items() if number not in dropped and gone.isdisjoint(pair)
    }
    if nodes:
        names = st.sampled_from(sorted(nodes))
        for pair in draw(st.lists(st.tuples(names, names), max_size=5)):
            edges[100 + len(edges)] = pair
    return before, World(nodes, edges, size)


def between(before: World, after: World) -> Change:
    left = sorted(at for name, at in before.nodes.items() if after.nodes.get(name) != at)
    names = {at: name for name, at in before.nodes.items()}
    to = [after.nodes.get(names[at], -1) for at in left]
    moves = Moves(np.array(left, dtype=np.int32), np.array(to, dtype=np.int32))
    gone = before.change_of([number for number in before.edges if number not in after.edges])
    came = after.change_of([number for number in after.edges if number not in before.edges])
    return Change(after.size, after.size, moves, moves, gone, came)


def turned(change: Change) -> Change:
    gone = EdgeChange(change.gone.far, change.gone.near, change.gone.edges)
    came = EdgeChange(change.came.far, change.came.near, change.came.edges)
    return Change(change.rows, change.width, change.far, change.near, gone, came)


def entries(adjacency: Adjacency) -> list[tuple[int, ...]]:
    columns: list[Ints | Positions] = [adjacency.owners(), adjacency.targets]
    if adjacency.edges is not None:
        columns.append(adjacency.edges)
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@settings(max_examples=examples(25, of=500), deadline=None)
@given(changes(), st.booleans())
def test_distinct_pairs_follow(worlds: tuple[World, World], is_reversed: bool) -> None:
    before, after = worlds
    start, expected, change = before.pairs(), after.pairs(), between(before, after)
    if is_reversed:
        start, expected, change = reversed_(start), reversed_(expected), turned(change)
    start.prepare()
    found, is_loose = followed(start, change)
    assert not is_loose
    assert found.starts.tolist() == expected.starts.tolist()
    assert found.targets.tolist() == expected.targets.tolist()
    assert found.repeats is not None
    assert expected.repeats is not None
    assert found.repeats.tolist() == expected.repeats.tolist()
    rows, targets = (part.ravel() for part in np.indices((after.size, after.size)))
    assert found.contains(rows, targets).tolist() == expected.contains(rows, targets).tolist()


@settings(max_examples=examples(25, of=500), deadline=None)
@given(changes())
def test_edges_follow(worlds: tuple[World, World]) -> None:
    before, after = worlds
    found, is_loose = followed(before.stored(), between(before, after))
    assert not is_loose
    assert entries(found) == entries(after.stored())


@settings(max_examples=examples(25, of=500), deadline=None)
@given(
    st.lists(st.integers(0, 40), unique=True, max_size=8),
    st.lists(st.integers(0, 41), max_size=8),
    st.sampled_from([1, 200]),
)
def test_an_array_is_edited_as_a_list_would_be(gone: list[int], added: list[int], times: int) -> None:
    """With few changes and with many, for which there is another way."""
    array, gone, added = np.arange(41), sorted(gone), sorted(added * times)
    values = np.arange(1_000, 1_000 + len(added))
    expected, rest = [], list(zip(added, values.tolist(), strict=True))
    for index in range(len(array) + 1):
        expected += [value for place, value in rest if place == index]
        expected += [index] if index < len(array) and index not in gone else []
    found = edited(array, np.array(gone, dtype=np.int64), np.array(added, dtype=np.int64), values)
    assert found.tolist() == expected
