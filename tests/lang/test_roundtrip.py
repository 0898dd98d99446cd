"""Printing and parsing are inverse, for trees with every kind of node."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from tests.lang.query_strategies import query_files
from tests.lang.strategies import schemas
from tests.lang.trees import essence, kinds_in, kinds_of
from tests.sampling import examples

from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.compile import parse_query_file
from omnigraph.lang.query.format import format_queries, print_queries
from omnigraph.lang.query.syntax import clauses, expressions, queries
from omnigraph.lang.query.syntax.queries import QueryFileSyntax
from omnigraph.lang.schema import syntax as schema_syntax
from omnigraph.lang.schema.format import format_schema, print_schema
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.schema.syntax import SchemaSyntax
from omnigraph.lang.source import Source

thorough = settings(
    max_examples=examples(120, of=160),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def test_a_printed_schema_parses_to_the_same_tree() -> None:
    seen: set[type] = set()

    @thorough
    @given(schemas)
    def check(tree: SchemaSyntax) -> None:
        text = print_schema(tree)
        diagnostics = Diagnostics(Source(text))
        parsed, _ = parse_schema(diagnostics)
        assert diagnostics.listed == []
        assert essence(parsed) == essence(tree)
        assert format_schema(text) == text
        seen.update(kinds_in(tree))

    check()
    assert kinds_of(schema_syntax) <= seen


def test_a_printed_query_file_parses_to_the_same_tree() -> None:
    seen: set[type] = set()

    @thorough
    @given(query_files)
    def check(tree: QueryFileSyntax) -> None:
        text = print_queries(tree)
        assert essence(parse_query_file(text)) == essence(tree)
        assert format_queries(text) == text
        seen.update(kinds_in(tree))

    check()
    assert kinds_of(expressions) | kinds_of(clauses) | kinds_of(queries) <= seen
