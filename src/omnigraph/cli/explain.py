"""`omnigraph explain`: how a query will run, and what it reads, writes and returns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, diagnostic_text, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import read_catalog, read_source

if TYPE_CHECKING:
    from omnigraph.lang.query.compile import CompiledQuery


@reports_errors
def explain(
    schema: Annotated[
        Path, typer.Option("--schema", exists=True, dir_okay=False, readable=True, help="A .pg schema file.")
    ],
    query: Annotated[
        Path, typer.Option("--query", exists=True, dir_okay=False, readable=True, help="A .gq query file.")
    ],
    name: Annotated[str | None, typer.Argument(help="The query to explain; all of the file if left out.")] = None,
    as_json: Json = False,
) -> None:
    """Compile queries and show their plan: what runs, what is read and written, what comes back."""
    from omnigraph.lang.query.compile import compile_query, parse_query_file
    from omnigraph.lang.query.explain import explain_ir

    catalog = read_catalog(schema)
    source = read_source(query)
    names = [q.name.text for q in parse_query_file(source.text, source.name).queries] if name is None else [name]
    compiled = [compile_query(source.text, catalog, each, source.name) for each in names]
    if as_json:
        print_json({"queries": [one.as_json() | {"plan": explain_ir(one.ir).split("\n")} for one in compiled]})
        return
    for index, one in enumerate(compiled):
        _print_query(one, explain_ir(one.ir), first=index == 0)


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
