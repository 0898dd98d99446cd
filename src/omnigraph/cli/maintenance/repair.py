"""`omnigraph repair`: tables at versions that the graph does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_table, print_text, reports_errors
from omnigraph.cli.stores import Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.maintenance.repair.report import RepairReport, TableRepair

NO_OP = "no_op"


@reports_errors
def repair(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch whose tables are looked at. Default: main.")
    ] = None,
    all_branches: Annotated[
        bool, typer.Option("--all-branches", help="Look at the tables of all branches.")
    ] = False,
    confirm: Annotated[
        bool,
        typer.Option(
            "--confirm", help="Publish what only rearranged rows, and undo writes that were never published."
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option("--force", help="With --confirm: publish also what changed rows."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Show tables at versions that the graph does not know, and what made them; with --confirm repair them."""
    if force and not confirm:
        raise typer.BadParameter("--force goes with --confirm")
    if all_branches and branch is not None:
        raise typer.BadParameter("give --branch or --all-branches, not both")
    graph = open_graph(uri, store, read_only=not confirm)
    if all_branches:
        reports = graph.repair_all(confirm=confirm, force=force)
    else:
        reports = [graph.repair(confirm=confirm, force=force, branch=branch or "main")]
    if as_json:
        shared = {"uri": graph.address, "confirm": confirm, "force": force}
        shown = {"branches": [report.as_json() for report in reports]} if all_branches else reports[0].as_json()
        print_json({**shared, **shown})
    else:
        _print_reports(reports)
    if any(report.refused for report in reports):
        raise typer.Exit(1)


def _print_reports(reports: list[RepairReport]) -> None:
    if all(report.is_idle for report in reports):
        print_text("every table is where the graph says")
        return
    rows = [
        (
            report.branch,
            table.table_key,
            str(table.table_version),
            str(table.lance_head_version),
            _made_by(table),
            "" if table.changes is None else str(table.changes),
            table.classification.value,
            table.action.value,
        )
        for report in reports
        for table in report.tables
        if table.action != NO_OP
    ]
    if rows:
        print_table(("branch", "table", "published", "is at", "by", "rows", "classification", "action"), rows)
    for report in reports:
        for cure in report.cures:
            print_text(f"{cure.action.value} {cure.code} {cure.file}: {cure.message}")


def _made_by(table: TableRepair) -> str:
    """The operations that made the versions, with the write and the time of the last one."""
    if table.error is not None:
        return table.error
    if table.row_count is not None:
        return f"{counted(table.row_count, 'row')} there"
    last = table.versions[-1]
    when = "" if last.made_at is None else f" at {last.made_at:%Y-%m-%d %H:%M:%S}"
    write = "" if last.operation_id is None else f" of write {last.operation_id}"
    return ", ".join(name or "unknown" for name in table.operations) + write + when
