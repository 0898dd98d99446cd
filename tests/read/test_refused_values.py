"""Values of parameters that fit their type and still make no query: refused before anything is read."""

from __future__ import annotations

import pytest
from tests.write.support import new_graph

from omnigraph.errors import ParameterError
from omnigraph.graph import Graph

SCHEMA = "node Doc { slug: String @key  title: String?  shape: Vector(2)? }"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return new_graph(SCHEMA)


@pytest.mark.parametrize(
    ("rest", "declared"),
    [
        ("return { $d.slug } limit $n", "I32"),
        ("return { $d.slug } limit 3 offset $n", "I64"),
        ("return { count($d) as n } limit $n", "I32"),
        ("return distinct { $d.title } order { $d.title } limit $n", "I32"),
        ('return { $d.slug } order { rrf(bm25($d.title, "x"), bm25($d.slug, "x"), $n) } limit 3', "I32"),
        ('return { $d.slug, rrf(bm25($d.title, "x"), bm25($d.slug, "x"), $n) as s } limit 3', "I32"),
    ],
)
def test_a_number_that_cannot_be_negative(graph: Graph, rest: str, declared: str) -> None:
    text = f"query q($n: {declared}) {{ match {{ $d: Doc }} {rest} }}"
    with pytest.raises(ParameterError) as refused:
        graph.query(text, {"n": -1})
    assert list(refused.value.problems) == ["n"]


def test_edits_cannot_be_negative(graph: Graph) -> None:
    text = 'query q($n: I32) { match { $d: Doc  fuzzy($d.title, "x", $n) } return { $d.slug } }'
    with pytest.raises(ParameterError) as refused:
        graph.query(text, {"n": -1})
    assert list(refused.value.problems) == ["n"]
    assert graph.query(text, {"n": 0}).rows == []


def test_what_is_missing_is_named(graph: Graph) -> None:
    with pytest.raises(ParameterError) as refused:
        graph.query("query q($n: I32, $s: String) { match { $d: Doc { slug: $s } } return { $n } }", {})
    assert sorted(refused.value.problems) == ["n", "s"]
