"""What texts compiled to is remembered, as long as that does not fill the memory."""

from __future__ import annotations

from omnigraph.lang.query.compile import compile_query, parse_query_file
from omnigraph.lang.remembering import LARGE_TEXT, remembering
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.lang.schema.resolve import compile_schema

SCHEMA = "node Pilot { call: String @key }"
QUERY = "query q() { match { $p: Pilot } return { $p } }"


def test_compiling_the_same_text_again_gives_the_same_object() -> None:
    catalog = load_catalog(SCHEMA)
    assert compile_schema(SCHEMA) is compile_schema(SCHEMA)
    assert parse_query_file(QUERY) is parse_query_file(QUERY)
    assert compile_query(QUERY, catalog) is compile_query(QUERY, load_catalog(SCHEMA))


def test_many_small_texts_and_few_large_ones() -> None:
    asked: list[tuple[str, int]] = []

    @remembering(small_texts=100)
    def answer(text: str, number: int) -> int:
        asked.append((text[:1], number))
        return number

    for number in [1, 2, 3, 1, 2, 3]:
        answer("s", number)
        answer("l" * (LARGE_TEXT + 1), number)
        answer("l" * (LARGE_TEXT + 1), number)
    assert [number for size, number in asked if size == "s"] == [1, 2, 3]
    assert [number for size, number in asked if size == "l"] == [1, 2, 3, 1, 2, 3]
