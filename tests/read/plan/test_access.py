"""A query about a few rows of large tables reads those rows; many of them, and the tables are read after all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.write.support import new_graph

from omnigraph.graph import Graph
from omnigraph.read.plan.access import forced_access, forced_path
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { slug: String @key  age: I64  bio: String?  badge: I64? @unique  desk: I64? @index }
node Team { city: String  name: String  size: I64  @key(city, name) }
edge Knows: Person -> Person { since: I64 }
edge PlaysIn: Person -> Team
"""
PEOPLE = 40


SIZES = ReadSettings(small_table=5, rows_per_lookup=10)


@pytest.fixture
def graph() -> Graph:
    """Forty people, which count as many here: a table of more than five is worth looking things up in, until that
    has been done four times."""
    graph = Graph(new_graph(SCHEMA)._repository, settings=Settings(read=SIZES))
    team = graph.catalog.nodes["Team"]
    records: list[dict[str, Any]] = [
        {"type": "Person", "data": {"slug": f"p{i}", "age": i, "bio": f"number {i}", "badge": i, "desk": i % 7}}
        for i in range(PEOPLE)
    ]
    records += [{"type": "Team", "data": {"city": "oslo", "name": f"t{i}", "size": i}} for i in range(3)]
    records += [
        {"edge": "Knows", "from": f"p{i}", "to": f"p{(i * 3 + j) % PEOPLE}", "data": {"since": j}}
        for i in range(PEOPLE)
        for j in range(5)
    ]
    records += [
        {"edge": "PlaysIn", "from": f"p{i}", "to": team.id_of({"city": "oslo", "name": f"t{i % 3}"}), "data": {}}
        for i in range(PEOPLE)
    ]
    graph.load(records, mode="append")
    return graph


def path(graph: Graph, match: str, returns: str = "$p.slug") -> str:
    """The path a query would take."""
    shown = graph.explain(f"query q() {{ match {{ {match} }} return {{ {returns} }} }}")
    return "index" if ": index" in shown else "memory"


class TestTheChoice:
    @pytest.mark.parametrize(
        "match",
        [
            '$p: Person { slug: "p1" }',
            '$p: Person $p.slug = "p1"',
            '$p: Person { slug: "p1" } $p knows $q',
            '$p: Person { slug: "p1", age: 7 } $p knows $q  $q knows $r  $r.age > 5',
            '$q: Person $p knows $q  $p.slug = "p1"',
            '$p: Person { slug: "p1" } $p $e:knows $q  $e.since > 1',
            '$p: Person { slug: "p1" } not { $p knows $q }',
            '$p: Person { slug: "p1" } optional { $p knows $q }',
            '$p: Person $t: Team { city: "oslo", name: "t1" } $p playsIn $t',
        ],
    )
    def test_from_a_key_along_hops(self, graph: Graph, match: str) -> None:
        assert path(graph, match) == "index"

    @pytest.mark.parametrize(
        "match",
        [
            "$p: Person",
            "$p: Person { age: 7 }",
            '$p: Person $p.slug != "p1"',
            '$p: Person { slug: "p1" } $p knows{1,3} $q',
            '$p: Person { slug: "p1" } not { $p knows{2,3} $q  $q.age > 5 }',
            '$p: Person { slug: "p1" } $q: Person',
            '$p: Person $t: Team { city: "oslo" } $p playsIn $t',
        ],
    )
    def test_everything_else_in_memory(self, graph: Graph, match: str) -> None:
        assert path(graph, match) == "memory"

    @pytest.mark.parametrize(
        "match",
        ["$p: Person { badge: 7 }", "$p: Person { desk: 3 } $p knows $q", '$p: Person { desk: 1, slug: "p1" }'],
    )
    def test_from_an_indexed_value(self, graph: Graph, match: str) -> None:
        assert path(graph, match) == "index"
        rows = graph.query(f"query q() {{ match {{ {match} }} return {{ $p.slug }} }}").rows
        with forced_access("memory"):
            again = graph.query(f"query q() {{ match {{ {match} }} return {{ $p.slug }} }}").rows
        assert sorted(row["p.slug"] for row in rows) == sorted(row["p.slug"] for row in again) != []

    def test_small_tables_are_read_whole(self, graph: Graph) -> None:
        assert path(graph, '$t: Team { city: "oslo", name: "t1" }', "$t.size") == "memory"

    def test_scores_need_the_whole_table(self, graph: Graph) -> None:
        assert path(graph, '$p: Person { slug: "p1" }', 'bm25($p.bio, "number") as score') == "memory"

    def test_a_key_that_is_not_there_with_a_block_that_compares_values(self, graph: Graph) -> None:
        text = """query q($s: String) {
            match { $p: Person { slug: $s }  optional { $q: Person  $q.age = $p.age } }
            return { $p.slug, $q.slug } }"""
        with forced_access("index"):
            assert graph.query(text, {"s": "nobody"}).rows == []
            assert graph.query(text, {"s": "p3"}).rows == [{"p.slug": "p3", "q.slug": "p3"}]

    def test_what_is_in_memory_is_used(self, graph: Graph) -> None:
        match = '$p: Person { slug: "p1" } $p knows $q'
        assert path(graph, match) == "index"
        graph.query("query q() { match { $p: Person $p knows $q } return { $p.slug, $q.slug } }")
        assert path(graph, match) == "memory"
        graph._cache.clear()
        assert path(graph, match) == "index"

    def test_a_key_that_is_in_memory_is_used(self, graph: Graph) -> None:
        match = '$p: Person { slug: "p1" }'
        graph.query("query q() { match { $p: Person } return { $p.slug } }")
        assert path(graph, match) == "memory"
        assert path(graph, "$p: Person { badge: 7 }") == "index"

    def test_a_topology_that_is_saved_is_read_sooner(self, graph: Graph) -> None:
        sizes = ReadSettings(small_table=PEOPLE, rows_per_lookup=1, save_from=PEOPLE, lookups_for_saved=2)
        text = 'query q() { match { $p: Person { slug: "p1" } $p knows $q } return { $q.slug } order { $q.slug } }'
        paths = []
        for saved in (False, True):
            again = Graph(graph._repository, settings=Settings(read=sizes))
            if saved:
                again.ensure_indices()
            paths.append([": index" in again.explain(text) for _ in range(4) if again.query(text).rows])
        assert paths == [[True] * 4, [True, False, False, False]]

    def test_what_is_asked_for_often_is_read(self, graph: Graph) -> None:
        text = "query q($s: String) { match { $p: Person { slug: $s } } return { $p.age } }"
        for number in range(4):
            assert ": index" in graph.explain(text, {"s": f"p{number}"})
            assert graph.query(text, {"s": f"p{number}"}).rows == [{"p.age": number}]
        assert ": in memory" in graph.explain(text, {"s": "p9"})
        assert graph.query(text, {"s": "p9"}).rows == [{"p.age": 9}]

    def test_explaining_is_no_asking(self, graph: Graph) -> None:
        for _ in range(10):
            assert path(graph, '$p: Person { slug: "p1" }') == "index"


