"""What is fuzzed: everything both languages do with a text, and what must hold of it."""

from __future__ import annotations

from tests.lang.trees import comment_texts, essence

from omnigraph.errors import LanguageError
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.compile import check_query, parse_query_file
from omnigraph.lang.query.explain import explain_ir
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.schema.catalog import Catalog, load_catalog
from omnigraph.lang.schema.format import format_schema
from omnigraph.lang.schema.parser import parse_schema
from omnigraph.lang.source import Source, decode

Outcome = tuple[str, ...]
"""The codes of what was refused; inputs with a new outcome are worth mutating further."""


def exercise_schema(data: bytes) -> Outcome:
    """Compile and format a schema; anything but a LanguageError is a bug."""
    try:
        source = decode(data, "fuzz.pg")
        formatted = format_schema(source.text)
    except LanguageError as error:
        return _codes(error)
    assert essence(_schema_tree(formatted)) == essence(_schema_tree(source.text))
    assert comment_texts(formatted) == comment_texts(source.text)
    assert format_schema(formatted) == formatted
    try:
        catalog = load_catalog(source.text)
    except LanguageError as error:
        return _codes(error)
    assert load_catalog(formatted) == catalog
    return ()


def exercise_queries(data: bytes, catalog: Catalog) -> Outcome:
    """Compile, lint and format a query file; anything but a LanguageError is a bug."""
    try:
        source = decode(data, "fuzz.gq")
        tree = parse_query_file(source.text)
    except LanguageError as error:
        return _codes(error)
    formatted = format_queries(source.text)
    assert essence(parse_query_file(formatted)) == essence(tree)
    assert comment_texts(formatted) == comment_texts(source.text)
    assert format_queries(formatted) == formatted
    outcome: set[str] = set()
    for query in tree.queries:
        try:
            compiled = check_query(query, catalog, source)
            explain_ir(compiled.ir)
            compiled.as_json()
        except LanguageError as error:
            outcome.update(_codes(error))
    lint_queries(source.text, catalog, "fuzz.gq", "fuzz.pg").as_json()
    return tuple(sorted(outcome))


def _codes(error: LanguageError) -> Outcome:
    """The codes of an error that must be presentable."""
    assert str(error)
    assert error.as_json()["diagnostics"]
    return tuple(sorted({diagnostic.code for diagnostic in error.diagnostics}))


def _schema_tree(text: str) -> object:
    return parse_schema(Diagnostics(Source(text)))[0]
