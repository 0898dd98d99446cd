"""`omnigraph schema`: show a graph's schema, and plan a change from one schema to another."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import read_source
from omnigraph.cli.stores import Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.errors import Diagnostic
    from omnigraph.lang.schema.migration import MigrationPlan

app = typer.Typer(help="Show schemas and plan their changes.", no_args_is_help=True)


@app.command()
@reports_errors
def show(uri: Address = None, store: Store = None, as_json: Json = False) -> None:
    """Print the schema a graph has accepted."""
    graph = open_graph(uri, store, read_only=True)
    if as_json:
        print_json({"schema_source": graph.schema, "shape_hash": graph.catalog.hash})
    else:
        sys.stdout.write(graph.schema)


@app.command()
@reports_errors
def plan(
    old: Annotated[
        Path, typer.Option("--from", exists=True, dir_okay=False, readable=True, help="The accepted schema.")
    ],
    new: Annotated[
        Path, typer.Option("--to", exists=True, dir_okay=False, readable=True, help="The schema to change to.")
    ],
    allow_data_loss: Annotated[
        bool, typer.Option("--allow-data-loss", help="Plan drops that purge old versions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the steps from one schema to another, offline. Exit code 1 if a change is refused."""
    from omnigraph.lang.schema.identity import first_identities, idle_hints
    from omnigraph.lang.schema.migration import plan_migration
    from omnigraph.lang.schema.resolve import compile_schema

    before, after = (read_source(path) for path in (old, new))
    accepted = first_identities(compile_schema(before.text, before.name))
    desired = compile_schema(after.text, after.name)
    planned = plan_migration(accepted, desired, allow_data_loss=allow_data_loss)
    notes = idle_hints(desired, accepted)
    if as_json:
        print_json(planned.as_json() | {"notes": [note.as_json() for note in notes]})
    else:
        _print_plan(planned, notes)
    if not planned.supported:
        raise typer.Exit(1)


def _print_plan(planned: MigrationPlan, notes: list[Diagnostic]) -> None:
    for step in planned.steps:
        refused = step.kind == "unsupported_change"
        print_text(styled("✗ " if refused else "• ", "bold red" if refused else "green"), str(step))
    for note in notes:
        print_text(styled("note: ", "cyan"), f"{note.source}:{note.line}: {note.message}")
    if not planned.steps:
        print_text("no changes")
    elif planned.supported:
        print_text(f"{len(planned.steps)} step{'s' if len(planned.steps) > 1 else ''}, supported")
    else:
        print_text(styled("not supported", "bold red"))
