"""Compiling queries: text and catalog in, a checked plan out. Results are cached.

A query is a read or a mutation, and each has a type of its own: `compile_read` and `compile_mutation` refuse the
other kind, `compile_query` takes both.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from omnigraph.errors import Diagnostic, QueryError
from omnigraph.lang.diagnostics import Diagnostics, suggest
from omnigraph.lang.query.grammar.parser import parse_queries
from omnigraph.lang.query.ir import MutationIR, ReadIR, result_columns
from omnigraph.lang.query.lowering.reads import lower_read
from omnigraph.lang.query.operation import Operation, describe_mutation, describe_read
from omnigraph.lang.query.syntax.queries import MutationBody, QueryFileSyntax, QuerySyntax
from omnigraph.lang.query.typecheck.reads import check_read
from omnigraph.lang.query.typecheck.scope import Context
from omnigraph.lang.remembering import remembering
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source, Span
from omnigraph.lang.values import ValueType, describe_kind
from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What every compiled query has: how to call it, and what it does."""

    name: str
    params: dict[str, ValueType]
    operation: Operation
    warnings: tuple[Diagnostic, ...]
    description: str | None
    instruction: str | None

    kind: ClassVar[Literal["read", "mutation"]]

    def as_json(self) -> dict[str, Any]:
        """The entry of a tool catalog: how to call the query, and what it does."""
        return {
            "name": self.name,
            "tool_name": self.name,
            "description": self.description,
            "instruction": self.instruction,
            "mutation": self.kind == "mutation",
            "params": [{"name": name, **describe_kind(t)} for name, t in self.params.items()],
            "operation": self.operation.as_json(),
        }


@dataclass(frozen=True, slots=True)
class CompiledRead(_Compiled):
    """A read that fits its schema."""

    ir: ReadIR

    kind = "read"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the result's columns."""
        return tuple(fields[0].name for fields in result_columns(self.ir.columns))


@dataclass(frozen=True, slots=True)
class CompiledMutation(_Compiled):
    """A mutation that fits its schema."""

    ir: MutationIR

    kind = "mutation"


CompiledQuery = CompiledRead | CompiledMutation


@remembering(small_texts=256)
def parse_query_file(text: str, source_name: str = "<query>") -> QueryFileSyntax:
    """The syntax tree of a query file; QueryError lists every problem."""
    diagnostics = Diagnostics(Source(text, source_name))
    tree, _ = parse_queries(diagnostics)
    diagnostics.raise_if_any(QueryError)
    return tree


def compile_query(
    text: str, catalog: Catalog, name: str | None = None, source_name: str = "<query>"
) -> CompiledQuery:
    """Parse, check and lower one query of a text: the named one, or the only one."""
    return _compile(text, catalog, name, source_name)


@remembering(small_texts=1024)
def _compile(text: str, catalog: Catalog, name: str | None, source_name: str) -> CompiledQuery:
    source = Source(text, source_name)
    return check_query(_select(parse_query_file(text, source_name), name, source), catalog, source)


def compile_read(
    text: str, catalog: Catalog, name: str | None = None, source_name: str = "<query>"
) -> CompiledRead:
    """Compile a query that must be a read."""
    query = compile_query(text, catalog, name, source_name)
    if isinstance(query, CompiledRead):
        return query
    raise _other_kind(query, "read", "run it with `mutate`", text, source_name)


def compile_mutation(
    text: str, catalog: Catalog, name: str | None = None, source_name: str = "<query>"
) -> CompiledMutation:
    """Compile a query that must be a mutation."""
    query = compile_query(text, catalog, name, source_name)
    if isinstance(query, CompiledMutation):
        return query
    raise _other_kind(query, "mutation", "run it with `query`", text, source_name)


def _other_kind(query: CompiledQuery, wanted: str, remedy: str, text: str, source_name: str) -> QueryError:
    source = Source(text, source_name)
    syntax = _select(parse_query_file(text, source_name), query.name, source)
    message = f"query `{query.name}` is a {query.kind}, and a {wanted} is needed here"
    return QueryError([source.diagnostic("Q106", "type error", message, syntax.name.span, remedy)])


def _select(tree: QueryFileSyntax, name: str | None, source: Source) -> QuerySyntax:
    if name is None and len(tree.queries) == 1:
        return tree.queries[0]
    for query in tree.queries:
        if query.name.text == name:
            return query
    known = [query.name.text for query in tree.queries]
    if name is None:
        message = "the file holds no query" if not known else f"the file holds {len(known)} queries"
        remedy = "write one: `query name() { … }`" if not known else f"name one of: {', '.join(known[:8])}"
    else:
        message = f"query '{name}' not found"
        remedy = suggest(name, known) or "the file holds no query"
    raise QueryError([source.diagnostic("Q107", "type error", message, Span(0, 0), remedy)])


def check_query(query: QuerySyntax, catalog: Catalog, source: Source) -> CompiledQuery:
    """Check and lower one parsed query; QueryError lists every problem."""
    diagnostics, warnings = Diagnostics(source), Diagnostics(source)
    context = Context(catalog, diagnostics, warnings)
    context.declare_parameters(query.parameters)
    if isinstance(query.body, MutationBody):
        from omnigraph.lang.query.lowering.mutations import lower_mutation
        from omnigraph.lang.query.typecheck.mutations import check_mutation

        check_mutation(query.name.text, query.body, context)
        diagnostics.raise_if_any(QueryError)
        params = _declared(context)
        mutation = lower_mutation(query, query.body, catalog, params)
        return CompiledMutation(
            query.name.text,
            params,
            describe_mutation(mutation, catalog),
            tuple(warnings.listed),
            query.annotation("description"),
            query.annotation("instruction"),
            mutation,
        )
    checked = check_read(query.body, context)
    diagnostics.raise_if_any(QueryError)
    params = _declared(context)
    read = lower_read(query, checked, params)
    return CompiledRead(
        query.name.text,
        params,
        describe_read(read, catalog),
        tuple(warnings.listed),
        query.annotation("description"),
        query.annotation("instruction"),
        read,
    )


def _declared(context: Context) -> dict[str, ValueType]:
    return {name: t for name, t in context.parameters.items() if t is not None}
