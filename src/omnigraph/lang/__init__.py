"""The two languages: `.pg` schemas and `.gq` queries. Pure functions of text and values.

Read `tokens` and `parsing` (what both share), `schema/` and `query/`, then `values` and `parameters` (types, and
the values that fit them); `codes` lists every diagnostic.

>>> from omnigraph import lang
>>> schema = lang.load_catalog("node Person { name: String @key }")
>>> query = lang.compile_query("query all() { match { $p: Person } return { $p.name } }", schema)
>>> print(lang.explain_ir(query.ir))
Scan $p: Person
Return $p.name
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.lang.parameters import bind_parameters
    from omnigraph.lang.query.compile import (
        CompiledMutation,
        CompiledQuery,
        CompiledRead,
        compile_mutation,
        compile_query,
        compile_read,
    )
    from omnigraph.lang.query.explain import explain_ir
    from omnigraph.lang.query.lint import LintReport, lint_queries
    from omnigraph.lang.schema.catalog import Catalog, load_catalog
    from omnigraph.lang.schema.migration import MigrationPlan, compare_schemas, plan_migration
    from omnigraph.lang.schema.resolve import CompiledSchema, compile_schema

__all__ = [
    "Catalog",
    "CompiledMutation",
    "CompiledQuery",
    "CompiledRead",
    "CompiledSchema",
    "LintReport",
    "MigrationPlan",
    "bind_parameters",
    "compare_schemas",
    "compile_mutation",
    "compile_query",
    "compile_read",
    "compile_schema",
    "explain_ir",
    "lint_queries",
    "load_catalog",
    "plan_migration",
]

_HOMES = {
    "Catalog": "schema.catalog",
    "CompiledMutation": "query.compile",
    "CompiledQuery": "query.compile",
    "CompiledRead": "query.compile",
    "CompiledSchema": "schema.resolve",
    "LintReport": "query.lint",
    "MigrationPlan": "schema.migration",
    "bind_parameters": "parameters",
    "compare_schemas": "schema.migration",
    "compile_mutation": "query.compile",
    "compile_query": "query.compile",
    "compile_read": "query.compile",
    "compile_schema": "schema.resolve",
    "explain_ir": "query.explain",
    "lint_queries": "query.lint",
    "load_catalog": "schema.catalog",
    "plan_migration": "schema.migration",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a query needs no parser of schemas, and a schema none of queries."""
    import importlib

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph.lang' has no attribute '{name}'")
    found = getattr(importlib.import_module(f"omnigraph.lang.{home}"), name)
    globals()[name] = found
    return found
