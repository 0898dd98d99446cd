"""`omnigraph optimize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import watched
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.maintenance.optimize import OptimizeReport


@reports_errors
def optimize(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch whose tables to optimize. Default: main.")
    ] = None,
    all_branches: Annotated[bool, typer.Option("--all-branches", help="Optimize every branch.")] = False,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A type; can be repeated. Default: all.")
    ] = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Put the small files of tables together and bring indexes up to date, in commits that change no row."""
    if all_branches and branch is not None:
        raise typer.BadParameter("--all-branches goes without --branch")
    graph = open_graph(uri, store, read_only=False, actor=actor)
    spark = remote or master
    with watched() as job:
        if all_branches:
            reports = graph.optimize_all(types=types, engine=engine.value, spark=spark, **job)
        else:
            reports = [graph.optimize(branch=branch, types=types, engine=engine.value, spark=spark, **job)]
    if not as_json:
        for done in reports:
            _print_report(done)
    elif all_branches:
        print_json({"uri": graph.address, "branches": [done.as_json() for done in reports]})
    else:
        print_json({"uri": graph.address, **reports[0].as_json()})


def _print_report(done: OptimizeReport) -> None:
    if not done.commits:
        print_text(f"nothing to do on {done.branch}")
    for commit in done.commits:
        print_text(styled("committed ", "green"), f"{commit.graph_commit_id} on {done.branch}")
    for table in done.tables:
        if table.committed:
            print_text(f"  {table.table_key}: {table.shown}")
        if table.skipped is not None:
            print_text(styled("  skipped ", "yellow"), f"{table.table_key}: {table.skipped}")
