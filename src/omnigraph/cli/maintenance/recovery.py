"""`omnigraph recovery`: what interrupted writes left, and what became of it."""

from __future__ import annotations

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors
from omnigraph.cli.stores import Address, Store, open_graph

app = typer.Typer(help="Look at recoveries of interrupted writes.", no_args_is_help=True)


@app.callback()
def root() -> None:
    """Look at recoveries of interrupted writes."""


@app.command("list")
@reports_errors
def list_(uri: Address = None, store: Store = None, as_json: Json = False) -> None:
    """List the recoveries there have been, oldest first."""
    found = open_graph(uri, store, read_only=True).recoveries()
    if as_json:
        print_json({"recoveries": [recovery.as_json() for recovery in found]})
        return
    if not found:
        print_text("no write was ever interrupted")
        return
    print_table(
        ("operation", "outcome", "writer", "actor", "branch", "when"),
        [
            (
                r.operation_id,
                r.recovery_kind,
                r.writer_kind,
                r.recovery_for_actor or "",
                r.branch,
                f"{r.recovered_at:%Y-%m-%d %H:%M:%S}",
            )
            for r in found
        ],
    )