class TestForcing:
    def test_one_path_for_all_queries_of_a_block(self, graph: Graph) -> None:
        assert forced_path() is None
        with forced_access("memory"):
            assert forced_path() == "memory"
            assert path(graph, '$p: Person { slug: "p1" }') == "memory"
            with forced_access("index"):
                assert path(graph, "$p: Person { age: 7 }") == "index"
            assert path(graph, '$p: Person { slug: "p1" }') == "memory"
        assert forced_path() is None

    def test_what_needs_memory_takes_it(self, graph: Graph) -> None:
        with forced_access("index"):
            assert path(graph, "$p: Person $p knows{1,2} $q") == "memory"


QUERIES = (
    'match { $p: Person { slug: "p1" } $p knows $q } return { $q.slug, $q.age } order { $q.slug }',
    'match { $p: Person { slug: "p1" } $p knows $q  $q knows $r } return { $r as r, count($q) as n } order { r }',
    'match { $p: Person { slug: "p1" } $p $e:knows $q  $e.since > 1 } return { $q as q, $e.since } order { q }',
    'match { $t: Team { city: "oslo", name: "t1" } $p playsIn $t } return { $p.slug, $t.size } order { $p.slug }',
    'match { $p: Person { slug: "p1" } $p <knows> $q  $q knows $p } return { $q.slug } order { $q.slug }',
    'match { $p: Person { slug: "p1" } optional { $p knows $q  $q.age > 99 } } return { $p.slug, $q.slug }',
    'match { $p: Person { slug: "nobody" } $p knows $q } return { $q.slug }',
)


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("indexed", [False, True], ids=["without indexes", "with indexes"])
def test_the_answer_is_the_same(graph: Graph, text: str, indexed: bool) -> None:
    if indexed:
        graph.ensure_indices()
    whole = f"query q() {{ {text} }}"
    assert ": index" in graph.explain(whole)
    by_index = graph.query(whole).to_arrow()
    with forced_access("memory"):
        assert graph.query(whole).to_arrow() == by_index


def test_too_many_rows_for_looking_up(graph: Graph) -> None:
    """Half-way through it turns out that memory would have been better: the query begins again."""
    graph = Graph(graph._repository, settings=Settings(read=replace(SIZES, lookup_rows=3)))
    text = f"query q() {{ {QUERIES[1]} }}"
    shown = graph.explain(text, analyze=True)
    assert ": index" not in shown
    with forced_access("index"):
        expected = graph.query(text).to_arrow()
    assert graph.query(text).to_arrow() == expected


@pytest.mark.parametrize(
    ("match", "found"),
    [
        ('$p: Person { slug: "p1" }  $p knows $q', True),
        ('$p: Person { slug: "p1" }  $p <knows> $q', True),
        ('$p: Person { slug: "p1" }  $p $e:knows $q  $p knows $r  $e.since > 2', True),
        ('$p: Person { slug: "nobody" }  $p knows $q', False),
        ('$t: Team { city: "oslo", name: "t1" }  $p playsIn $t', True),
    ],
)
def test_edges_are_looked_up_together_with_the_node_that_they_start_from(
    graph: Graph, match: str, found: bool
) -> None:
    text = f"query q() {{ match {{ {match} }} return {{ $p.slug }} }}"
    with forced_access("index"):
        rows = graph.query(text).rows
    with forced_access("memory"):
        assert sorted(map(str, graph.query(text).rows)) == sorted(map(str, rows))
    assert bool(list(rows)) is found


def test_a_key_that_is_no_value_of_its_type_finds_what_it_equals() -> None:
    graph = new_graph("node N { n: I64 @key } edge Next: N -> N")
    graph.load([{"type": "N", "data": {"n": n}} for n in range(4)], mode="append")
    graph.load('{"edge": "Next", "from": "1", "to": "2"}', mode="append")
    with forced_access("index"):
        rows = graph.query("query q() { match { $a: N  $a.n = 1.0  $a next $b } return { $b.n } }").rows
    assert rows == [{"b.n": 2}]
