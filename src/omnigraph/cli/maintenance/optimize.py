"""`omnigraph optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.maintenance.compaction import OptimizeReport


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
    if done.commit is None:
        print_text("nothing to put together")
    else:
        count = sum(table.committed for table in done.tables)
        print_text(
            styled("committed ", "green"),
            f"{count} tables on {done.branch} as {done.commit.graph_commit_id}",
        )
    for table in done.tables:
        if table.committed:
            shown = f"  {table.table_key}: {table.fragments_removed} fragments became {table.fragments_added}"
            waiting = f"; run `omnigraph index` for {', '.join(table.pending_indexes)}"
            print_text(shown + (waiting if table.pending_indexes else ""))
        elif table.skipped is not None:
            print_text(styled("  skipped ", "yellow"), f"{table.table_key}: {table.skipped}")
