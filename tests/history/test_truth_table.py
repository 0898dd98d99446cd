"""Every pair of operations, on branches that are related in each way, whatever has happened to their tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import pytest
from tests.history.model import State, merged_state
from tests.history.test_diff import content
from tests.history.truth import BASE, CONFLICTS, OPERATIONS, SCHEMA, merged, truth, write
from tests.sampling import sampled
from tests.stores import memory_store

import omnigraph
from omnigraph import Graph


@dataclass(frozen=True)
class Sides:
    """The two branches of a merge: the one that is merged, and the one that it is merged into."""

    source: str
    target: str


RELATIONS: dict[str, Callable[[Graph], Sides]] = {}
"""How the branches of a merge are related, as functions that create them."""


def relation(create: Callable[[Graph], Sides]) -> Callable[[Graph], Sides]:
    RELATIONS[create.__name__.replace("_", " ")] = create
    return create


@relation
def siblings(graph: Graph) -> Sides:
    graph.create_branch("ours")
    graph.create_branch("theirs")
    return Sides("theirs", "ours")


@relation
def branch_into_main(graph: Graph) -> Sides:
    graph.create_branch("theirs")
    return Sides("theirs", "main")


@relation
def main_into_branch(graph: Graph) -> Sides:
    graph.create_branch("ours")
    return Sides("main", "ours")


@relation
def child_into_parent(graph: Graph) -> Sides:
    graph.create_branch("ours")
    graph.create_branch("theirs", "ours")
    return Sides("theirs", "ours")


@relation
def parent_into_child(graph: Graph) -> Sides:
    graph.create_branch("theirs")
    graph.create_branch("ours", "theirs")
    return Sides("theirs", "ours")


MAINTAINED: dict[str, tuple[str, tuple[str, ...]]] = {
    "after compaction of the source": ("optimize", ("source",)),
    "after compaction of the target": ("optimize", ("target",)),
    "after compaction of both": ("optimize", ("source", "target")),
    "after an index build on the source": ("ensure_indices", ("source",)),
    "after an index build on the target": ("ensure_indices", ("target",)),
    "after index builds on both": ("ensure_indices", ("source", "target")),
}
"""What is done to tables between the writes and the merge, and on which sides."""

CIRCUMSTANCES = [
    *(("plain", name) for name in RELATIONS),
    *product([*MAINTAINED, "after a criss-cross merge"], ["siblings", "branch into main"]),
]


def test_the_table_covers_every_pair_and_is_symmetric() -> None:
    cells = truth()
    assert set(cells) == set(product(OPERATIONS, OPERATIONS))
    for source, target in cells:
        both = cells[source, target], cells[target, source]
        assert both[0] == both[1] or "nothing" in (source, target)


@pytest.mark.parametrize(
    ("circumstance", "related", "source"), sampled([(*c, o) for c in CIRCUMSTANCES for o in OPERATIONS], 4)
)
def test_every_pair(circumstance: str, related: str, source: str) -> None:
    """One row of the table. What comes of a merge is what a model makes of the three states, too."""
    for target in OPERATIONS:
        graph = omnigraph.init(memory_store().uri, SCHEMA)
        graph.load(BASE[:2], mode="append")
        graph.load(BASE[2:], mode="append")
        sides = RELATIONS[related](graph)
        if circumstance == "after a criss-cross merge":
            criss_cross(graph, sides)
        base = content(graph, graph.snapshot(sides.target))
        write(graph, sides.target, target, 1)
        write(graph, sides.source, source, 2)
        maintain(graph, sides, circumstance)
        check(graph, sides, base, truth()[source, target], (source, target))
        graph.close()


def criss_cross(graph: Graph, sides: Sides) -> None:
    """Each side merges an older state of the other, so that there are two merge bases."""
    graph.load([{"type": "Person", "data": {"name": "Dan", "age": 40}}], mode="merge", branch=sides.target)
    graph.load([{"type": "Person", "data": {"name": "Carol", "age": 50}}], mode="merge", branch=sides.source)
    graph.create_branch("older", sides.target)
    assert merged(graph, sides.source, sides.target) == "merged"
    assert merged(graph, "older", sides.source) == "merged"


def maintain(graph: Graph, sides: Sides, circumstance: str) -> None:
    verb, on = MAINTAINED.get(circumstance, ("", ()))
    for side in on:
        getattr(graph, verb)(branch=getattr(sides, side))


def check(graph: Graph, sides: Sides, base: State, expected: str, pair: tuple[str, str]) -> None:
    """Merge, and compare the outcome with the table and the content with the model."""
    ours, theirs = (content(graph, graph.snapshot(branch)) for branch in (sides.target, sides.source))
    after, kinds = merged_state(base, ours, theirs)
    source_moved = has_own_commits(graph, sides.source, sides.target)
    target_moved = has_own_commits(graph, sides.target, sides.source)
    found = merged(graph, sides.source, sides.target)
    if expected in CONFLICTS.values():
        assert (found, kinds) == (expected, {expected}), pair
        return
    # A side that wrote nothing may have moved all the same: compactions, index builds and merges are commits.
    if source_moved:
        expected = "merged" if target_moved else "fast_forward"
    assert found == expected, pair
    assert (content(graph, graph.snapshot(sides.target)), kinds) == (after, set()), pair
    assert merged(graph, sides.source, sides.target) == "already_up_to_date"


def has_own_commits(graph: Graph, branch: str, other: str) -> bool:
    """Has a branch commits that another one does not have?"""
    ids = [{commit.graph_commit_id for commit in graph.commits(name, limit=100)} for name in (branch, other)]
    return not ids[0] <= ids[1]
