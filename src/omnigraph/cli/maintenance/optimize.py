"""`omnigraph optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizeReport


@reports_errors
def optimize(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[str, typer.Option("--branch", help="The branch whose tables to optimize.")] = "main",
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A type; can be repeated. Default: all.")
    ] = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Put the small files of tables together, as one commit that changes no row."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = graph.optimize(branch=branch, types=types)
    if as_json:
        print_json({"uri": graph.address, **done.as_json()})
    else:
        _print_report(done)


def _print_report(done: OptimizeReport) -> None:
    if not done.commits:
        print_text("nothing to do")
    for commit in done.commits:
        print_text(styled("committed ", "green"), f"{commit.graph_commit_id} on {done.branch}")
    for table in done.tables:
        if table.fragments_removed:
            print_text(f"  {table.table_key}: {table.fragments_removed} fragments became {table.fragments_added}")
        if table.indexes:
            print_text(f"  {table.table_key}: indexed {', '.join(table.indexes)}")
        if table.skipped is not None:
            print_text(styled("  skipped ", "yellow"), f"{table.table_key}: {table.skipped}")
