"""`omnigraph maintain`: keep a graph fast and small, once or again and again."""

from __future__ import annotations

import signal
import sys
import threading
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_error, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.errors import OmniError
    from omnigraph.maintenance.maintain import MaintenanceReport

_RUNNING = 3
"""The exit code if another process maintains the graph."""


@reports_errors
def maintain(
    uri: Address = None,
    store: Store = None,
    once: Annotated[bool, typer.Option("--once", help="Run once, as from cron. This is the default.")] = False,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="D", help="Run again and again, with pauses such as 90s, 10m or 12h."),
    ] = None,
    small_files: Annotated[
        int, typer.Option("--small-files", metavar="N", help="Put small files together from N on.", min=2)
    ] = 8,
    index_lag: Annotated[
        int, typer.Option("--index-lag", metavar="N", help="Let indexes lack up to N rows.", min=0)
    ] = 1_000,
    keep: Annotated[
        int | None, typer.Option("--keep", metavar="N", help="Clean up all but the newest N commits.", min=0)
    ] = None,
    older_than: Annotated[
        str | None, typer.Option("--older-than", metavar="D", help="Clean up states older than D, such as 7d.")
    ] = None,
    grace: Annotated[
        str | None, typer.Option("--grace", metavar="D", help="What was used in the last D stays. Default: 1h.")
    ] = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Put small files together, bring indexes up to date, and remove what killed writers and jobs left.

    The history stays unless --keep or --older-than is given; a state goes only if it fails both. Only one process
    at a time maintains a graph: the exit code is 3 if another one does.
    """
    if once and every is not None:
        raise typer.BadParameter("--once and --every exclude each other")
    if grace is not None and keep is None and older_than is None:
        raise typer.BadParameter("--grace goes with --keep or --older-than")
    from omnigraph.errors import MaintenanceRunning
    from omnigraph.maintenance.cleanup.retention import duration
    from omnigraph.maintenance.maintain import MaintenancePolicy, maintain_every

    policy = MaintenancePolicy(small_files, index_lag, keep, older_than, grace)
    interval = None if every is None else duration("every", every)
    graph = open_graph(uri, store, read_only=False, actor=actor)

    def show(outcome: MaintenanceReport | OmniError) -> None:
        if as_json:
            print_json({"uri": graph.address, **outcome.as_json()})
            sys.stdout.flush()
        elif isinstance(outcome, Exception):
            print_error(outcome)
        else:
            _print_report(outcome)

    if interval is not None:
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        maintain_every(lambda: graph.maintain(policy), interval, stop, show)
        return
    try:
        done = graph.maintain(policy)
    except MaintenanceRunning as error:
        show(error)
        raise typer.Exit(_RUNNING) from None
    show(done)
    if done.failures:
        raise typer.Exit(1)


def _print_report(done: MaintenanceReport) -> None:
    if done.is_idle:
        print_text("nothing to do")
    if done.recovered:
        print_text(f"recovered {counted(len(done.recovered), 'interrupted write')}")
    if done.jobs:
        print_text(f"removed what {counted(len(done.jobs), 'killed job')} left")
    for branch in done.branches:
        for table in branch.tables:
            if table.committed:
                print_text(styled("optimized ", "green"), f"{table.table_key} on {branch.branch}: {table.shown}")
    if done.cleanup is not None and done.cleanup.files_removed:
        print_text(styled("removed ", "green"), f"{counted(done.cleanup.files_removed, 'file')} of old states")
    for failure in done.failures:
        where = "" if failure.branch is None else f" on {failure.branch}"
        print_text(styled("failed ", "red"), f"{failure.step}{where}: {failure.reason}")
