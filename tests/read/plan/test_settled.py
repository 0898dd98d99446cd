"""What one execution of a query has settled holds for the next one, as long as its tables stay what they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.write.support import new_graph

from omnigraph.graph import Graph
from omnigraph.read import execution
from omnigraph.settings import ReadSettings, Settings

SCHEMA = """
node Person { slug: String @key  age: I64 }
edge Knows: Person -> Person
"""
LARGE = ReadSettings(small_table=5, rows_per_lookup=1, estimate_from=5)
SMALL = ReadSettings()
NEIGHBOURS = """query q($slug: String) {
    match { $p: Person { slug: $slug } $p knows $q } return { $q.slug as slug } order { slug } }"""
OLDER = "query q($age: I64) { match { $p: Person $p.age > $age $p knows $q } return { count($q) as n } }"


def graph_with(settings: ReadSettings) -> Graph:
    graph = Graph(new_graph(SCHEMA)._repository, settings=Settings(read=settings))
    records: list[dict[str, Any]] = [{"type": "Person", "data": {"slug": f"p{i}", "age": i}} for i in range(12)]
    records += [{"edge": "Knows", "from": f"p{i}", "to": f"p{(i + j) % 12}"} for i in range(12) for j in (1, 2)]
    graph.load(records, mode="append")
    return graph


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What an execution had to find out, by name."""
    calls: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        function = getattr(execution, name)

        def noted(*args: Any) -> Any:
            calls.append(name)
            return function(*args)

        return noted

    for name in ("lookup_start", "arrange"):
        monkeypatch.setattr(execution, name, noting(name))
    return calls


def slugs(graph: Graph, slug: str) -> list[str]:
    return [row["slug"] for row in graph.query(NEIGHBOURS, {"slug": slug}).rows]


def older(graph: Graph, age: int) -> int:
    found: int = graph.query(OLDER, {"age": age}).rows[0]["n"]
    return found


def test_a_plan_is_made_once_for_all_parameters(asked: list[str]) -> None:
    graph = graph_with(LARGE)
    assert older(graph, 8) == 6
    assert asked == ["lookup_start", "arrange"]
    assert older(graph, 5) == 12
    assert asked == ["lookup_start", "arrange"]


def test_a_plan_that_counts_what_parameters_leave_is_made_again(asked: list[str]) -> None:
    graph = graph_with(SMALL)
    assert (older(graph, 8), older(graph, 5)) == (6, 12)
    assert asked == ["lookup_start", "arrange", "arrange"]


def test_a_write_unsettles_it(asked: list[str]) -> None:
    graph = graph_with(LARGE)
    assert older(graph, 8) == 6
    graph.mutate('query m() { insert Knows { from: "p9", to: "p1" } }')
    asked.clear()
    assert older(graph, 8) == 7
    assert asked == ["lookup_start", "arrange"]


def test_look_ups_are_thought_of_again_when_memory_was_given_up(asked: list[str]) -> None:
    graph = graph_with(SMALL)
    assert slugs(graph, "p1") == ["p2", "p3"]
    asked.clear()
    assert slugs(graph, "p11") == ["p0", "p1"]
    assert "lookup_start" not in asked
    graph._cache.clear()
    assert slugs(graph, "p2") == ["p3", "p4"]
    assert "lookup_start" in asked


def test_look_ups_settle_nothing(asked: list[str]) -> None:
    graph = graph_with(LARGE)
    for slug, found in (("p1", ["p2", "p3"]), ("p4", ["p5", "p6"])):
        assert slugs(graph, slug) == found
    assert asked == ["lookup_start", "lookup_start"]


def test_executions_do_not_share_their_counts(asked: list[str]) -> None:
    graph = graph_with(LARGE)
    shown = [graph.explain(OLDER, {"age": 8}, analyze=True) for _ in range(2)]
    assert asked.count("arrange") == 1
    assert all("enumerating  [1 rows," in text for text in shown), shown
