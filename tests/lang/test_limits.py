"""No text is too large or too wrong to be answered, and no answer takes work out of proportion to the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import pytest
from tests.lang.families import QUERIES, SCHEMAS, Family, wide_schema

from omnigraph.errors import LanguageError
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.schema.catalog import Catalog, load_catalog
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.migration import compare_schemas
from omnigraph.lang.schema.resolve import MAX_APPLIED_CHARS
from omnigraph.lang.source import MAX_NAME_CHARS, MAX_STRING_CHARS

SMALL, LARGE = 60, 240
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
    work(lambda: action(family(SMALL // 2)))  # imports are no work of this text
    small, large = family(SMALL), family(LARGE)
    assert work(lambda: action(large)) <= 4.5 * work(lambda: action(small)) + 2000


@pytest.mark.parametrize("family", SCHEMAS.values(), ids=SCHEMAS.keys())
class TestWorkOnSchemas:
    def test_compiling_is_linear(self, family: Family) -> None:
        assert_linear(load_catalog, family)

    def test_formatting_is_linear(self, family: Family) -> None:
        assert_linear(format_schema, family)


@pytest.mark.parametrize(
    "name",
    [
        "nodes",
        "properties",
        "interfaces times nodes",
        "many interfaces",
        "constraints",
        "columns of one constraint",
        "annotations",
        "members of an enum",
        "rename hints",
    ],
)
def test_planning_a_migration_is_linear(name: str) -> None:
    assert_linear(lambda text: compare_schemas(text.replace("p", "old_p"), text), SCHEMAS[name])


@cache
def wide_catalog(n: int) -> Catalog:
    catalog = load_catalog(wide_schema(n))
    assert catalog.nodes["A"].required  # found out once, like what follows
    assert catalog.incident
    return catalog


@pytest.mark.parametrize("family", QUERIES.values(), ids=QUERIES.keys())
class TestWorkOnQueries:
    def test_compiling_is_linear(self, family: Family) -> None:
        assert_linear(lambda text: compile_query(text, CATALOG, "q"), family)

    def test_formatting_is_linear(self, family: Family) -> None:
        assert_linear(format_queries, family)

    def test_a_larger_schema_makes_no_more_work(self, family: Family) -> None:
        """Except once, for the edges that a delete takes along."""
        text = family(8)

        def compiled(properties: int) -> int:
            catalog = wide_catalog(properties)
            return work(lambda: compile_query(text, catalog, "q"))

        compiled(10)
        assert compiled(2500) <= 1.1 * compiled(1500) + 4 * 1000


def refusal(action: Callable[[str], object], text: str) -> tuple[str, str]:
    """The code and the message of the first of the problems for which a text is refused."""
    with pytest.raises(LanguageError) as refused:
        action(text)
    first = refused.value.diagnostics[0]
    assert len(str(refused.value)) < 2000
    return first.code, first.message


def read(text: str) -> object:
    return compile_query(text, CATALOG)


class TestLargestTexts:
    @pytest.mark.parametrize("action", [load_catalog, format_schema, read, format_queries])
    def test_a_text_too_large(self, action: Callable[[str], object]) -> None:
        code, message = refusal(action, " " * (5 << 20))
        assert (code, "5,242,880 characters" in message) == ("P004", True)

    def test_a_string_too_long(self) -> None:
        long = "x" * (1 << 20)
        assert refusal(load_catalog, f'node N @description("{long}") {{}}')[0] == "P004"
        assert refusal(read, f'query q() {{ match {{ $a: A {{ k: "{long}" }} }} return {{ $a }} }}')[0] == "P004"

    def test_a_string_of_the_largest_length(self) -> None:
        read(f'query q() {{ match {{ $a: A {{ k: "{"x" * MAX_STRING_CHARS}" }} }} return {{ $a }} }}')

    @pytest.mark.parametrize("length", [MAX_NAME_CHARS + 1, 1 << 20])
    def test_a_name_too_long(self, length: int) -> None:
        message = f"this name has {length:,} characters; the limit is {MAX_NAME_CHARS}"
        name = "x" * length
        for text in (f"node X{name[1:]} {{}}", f"node N {{ {name}: I32 }}", f"node N @{name} {{}}"):
            assert refusal(load_catalog, text) == ("P004", message)
        for text in (f"query {name}() {{ }}", f"query q() {{ match {{ $a: A $a.{name} = 1 }} return {{ $a }} }}"):
            assert refusal(read, text) == ("P004", message)

    def test_a_name_too_long_is_reported_once(self) -> None:
        name = "X" * 300
        with pytest.raises(LanguageError) as refused:
            load_catalog(f"node {name} {{}}\nedge E: {name} -> {name}\nnode N {{ p: Strin }}")
        assert [(d.code, d.line) for d in refused.value.diagnostics] == [("P004", 1), ("P001", 3)]

    def test_a_name_of_the_largest_length(self) -> None:
        assert (
            "p" * MAX_NAME_CHARS in load_catalog(f"node N {{ {'p' * MAX_NAME_CHARS}: I32 }}").nodes["N"].properties
        )

    def test_an_enum_value_too_long(self) -> None:
        assert refusal(load_catalog, f"node N {{ e: enum(a, {'b-' * 1000}) }}")[0] == "P004"

    @pytest.mark.parametrize("digits", ["9" * 20, "9" * 1_000_000, "1" + "0" * 1_000_000 + ".5"])
    def test_a_number_too_large(self, digits: str) -> None:
        assert refusal(load_catalog, f"node N {{ p: I64 @range(p, 0..{digits}) }}")[0] == "P003"
        assert refusal(load_catalog, f"node N @note({digits}) {{}}")[0] == "P003"
        assert refusal(read, f"query q() {{ match {{ $a: A $a.n = {digits} }} return {{ $a }} }}")[0] == "P003"

    def test_half_a_character(self) -> None:
        assert refusal(load_catalog, 'node N { p: String @check(p, "\ud800") }')[0] == "P005"
        assert refusal(format_queries, "query q() { // \udfff\n }")[0] == "P005"

    @pytest.mark.parametrize(
        "name", ["blocks nested too deeply", "lists nested too deeply", "calls nested too deeply"]
    )
    def test_nesting_too_deep(self, name: str) -> None:
        code, message = refusal(read, QUERIES[name](20_000))
        assert (code, message) == ("P004", "nested more than 48 levels deep")

    def test_interfaces_cannot_multiply_long_annotations(self) -> None:
        long = "x" * 50_000
        nodes = "\n".join(f"node N{i} implements I {{}}" for i in range(MAX_APPLIED_CHARS // 50_000 + 1))
        code, message = refusal(load_catalog, f'interface I {{ p: I32 @note("{long}") }}\n{nodes}')
        assert (code, "interfaces" in message) == ("C208", True)

    @pytest.mark.parametrize(
        "name", ["nodes", "properties", "annotations", "constraints", "members of an enum", "comments"]
    )
    def test_large_schemas_compile(self, name: str) -> None:
        load_catalog(SCHEMAS[name](2000))

    @pytest.mark.parametrize(
        "name",
        ["parameters", "bindings", "a star of traversals", "cycles", "optional blocks", "projections", "inserts"],
    )
    def test_large_queries_compile(self, name: str) -> None:
        read(QUERIES[name](2000))
