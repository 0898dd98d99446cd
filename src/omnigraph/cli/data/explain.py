"""`omnigraph explain`: how a query will run, and what it reads, writes and returns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, diagnostic_text, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import (
    Exact,
    Params,
    ParamsFile,
    QueryFile,
    QueryText,
    read_catalog,
    read_parameters,
    read_query,
    text_of,
)
from omnigraph.cli.stores import Store, open_graph

if TYPE_CHECKING:
    from omnigraph.lang.query.compile import CompiledQuery
    from omnigraph.lang.source import Source


@reports_errors
def explain(
    name: Annotated[str | None, typer.Argument(help="The query to explain; all of them if left out.")] = None,
    query: QueryFile = None,
    text: QueryText = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", exists=True, dir_okay=False, readable=True, help="A .pg file, instead of a graph."
        ),
    ] = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to plan for. Default: main.", show_default=False)
    ] = None,
    params: Params = None,
    params_file: ParamsFile = None,
    exact: Exact = False,
    analyze: Annotated[bool, typer.Option("--analyze", help="Run the query, and show rows and times.")] = False,
    as_json: Json = False,
) -> None:
    """Compile queries and show their plan: what runs, what is read and written, what comes back."""
    from omnigraph.lang.query.compile import compile_query
    from omnigraph.lang.query.explain import explain_ir

    given = read_parameters(params, params_file)
    if schema is not None and (store or branch or analyze or exact or given is not None):
        raise typer.BadParameter(
            "--store, --branch, --params, --exact and --analyze need a graph; leave out --schema"
        )
    source = read_query(query, text)
    names = _names(source, name)
    if len(names) > 1 and (analyze or given is not None):
        raise typer.BadParameter(f"which query? name one of: {', '.join(names)}")
    if schema is not None:
        catalog = read_catalog(schema)
        compiled = [compile_query(source.text, catalog, each, source.name) for each in names]
        plans = [explain_ir(one.ir) for one in compiled]
    else:
        graph = open_graph(store, read_only=True)
        compiled = [compile_query(source.text, graph.catalog, each, source.name) for each in names]
        with text_of(source) as queries:
            plans = [
                graph.explain(queries, given, name=each, branch=branch, exact=exact, analyze=analyze)
                for each in names
            ]
    if as_json:
        shown = zip(compiled, plans, strict=True)
        print_json({"queries": [one.as_json() | {"plan": plan.split("\n")} for one, plan in shown]})
        return
    for index, (one, plan) in enumerate(zip(compiled, plans, strict=True)):
        _print_query(one, plan, first=index == 0)


def _names(source: Source, name: str | None) -> list[str]:
    """The query that was named, or all that the text holds."""
    from omnigraph.lang.query.compile import parse_query_file

    if name is not None:
        return [name]
    return [query.name.text for query in parse_query_file(source.text, source.name).queries]


def _print_query(query: CompiledQuery, plan: str, *, first: bool) -> None:
    params = ", ".join(f"${name}: {value_type}" for name, value_type in query.params.items())
    print_text("" if first else "\n", styled(f"{query.name}({params})", "bold"), f"  {query.kind}")
    if query.description:
        print_text(styled(f"  {query.description}", "italic"))
    for line in plan.split("\n"):
        print_text(f"  {line}")
    operation = query.operation
    for label, tables in (("reads", operation.reads), ("writes", operation.writes)):
        if tables:
            print_text(styled(f"  {label:8}", "cyan"), ", ".join(f"{kind}:{t}" for kind, t in sorted(tables)))
    if operation.result:
        shown = ", ".join(f"{column}: {value_type}" for column, value_type in operation.result)
        print_text(styled("  returns ", "cyan"), shown)
    for warning in query.warnings:
        print_text(diagnostic_text(warning, "bold yellow"))
