"""`omnigraph lint`: check a schema, and a query file against it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.output import Json, diagnostic_text, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import read_catalog, read_source
from omnigraph.cli.stores import Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.lang.query.lint import LintReport
    from omnigraph.lang.schema.catalog import Catalog


@reports_errors
def lint(
    uri: Address = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema",
            exists=True,
            dir_okay=False,
            readable=True,
            help="A .pg schema file. Default: the schema of a graph.",
        ),
    ] = None,
    query: Annotated[
        Path | None,
        typer.Option("--query", exists=True, dir_okay=False, readable=True, help="A .gq query file."),
    ] = None,
    store: Store = None,
    branch: Annotated[str | None, typer.Option("--branch", help="A branch of the graph; main by default.")] = None,
    as_json: Json = False,
) -> None:
    """Check a schema, and every query of a file against it or a graph. Exit code 1 if anything is wrong."""
    if schema is not None and (uri or store or branch):
        raise typer.BadParameter("give --schema FILE, or a graph, not both")
    if schema is not None:
        catalog, shown = read_catalog(schema), str(schema)
    else:
        graph = open_graph(uri, store, read_only=True)
        catalog, shown = graph.snapshot(branch).catalog, graph.address
    if query is None:
        _report_schema(catalog, shown, as_json)
        return
    from omnigraph.lang.query.lint import lint_queries

    source = read_source(query)
    report = lint_queries(source.text, catalog, source.name, shown)
    if as_json:
        print_json(report.as_json())
    else:
        _print_report(report)
    if not report.ok:
        raise typer.Exit(1)


def _report_schema(catalog: Catalog, path: str, as_json: bool) -> None:
    counts: dict[str, Any] = {
        "nodes": len(catalog.nodes),
        "edges": len(catalog.edges),
        "interfaces": len(catalog.interfaces),
    }
    if as_json:
        print_json({"status": "ok", "schema_source": path, "shape_hash": catalog.hash, **counts})
    else:
        print_text(f"{path}: ", styled("ok", "green"), f", {_listed(counts)}")


def _print_report(report: LintReport) -> None:
    for parse_error in report.parse_errors:
        print_text(diagnostic_text(parse_error), "\n")
    width = max((len(result.name) for result in report.results), default=0)
    for result in report.results:
        status = styled("ok   ", "green") if result.error is None else styled("error", "bold red")
        print_text(status, f"  {result.name:{width}}  {result.kind}")
    for result in report.results:
        for diagnostic in result.error.diagnostics if result.error is not None else ():
            print_text("\n", diagnostic_text(diagnostic))
        for remark in result.remarks:
            print_text(styled("warning: ", "bold yellow"), remark)
    for finding in report.findings:
        if finding.severity == "error":
            continue
        if finding.diagnostic is not None:
            print_text("\n", diagnostic_text(finding.diagnostic, "bold yellow"))
        else:
            print_text(styled(f"{finding.severity}: ", "bold yellow"), f"{finding.code}: {finding.message}")
    summary = {
        "queries": len(report.results),
        "errors": report.count("error"),
        "warnings": report.count("warning"),
    }
    print_text(f"\n{report.query_path}: {_listed(summary)}")


def _listed(counts: dict[str, int]) -> str:
    """`1 node, 2 edges`, without the plural where there is one."""
    singular = {"queries": "query"}
    return ", ".join(
        f"{n} {singular.get(name, name.removesuffix('s')) if n == 1 else name}" for name, n in counts.items()
    )
