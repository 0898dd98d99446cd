"""`omnigraph clone`: a copy of a graph that is a graph of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import copying
from omnigraph.cli.stores import GraphOrPlace, Store, graph_and_place, open_graph, parse_at

if TYPE_CHECKING:
    from omnigraph.maintenance.copying.clone import CopyReport


@reports_errors
def clone(
    first: GraphOrPlace,
    second: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET", help="Where the copy goes: a path, file:// or s3://.", show_default=False
        ),
    ] = None,
    store: Store = None,
    branch: Annotated[
        str | None,
        typer.Option("--branch", help="Only this branch and those it descends from. Default: all."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="STATE", help="Only what led to a commit, a tag or a manifest version."),
    ] = None,
    no_history: Annotated[
        bool, typer.Option("--no-history", help="Only the newest states, without those before.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Copy a graph to another place, or bring an earlier copy up to date. Writers can go on meanwhile."""
    source, target = graph_and_place(first, second)
    graph = open_graph(source, store, read_only=True)
    with copying() as listener:
        done = graph.clone(target, branch=branch, at=parse_at(at), history=not no_history, listener=listener)
    print_copy("copied", done, as_json=as_json)


def print_copy(what: str, done: CopyReport, *, as_json: bool) -> None:
    """Print what was copied."""
    if as_json:
        print_json(done.as_json())
        return
    print_text(styled(f"{what} ", "green"), f"{done.source} to {done.target}: {amount(done.files, done.bytes)}")
    if done.files_kept:
        print_text(f"  {counted(done.files_kept, 'file')} there already")
    for name, commit in done.branches.items():
        print_text(f"  branch {name} at {commit or 'its beginning'}")
    for tag in done.tags:
        print_text(f"  tag {tag}")


def amount(files: int, size: int) -> str:
    """How many files and bytes, for people."""
    for unit, limit in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= limit:
            return f"{counted(files, 'file')}, {size / limit:.1f} {unit}"
    return f"{counted(files, 'file')}, {counted(size, 'byte')}"
