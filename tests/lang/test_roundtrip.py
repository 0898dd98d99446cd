"""Printing and parsing are inverse, for trees with every kind of node."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis.strategies import SearchStrategy
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

_thorough = settings(
    max_examples=examples(40, of=160),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
_until_found = settings(_thorough, max_examples=5_000, phases=[Phase.generate])


Tree = TypeVar("Tree")


def check_all(strategy: SearchStrategy[Tree], kinds: set[type], check: Callable[[Tree], None]) -> None:
    """Check random trees, and then one with each kind of node that none of them had."""
    seen: set[type] = set()

    @_thorough
    @given(strategy)
    def some(tree: Tree) -> None:
        check(tree)
        seen.update(kinds_in(tree))

    some()
    for kind in sorted(kinds - seen, key=lambda kind: kind.__name__):
        check(find(strategy, partial(_has, kind), settings=_until_found))


def _has(kind: type, tree: object) -> bool:
    return kind in kinds_in(tree)


def test_a_printed_schema_parses_to_the_same_tree() -> None:
    def check(tree: SchemaSyntax) -> None:
        text = print_schema(tree)
        diagnostics = Diagnostics(Source(text))
        parsed, _ = parse_schema(diagnostics)
        assert diagnostics.listed == []
        assert essence(parsed) == essence(tree)
        assert format_schema(text) == text

    check_all(schemas, kinds_of(schema_syntax), check)


def test_a_printed_query_file_parses_to_the_same_tree() -> None:
    def check(tree: QueryFileSyntax) -> None:
        text = print_queries(tree)
        assert essence(parse_query_file(text)) == essence(tree)
        assert format_queries(text) == text

    check_all(query_files, kinds_of(expressions) | kinds_of(clauses) | kinds_of(queries), check)
