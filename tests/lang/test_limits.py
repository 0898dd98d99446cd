"""No text is too large or too wrong to be answered, and no answer takes work out of proportion to the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from tests.lang.families import QUERIES, SCHEMAS, Family, wide_schema

from omnigraph.errors import LanguageError, SchemaError
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.schema.catalog import Catalog, load_catalog
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.migration import compare_schemas
from omnigraph.lang.schema.resolve import compile_schema
from omnigraph.lang.source import MAX_NAME_CHARS, MAX_SOURCE_CHARS, MAX_STRING_CHARS

SMALL, LARGE = 100, 400
CATALOG = load_catalog("node A { k: String @key  n: I32? }\nedge E: A -> A")


def work(action: Callable[[], object]) -> int:
    """How many lines of Python an action runs; a refusal counts like an answer."""
    count = 0

    def inside(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += 1
        return inside

    before = sys.gettrace()
    sys.settrace(inside)
    try:
        action()
    except LanguageError:
        pass
    finally:
        sys.settrace(before)
    return count


def assert_linear(action: Callable[[str], object], family: Family) -> None:
    """Four times the text may take four times the work, and a little."""
    small, large = family(SMALL), family(LARGE)
    work(lambda: action(family(SMALL + 1)))  # imports and caches are no work of this text
    assert work(lambda: action(large)) <= 4.5 * work(lambda: action(small)) + 2000


@pytest.mark.parametrize("family", SCHEMAS.values(), ids=SCHEMAS.keys())
class TestWorkOnSchemas:
    def test_compiling_is_linear(self, family: Family) -> None:
        assert_linear(load_catalog, family)

    def test_formatting_is_linear(self, family: Family) -> None:
        assert_linear(format_schema, family)

    def test_planning_a_migration_is_linear(self, family: Family) -> None:
        renamed = family(SMALL).replace("p", "old_p")

        def plan(text: str) -> object:
            return compare_schemas(text.replace("p", "old_p"), text)

        assert renamed
        assert_linear(plan, family)


@pytest.mark.parametrize("family", QUERIES.values(), ids=QUERIES.keys())
class TestWorkOnQueries:
    def test_compiling_is_linear(self, family: Family) -> None:
        assert_linear(lambda text: compile_query(text, CATALOG, "q"), family)

    def test_formatting_is_linear(self, family: Family) -> None:
        assert_linear(format_queries, family)

    def test_the_schema_does_not_multiply_the_work(self, family: Family) -> None:
        text = family(SMALL)
        small, large = load_catalog(wide_schema(SMALL)), load_catalog(wide_schema(LARGE))

        def compiled(catalog: Catalog) -> int:
            return work(lambda: compile_query(text, catalog, "q"))

        compiled(load_catalog(wide_schema(SMALL + 1)))
        assert compiled(large) <= 1.5 * compiled(small) + 100 * LARGE
