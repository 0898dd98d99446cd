"""`omnigraph embed`: fills the vectors that a graph lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import watched
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Actor, Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.bulk.embed.requests import EmbedResult


@reports_errors
def embed(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[str, typer.Option("--branch", help="The branch to write.")] = "main",
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A node type; can be repeated. Default: all.")
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", help="A vector property; can be repeated. Default: all.")
    ] = None,
    reembed_all: Annotated[
        bool, typer.Option("--reembed-all", help="Compute also the vectors that are there.")
    ] = False,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Compute the vectors that rows lack, as one commit. OMNIGRAPH_EMBED_PROVIDER says who computes."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    with watched() as job:
        done = graph.embed(
            branch=branch,
            types=types or None,
            properties=properties or None,
            reembed=reembed_all,
            engine=engine.value,
            spark=remote or master,
            **job,
        )
    if as_json:
        print_json({"uri": graph.address, **done.as_json()})
    else:
        _print_result(done)


def _print_result(done: EmbedResult) -> None:
    if done.commit is None:
        print_text("no vector is missing")
    else:
        print_text(
            styled("committed ", "green"),
            f"{done.embedded} vectors of {done.model} on {done.branch} as {done.commit.graph_commit_id}",
        )
    for name, count in done.counts.items():
        left = f", {count.without_text} without text" if count.without_text else ""
        print_text(f"  {name}: {count.embedded} computed, {count.present} there already{left}")
