"""`omnigraph index`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.maintenance.indices import IndexReport


@reports_errors
def index(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[str, typer.Option("--branch", help="The branch whose tables to index.")] = "main",
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Build the indexes that tables lack, as one commit; say which had to wait, and why."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = graph.ensure_indices(branch=branch)
    if as_json:
        print_json({"uri": graph.address, "branch": branch, **done.as_json()})
    else:
        _print_report(done, branch)


def _print_report(done: IndexReport, branch: str) -> None:
    if done.commit is None:
        print_text("nothing to build")
    else:
        print_text(
            styled("committed ", "green"),
            f"{counted(len(done.built), 'index', 'indexes')} on {branch} as {done.commit.graph_commit_id}",
        )
    for built in done.built:
        print_text(f"  {built.table_key} {built.column}: {built.kind} {built.name}")
    for waiting in done.deferred:
        kind = "" if waiting.kind is None else f" {waiting.kind}"
        print_text(
            styled("  deferred ", "yellow"), f"{waiting.table_key} {waiting.column}:{kind} {waiting.reason}"
        )
