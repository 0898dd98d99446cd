"""`omnigraph backup`, `omnigraph backups` and `omnigraph restore`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.maintenance.clone import amount, print_copy
from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.progress import copying
from omnigraph.cli.stores import GraphOrPlace, Store, graph_and_place, open_graph

Backups = Annotated[
    str, typer.Argument(metavar="BACKUPS", help="Where the backups are: a path, file:// or s3://.")
]


@reports_errors
def backup(
    first: GraphOrPlace,
    second: Annotated[
        str | None, typer.Argument(metavar="BACKUPS", help="Where the backups are.", show_default=False)
    ] = None,
    store: Store = None,
    keep: Annotated[
        int | None, typer.Option("--keep", min=1, help="Leave only so many backups there, the newest ones.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Back a graph up, with all its branches and history; only files that are not there yet are copied."""
    graph, target = graph_and_place(first, second)
    opened = open_graph(graph, store, read_only=True)
    with copying() as listener:
        done = opened.backup(target, keep=keep, listener=listener)
    if as_json:
        print_json({"target": target, **done.as_json()})
        return
    print_text(
        styled("backed up ", "green"),
        f"{done.backup.source} to {target} as {done.backup.id}: {amount(done.files, done.bytes)}",
    )
    for removed in done.removed:
        print_text(f"  removed backup {removed}")


@reports_errors
def backups(target: Backups, as_json: Json = False) -> None:
    """List backups, oldest first."""
    from omnigraph.opening import backups as listed

    found = listed(target)
    if as_json:
        print_json({"backups": [entry.as_json() for entry in found]})
        return
    print_table(
        ("backup", "created", "graph", "branches"),
        [
            (entry.id, f"{entry.created_at:%Y-%m-%d %H:%M:%S}", entry.source, ", ".join(entry.branches))
            for entry in found
        ],
    )


@reports_errors
def restore(
    source: Backups,
    target: Annotated[str, typer.Argument(help="Where the graph goes; nothing may be there.")],
    chosen: Annotated[
        str | None, typer.Option("--backup", metavar="ID", help="Which backup. Default: the newest.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make a graph from a backup."""
    from omnigraph.opening import restore as restored

    with copying() as listener:
        done = restored(source, target, backup=chosen, listener=listener)
    print_copy("restored", done, as_json=as_json)
