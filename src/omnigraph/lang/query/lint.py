"""Linting a query file against a schema: every query checked, and habits that look like mistakes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.errors import Diagnostic, QueryError
from omnigraph.lang.diagnostics import Diagnostics
from omnigraph.lang.query.compile import CompiledQuery, check_query
from omnigraph.lang.query.grammar.parser import parse_queries
from omnigraph.lang.query.syntax.queries import MutationBody, QuerySyntax, Update
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source

Severity = Literal["error", "warning", "info"]
_RANK: dict[Severity, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the linter has to say about the file."""

    severity: Severity
    code: str
    message: str
    type_name: str | None = None
    property: str | None = None
    query_names: tuple[str, ...] = ()
    diagnostic: Diagnostic | None = None

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {"severity": self.severity, "code": self.code, "message": self.message}
        if self.type_name is not None:
            out["type_name"] = self.type_name
        if self.property is not None:
            out["property"] = self.property
        if self.query_names:
            out["query_names"] = list(self.query_names)
        if self.diagnostic is not None:
            out |= {"line": self.diagnostic.line, "column": self.diagnostic.column}
        return out


@dataclass(frozen=True, slots=True)
class QueryResult:
    """What became of one query of the file. ``remarks`` are warnings about it that have no code and no place."""

    name: str
    kind: Literal["read", "mutation"]
    error: QueryError | None = None
    compiled: CompiledQuery | None = None
    remarks: tuple[str, ...] = ()

    @property
    def warnings(self) -> list[str]:
        """The messages of all warnings about the query."""
        coded = self.compiled.warnings if self.compiled is not None else ()
        return [*self.remarks, *(warning.message for warning in coded)]

    def as_json(self) -> dict[str, Any]:
        out: dict[str, Any] = {
            "name": self.name,
            "kind": self.kind,
            "status": "ok" if self.error is None else "error",
        }
        if self.warnings:
            out["warnings"] = self.warnings
        if self.error is not None:
            out["error"] = self.error.as_json()["error"]
            out["diagnostics"] = [d.as_json() for d in self.error.diagnostics]
        if self.compiled is not None:
            out["operation"] = self.compiled.operation.as_json()
        return out


@dataclass(frozen=True, slots=True)
class LintReport:
    """Everything found in one query file."""

    schema_source: str
    query_path: str
    results: tuple[QueryResult, ...]
    findings: tuple[Finding, ...]
    parse_errors: tuple[Diagnostic, ...] = field(default=())

    def count(self, severity: Severity) -> int:
        """How many findings are of that severity; type errors and remarks of queries count too."""
        found = sum(1 for finding in self.findings if finding.severity == severity)
        if severity == "warning":
            found += sum(len(result.remarks) for result in self.results)
        if severity == "error":
            found += sum(len(r.error.diagnostics) + r.error.omitted for r in self.results if r.error is not None)
        return found

    @property
    def ok(self) -> bool:
        return self.count("error") == 0

    def as_json(self) -> dict[str, Any]:
        return {
            "status": "ok" if self.ok else "error",
            "schema_source": self.schema_source,
            "query_path": self.query_path,
            "queries_processed": len(self.results),
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "infos": self.count("info"),
            "results": [result.as_json() for result in self.results],
            "findings": [finding.as_json() for finding in self.findings],
        }


def lint_queries(text: str, catalog: Catalog, query_path: str, schema_source: str) -> LintReport:
    """Check every query of a file. A file that does not parse has no queries and one Q000 per problem."""
    source = Source(text, query_path)
    diagnostics = Diagnostics(source)
    tree, _ = parse_queries(diagnostics)
    if diagnostics.count:
        findings = tuple(
            Finding("error", "Q000", f"{d.code}: {d.message}", diagnostic=d) for d in diagnostics.listed
        )
        return LintReport(schema_source, query_path, (), findings, tuple(diagnostics.listed))
    results = tuple(_check(query, catalog, source) for query in tree.queries)
    findings = (
        *_unset_properties(tree.queries, results, catalog),
        *(finding for result in results for finding in _warned(result)),
    )
    return LintReport(schema_source, query_path, results, tuple(sorted(findings, key=_order)))


def _check(query: QuerySyntax, catalog: Catalog, source: Source) -> QueryResult:
    kind: Literal["read", "mutation"] = "mutation" if query.is_mutation else "read"
    remarks = tuple(_remarks(query))
    try:
        compiled = check_query(query, catalog, source)
    except QueryError as error:
        return QueryResult(query.name.text, kind, error=error, remarks=remarks)
    return QueryResult(query.name.text, kind, compiled=compiled, remarks=remarks)


def _remarks(query: QuerySyntax) -> Iterable[str]:
    if query.is_mutation and not query.parameters:
        yield f"mutation `{query.name}` has no parameters and writes the same every time"


def _unset_properties(
    queries: Sequence[QuerySyntax], results: Sequence[QueryResult], catalog: Catalog
) -> Iterable[Finding]:
    """L201: a node type is updated by a query that compiles, and one of its nullable properties by none at all."""
    assigned: dict[str, set[str]] = {}
    updated_by: dict[str, set[str]] = {}
    for query, result in zip(queries, results, strict=True):
        if not isinstance(query.body, MutationBody):
            continue
        for statement in query.body.statements:
            if isinstance(statement, Update) and statement.type_name.text in catalog.nodes:
                name = statement.type_name.text
                assigned.setdefault(name, set()).update(a.property.text for a in statement.assignments)
                if result.error is None:
                    updated_by.setdefault(name, set()).add(query.name.text)
    for name, updating in updated_by.items():
        node = catalog.nodes[name]
        settled = {*node.key, *assigned[name]}
        for prop in node.properties.values():
            if prop.type.nullable and prop.embed is None and prop.name not in settled:
                yield Finding(
                    "warning",
                    "L201",
                    f"{name}.{prop.name} exists in schema but no update query sets it",
                    name,
                    prop.name,
                    tuple(sorted(updating)),
                )


def _warned(result: QueryResult) -> Iterable[Finding]:
    for warning in result.compiled.warnings if result.compiled is not None else ():
        yield Finding("warning", warning.code, warning.message, query_names=(result.name,), diagnostic=warning)


def _order(finding: Finding) -> tuple[int, str, str, str]:
    return _RANK[finding.severity], finding.type_name or "", finding.property or "", finding.message
