"""`omnigraph cleanup`: remove old states, and the files that no state needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Address, Store, open_target, require_consent, resolve_target

if TYPE_CHECKING:
    from omnigraph.maintenance.cleanup.report import CleanupReport

_UNITS = ("B", "kB", "MB", "GB", "TB")


@reports_errors
def cleanup(
    uri: Address = None,
    store: Store = None,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", help="The newest N commits of each branch stay.", min=0)
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="D", help="States of the last D stay, such as 12h, 7d or 4w."),
    ] = None,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="D",
            help="What readers and writers may have used in the last D stays in any case. Default: 1h.",
        ),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Remove it; without this it is only shown.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Consent, needed for graphs that are not local.")] = False,
    as_json: Json = False,
) -> None:
    """Show what of the history would be removed, and with --confirm remove it.

    Give --keep, --older-than or both: a state goes only if it fails both. Tags and what merges need stay.
    """
    if keep is None and older_than is None:
        raise typer.BadParameter("say how much of the history stays: give --keep, --older-than, or both")
    target = resolve_target(uri, store)
    if confirm:
        require_consent(target, yes, "remove states")
    graph = open_target(target, read_only=not confirm)
    report = graph.cleanup(keep=keep, older_than=older_than, grace=grace, confirm=confirm)
    if as_json:
        print_json({"uri": graph.address, **report.as_json()})
    else:
        _print_report(report)


def _print_report(report: CleanupReport) -> None:
    others = report.jobs_removed + report.objects_removed
    if not report.tables and not others:
        print_text("nothing to remove")
        return
    if report.tables:
        print_table(
            ("table", "versions", "files", "bytes"),
            [
                (
                    table.table_key,
                    f"{table.versions_removed} of {table.versions_removed + table.versions_kept}",
                    str(table.files_removed),
                    _size(table.bytes_removed),
                )
                for table in report.tables
            ],
        )
    for branch in report.branches:
        if branch.states_removed:
            verb = "can be read no more" if report.confirmed else "could be read no more"
            rest = f"; the oldest left is commit {branch.oldest_commit}" if branch.oldest_commit else ""
            print_text(f"{branch.branch}: {branch.states_removed} states {verb}{rest}")
    total = f"{counted(report.files_removed, 'file')}, {_size(report.bytes_removed)}"
    more = f", and what {others} jobs, schemas and hints left" if others else ""
    if report.confirmed:
        print_text(styled("removed ", "green"), total + more)
    else:
        print_text(styled("would remove ", "yellow"), f"{total}{more}; run it with --confirm")


def _size(count: int) -> str:
    """A number of bytes in words."""
    power = min((len(str(count)) - 1) // 3, len(_UNITS) - 1)
    return f"{count / 1000**power:.1f} {_UNITS[power]}" if power else f"{count} B"
