"""`omnigraph graphs`: what a server serves."""

from __future__ import annotations

import typer

from omnigraph.cli.output import Json, print_json, print_table, reports_errors
from omnigraph.cli.stores import resolve_target

app = typer.Typer(help="List the graphs of a server.", no_args_is_help=True)


@app.command("list")
@reports_errors
def list_(as_json: Json = False) -> None:
    """List the graphs of a server, with their addresses there."""
    from omnigraph.remote.connecting import list_graphs

    target = resolve_target()
    if not target.is_server:
        raise typer.BadParameter(f"{target} is a graph; name a server with --server")
    found = list_graphs(target.address, token=target.token())
    if as_json:
        print_json({"graphs": found})
    else:
        print_table(("graph", "uri"), [(each["graph_id"], each["uri"]) for each in found])
