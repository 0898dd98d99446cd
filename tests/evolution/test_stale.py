"""What was read, compiled, cached or indexed before a change of the schema, and is used after it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import QueryError

SCHEMA = """
node Doc {
  slug: String @key
  title: String @index
  size: I32?
  at: Vector(2)?
  @index(size)
  @index(at)
}
"""
RENAMED = (
    SCHEMA.replace("node Doc", 'node Paper @rename_from("Doc")')
    .replace("title: String @index", "heading: String @index @rename_from(title)")
    .replace("at: Vector(2)?", "place: Vector(2)? @rename_from(at)")
    .replace("@index(at)", "@index(place)")
)
WIDENED = SCHEMA.replace("size: I32?", "size: F64?")
SIZES = "query q($s: I32) { match { $d: Doc $d.size = $s } return { $d.slug } order { $d.slug } }"
WORDS = 'query q() { match { $d: Doc search($d.title, "red") } return { $d.slug } order { $d.slug } }'
NEAREST = "query q($v: Vector(2)) { match { $d: Doc } return { $d.slug } order { nearest($d.at, $v) } limit 2 }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    """Rows that are indexed, and some more that are not yet."""
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    graph.load([doc(number) for number in range(40)], mode="append")
    graph.ensure_indices()
    graph.load([doc(number) for number in range(40, 44)], mode="append")
    return graph


def doc(number: int) -> dict[str, object]:
    colour = "red" if number % 10 == 0 else "blue"
    data = {"slug": f"d{number:02}", "title": f"a {colour} thing", "size": number % 7, "at": [float(number), 1.0]}
    return {"type": "Doc", "data": data}


def found(graph: Graph, text: str, **params: object) -> list[str]:
    return [next(iter(row.values())) for row in graph.query(text, params).rows]


def searched(graph: Graph, rename: bool = False) -> tuple[list[str], list[str], list[str]]:
    """What three searches find, by the names of one schema or the other."""
    texts = [SIZES, WORDS, NEAREST]
    if rename:
        new = (("Doc", "Paper"), (".title", ".heading"), (".at", ".place"))
        for old, name in new:
            texts = [text.replace(old, name) for text in texts]
    sizes, words, nearest = texts
    return found(graph, sizes, s=3), found(graph, words), found(graph, nearest, v=[5.1, 1.0])


def test_a_handle_that_was_opened_before_finds_the_same(graph: Graph) -> None:
    reader = omnigraph.open(graph.address, read_only=True)
    before = searched(reader)
    assert before == searched(graph)
    assert len(before[0]) == 6
    assert before[1] == ["d00", "d10", "d20", "d30", "d40"]
    graph.apply_schema(RENAMED)
    for handle in (reader, graph, omnigraph.open(graph.address)):
        assert searched(handle, rename=True) == before
        with pytest.raises(QueryError, match="Doc"):
            handle.query(WORDS)
        assert handle.catalog.nodes.keys() == {"Paper"}
    graph.apply_schema(
        SCHEMA.replace("node Doc", 'node Doc @rename_from("Paper")')
        .replace("title: String @index", "title: String @index @rename_from(heading)")
        .replace("at: Vector(2)?", "at: Vector(2)? @rename_from(place)")
    )
    assert searched(reader) == before


def test_a_snapshot_that_was_taken_before_keeps_its_schema(graph: Graph) -> None:
    pinned = graph.snapshot()
    before = searched(graph)
    graph.apply_schema(RENAMED)
    graph.mutate('query q() { update Paper set { heading: "a red thing" } where slug = "d01" }')
    assert [row["d.slug"] for row in graph.query(WORDS, at=pinned).rows] == before[1]


def test_indexes_serve_renamed_properties(graph: Graph) -> None:
    """They are those that were there; none is built again, and what comes later is found too."""
    graph.ensure_indices()
    before = searched(graph)
    graph.apply_schema(RENAMED)
    assert graph.ensure_indices().commit is None, "an index knows its column by its number"
    assert searched(graph, rename=True) == before
    more = {"slug": "d99", "heading": "a red end", "size": 3, "place": [5.1, 1.0]}
    graph.load([{"type": "Paper", "data": more}], mode="append")
    sizes, words, nearest = searched(graph, rename=True)
    assert (sizes, words, nearest[0]) == ([*before[0], "d99"], [*before[1], "d99"], "d99")


def test_the_index_of_a_widened_property_is_built_anew(graph: Graph) -> None:
    graph.ensure_indices()
    before = searched(graph)
    graph.apply_schema(WIDENED)
    text = SIZES.replace("$s: I32", "$s: F64")
    assert found(graph, text, s=3.0) == before[0], "searches are right without the index"
    graph.mutate('query q() { update Doc set { size: 3.5 } where slug = "d03" }')
    for _ in range(2):
        assert found(graph, text, s=3.5) == ["d03"]
        assert found(graph, text, s=3.0) == [slug for slug in before[0] if slug != "d03"]
        assert searched_words_and_vectors(graph) == before[1:]
        built = graph.ensure_indices()
    assert built.commit is None, "the second time there is nothing left to build"


def searched_words_and_vectors(graph: Graph) -> tuple[list[str], list[str]]:
    return found(graph, WORDS), found(graph, NEAREST, v=[5.1, 1.0])


def test_a_filled_property_can_be_indexed_and_compacted(graph: Graph) -> None:
    more = SCHEMA.replace("size: I32?", "size: I32?  kind: String @index")
    graph.apply_schema(more, fill={"Doc.kind": "old"})
    graph.load([{"type": "Doc", "data": {"slug": "n", "title": "t", "kind": "new"}}], mode="append")
    text = 'query q() { match { $d: Doc $d.kind = "new" } return { $d.slug } }'
    assert found(graph, text) == ["n"]
    graph.ensure_indices()
    assert found(graph, text) == ["n"]
    graph.optimize()
    assert found(graph, text) == ["n"]
    assert len(found(graph, text.replace('"new"', '"old"'))) == 44
    graph.apply_schema(SCHEMA)
    graph.ensure_indices()
    assert searched(graph)[1] == ["d00", "d10", "d20", "d30", "d40"]
