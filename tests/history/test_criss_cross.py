"""After a criss-cross merge there are two best merge bases, and each side has what the other one's base has."""

from __future__ import annotations

from itertools import product

import pytest
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import Graph

WAYS = (("left", "main"), ("main", "left"))
SCHEMA = "node Item { name: String @key  count: I32?  note: String? }"


def put(graph: Graph, branch: str, name: str, count: int) -> None:
    graph.load([{"type": "Item", "data": {"name": name, "count": count}}], mode="merge", branch=branch)


def remove(graph: Graph, branch: str, name: str) -> None:
    graph.mutate(f'query q() {{ delete Item where name = "{name}" }}', branch=branch)


def counts(graph: Graph, branch: str) -> dict[str, int]:
    rows = graph.query("query q() { match { $i: Item } return { $i.name, $i.count } }", branch=branch).rows
    return {str(row["i.name"]): int(row["i.count"]) for row in rows}


@pytest.fixture(params=["left", "main"])
def graph(memory_store: Store, request: pytest.FixtureRequest) -> Graph:
    """Left has added `l` and main `m`, and each has merged that of the other. One of them has moved on since, so
    that the base of the other one is the nearest."""
    graph = omnigraph.init(memory_store.uri, SCHEMA)
    put(graph, "main", "shared", 0)
    graph.create_branch("left")
    put(graph, "left", "l", 1)
    put(graph, "main", "m", 1)
    graph.create_branch("older", "left")
    assert graph.merge("main", "left").outcome == "merged"
    assert graph.merge("older", "main").outcome == "merged"
    for number in range(3):
        put(graph, request.param, f"busy {number}", number)
    return graph


@pytest.mark.parametrize(
    ("name", "on", "source", "target"),
    sampled(((*one, *way) for one in product("lm", ["left", "main"]) for way in WAYS), 3),
)
class TestBothDirections:
    """What one side has changed since is taken, and what the other one has only got by a merge is no change."""

    def test_what_was_removed_stays_removed(
        self, graph: Graph, name: str, on: str, source: str, target: str
    ) -> None:
        remove(graph, on, name)
        graph.merge(source, target)
        assert name not in counts(graph, target)

    def test_a_change_is_no_conflict(self, graph: Graph, name: str, on: str, source: str, target: str) -> None:
        put(graph, on, name, 2)
        graph.merge(source, target)
        assert counts(graph, target)[name] == 2
        graph.merge(target, source)
        assert len(graph.diff(source, target)) == 0
