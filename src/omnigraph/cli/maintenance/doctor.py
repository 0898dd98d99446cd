"""`omnigraph doctor`: what is wrong with a graph, and what to do about it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, console, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Address, Store, resolve_store

if TYPE_CHECKING:
    from omnigraph.maintenance.doctor.report import DoctorProgress, DoctorReport, Finding, ProgressListener

_STYLES = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@reports_errors
def doctor(
    uri: Address = None,
    store: Store = None,
    quick: Annotated[bool, typer.Option("--quick", help="Read metadata only, no rows and no contents.")] = False,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to look at. Default: all.", show_default=False)
    ] = None,
    checks: Annotated[
        list[str] | None, typer.Option("--check", help="A check to run; can be repeated. Default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Look at a whole graph, change nothing, and say what is wrong and what to do. Exit code 1 if something is."""
    from omnigraph.opening import doctor as examine

    with _progress() as listener:
        report = examine(
            resolve_store(uri, store), quick=quick, branch=branch, checks=checks or None, listener=listener
        )
    if as_json:
        print_json({"uri": report.address, **report.as_json()})
    else:
        _print_report(report)
    if not report.is_healthy:
        raise typer.Exit(1)


def _print_report(report: DoctorReport) -> None:
    for finding in report.findings:
        _print_finding(finding)
    branches = counted(len(report.branches), "branch", "branches")
    looked = f"{branches}, {counted(report.tables, 'table')}, {counted(len(report.checks), 'check')}"
    if not report.findings:
        print_text(styled("healthy", "green"), f": {looked}")
        return
    counts = ", ".join(
        f"{count} {name}{'' if count == 1 else 's'}" for name, count in report.as_json()["counts"].items() if count
    )
    print_text(styled("healthy" if report.is_healthy else "damaged", "bold"), f": {counts} ({looked})")


def _print_finding(finding: Finding) -> None:
    places = (finding.branch, finding.table_key)
    where = " ".join(place for place in places if place is not None)
    print_text(
        styled(f"{finding.severity.value} {finding.code}", _STYLES[finding.severity.value]),
        f" {where}" if where else "",
        f": {finding.message}",
    )
    print_text(f"  remedy: {finding.remedy}")


@contextmanager
def _progress() -> Iterator[ProgressListener | None]:
    """A listener that shows the check that runs on the terminal; None where there is none."""
    if not sys.stderr.isatty():
        yield None
        return
    with console(stderr=True).status("looking") as status:

        def listen(progress: DoctorProgress) -> None:
            done = f" {progress.done}/{progress.tables} tables" if progress.tables else ""
            status.update(f"{progress.check}{done}")

        yield listen
