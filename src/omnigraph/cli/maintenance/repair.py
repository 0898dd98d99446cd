"""`omnigraph repair`: tables that were moved with Lance itself, behind the graph's back."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors
from omnigraph.cli.stores import Address, Store, open_graph

NO_OP = "no_op"


@reports_errors
def repair(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[str, typer.Option(help="The branch whose tables are looked at.")] = "main",
    confirm: Annotated[bool, typer.Option("--confirm", help="Publish what only rearranged rows.")] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="With --confirm: publish also what changed rows."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show tables at versions that the graph does not know, and with --confirm publish those versions."""
    if force and not confirm:
        raise typer.BadParameter("--force goes with --confirm")
    graph = open_graph(uri, store, read_only=not confirm)
    report = graph.repair(confirm=confirm, force=force, branch=branch)
    if as_json:
        print_json({"uri": graph.address, "confirm": confirm, "force": force, **report.as_json()})
    elif all(table.action == NO_OP for table in report.tables):
        print_text("every table is where the graph says")
    else:
        print_table(
            ("table", "published", "is at", "by", "classification", "action"),
            [
                (
                    table.table_key,
                    str(table.table_version),
                    str(table.lance_head_version),
                    ", ".join(table.operations) or (table.error or ""),
                    table.classification.value,
                    table.action.value,
                )
                for table in report.tables
                if table.action != NO_OP
            ],
        )
    if report.refused:
        raise typer.Exit(1)
