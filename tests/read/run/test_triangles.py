"""Triangles of a relation that is the same in both directions are found once, and named in all six ways."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from random import Random

import pytest

import omnigraph
from omnigraph.graph import Graph
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { name: String @key  age: I32 }
node Tag { name: String @key }
edge Knows: Person -> Person
edge Likes: Person -> Tag
"""
EAGER = Settings(read=ReadSettings(piece_rows=7, pair_block=3, parallel_from=4))
PEOPLE = 24
Pair = tuple[int, int]


def graph_of(pairs: Iterable[Pair], settings: Settings | None = None) -> Graph:
    """People of different ages who know each other as given; every third likes something."""
    address = omnigraph.init(f"memory://{uuid.uuid4().hex}/g", SCHEMA).address
    graph = omnigraph.open(address, settings=settings or Settings())
    records: list[object] = [{"type": "Person", "data": {"name": f"p{i}", "age": i % 5}} for i in range(PEOPLE)]
    records += [{"type": "Tag", "data": {"name": f"t{i}"}} for i in range(2)]
    records += [{"edge": "Knows", "from": f"p{one}", "to": f"p{other}"} for one, other in pairs]
    records += [{"edge": "Likes", "from": f"p{i}", "to": f"t{i % 2}"} for i in range(0, PEOPLE, 3)]
    graph.load("\n".join(map(json.dumps, records)), mode="append")
    return graph


def friendships(seed: int, share: float = 0.3) -> set[Pair]:
    """Who knows whom, in both directions."""
    random = Random(seed)
    pairs = {(i, j) for i in range(PEOPLE) for j in range(i) if random.random() < share}
    return pairs | {(j, i) for i, j in pairs}


def triangles(pairs: set[Pair]) -> list[tuple[int, int, int]]:
    return [t for t in permutations(range(PEOPLE), 3) if {(t[0], t[1]), (t[1], t[2]), (t[2], t[0])} <= pairs]


MATCH = "$a: Person  $a knows $b  $b knows $c  $c knows $a"


def asked(graph: Graph, match: str, columns: str) -> list[tuple[object, ...]]:
    rows = graph.query(f"query q() {{ match {{ {match} }} return {{ {columns} }} }}").table.to_pylist()
    return [tuple(row.values()) for row in rows]


@pytest.mark.parametrize("settings", [Settings(), EAGER], ids=["plain", "in pieces"])
@pytest.mark.parametrize("seed", range(3))
def test_all_triangles_are_found(seed: int, settings: Settings) -> None:
    pairs = friendships(seed)
    graph, expected = graph_of(pairs, settings), triangles(pairs)
    names = Counter((f"p{a}", f"p{b}", f"p{c}") for a, b, c in expected)
    assert "Triangles" in graph.explain(f"query q() {{ match {{ {MATCH} }} return {{ count($a) as n }} }}")
    assert asked(graph, MATCH, "count($a) as n") == [(len(expected),)]
    assert Counter(asked(graph, MATCH, "$a.name, $b.name, $c.name")) == names
    older = [(a, b, c) for a, b, c in expected if a % 5 > b % 5]
    assert asked(graph, f"{MATCH}  $a.age > $b.age", "count($c) as n") == [(len(older),)]
    liked = sum((a % 3 == 0) + 0 for a, b, c in expected if c % 5 != 2)
    assert asked(graph, f"{MATCH}  $a likes $t  $c.age != 2", "count($t) as n") == [(liked,)]
    by_age = Counter(b % 5 for _, b, _ in expected)
    assert sorted(asked(graph, MATCH, "$b.age, count($a) as n")) == sorted(by_age.items())


def test_hops_in_both_directions_are_symmetric_whatever_is_stored() -> None:
    pairs = {(i, j) for i, j in friendships(3) if i < j}
    expected = triangles(pairs | {(j, i) for i, j in pairs})
    match = "$a: Person  $a <knows> $b  $b <knows> $c  $c <knows> $a"
    assert asked(graph_of(pairs), match, "count($a) as n") == [(len(expected),)]
    assert asked(graph_of(pairs), MATCH, "count($a) as n") == [(len(triangles(pairs)),)]


@pytest.mark.parametrize("more", [{(4, 4)}, {(0, 23)}], ids=["a loop", "one direction"])
def test_a_relation_that_is_not_symmetric_is_searched_row_by_row(more: set[Pair]) -> None:
    pairs = (friendships(4) - {(0, 23), (23, 0)}) | more
    ends = [(a, b, c) for a, b in pairs for c in range(PEOPLE) if {(b, c), (c, a)} <= pairs]
    graph = graph_of(pairs)
    assert "Triangles" not in graph.explain(f"query q() {{ match {{ {MATCH} }} return {{ count($a) as n }} }}")
    assert asked(graph, MATCH, "count($a) as n") == [(len(ends),)]


def test_triangles_follow_changes() -> None:
    pairs = friendships(5)
    graph = graph_of([*pairs, *list(pairs)[:4]])
    assert asked(graph, MATCH, "count($a) as n") == [(len(triangles(pairs)),)]
    graph.mutate('query m() { delete Person where name = "p3" }')
    left = {pair for pair in pairs if 3 not in pair}
    assert asked(graph, MATCH, "count($a) as n") == [(len(triangles(left)),)]
    graph.load('{"edge": "Knows", "from": "p1", "to": "p1"}', mode="append")
    assert asked(graph, MATCH, "$a.name, $b.name, $c.name").count(("p1", "p1", "p1")) == 1


def test_a_selective_corner_comes_first() -> None:
    graph = graph_of(friendships(6))
    text = f'query q() {{ match {{ {MATCH}  $a.name = "p1" }} return {{ count($b) as n }} }}'
    assert "Triangles" not in graph.explain(text)
