"""Which graph a command works on."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from omnigraph.cli.scope.config import read_config
from omnigraph.cli.scope.options import given_here, said
from omnigraph.cli.scope.target import Target, resolve

if TYPE_CHECKING:
    from omnigraph.cluster.state.places import ClusterPlace
    from omnigraph.graph import Graph
    from omnigraph.remote.graph import RemoteGraph

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--uri",
        help="The graph's storage: a path, file:// or s3://. Default: the configured one or the only *.omni here.",
    ),
]
Address = Annotated[str | None, typer.Argument(help="The graph; the same as --store.", show_default=False)]
At = Annotated[
    str | None,
    typer.Option(
        "--snapshot",
        "--at",
        metavar="ID|TIME",
        help="An older state: a commit id, a tag, a manifest version, or a time: 2026-11-01T12:00Z.",
    ),
]
GraphOrPlace = Annotated[
    str, typer.Argument(metavar="GRAPH", help="The graph. As elsewhere it can be left out.", show_default=False)
]
"""The first word of a verb that takes a graph and a place; see `graph_and_place`."""
_LONGEST_VERSION: Final = 20
Actor = Annotated[str | None, typer.Option("--as", help="Who is doing this; kept in the history.")]


def resolve_target(*given: str | None) -> Target:
    """The graph that the user means, in whichever way."""
    return resolve(given_here(*given), applied_graphs=_applied_graphs)


def cluster_place(named: str) -> ClusterPlace:
    """A cluster by its name in the configuration, its folder or its root."""
    from omnigraph.cluster.state.places import place_named

    return place_named(read_config().clusters.get(named, named.rstrip("/")))


def _applied_graphs(root: str) -> Mapping[str, str] | None:
    """Where the graphs of a cluster with a ledger are, by their names; None if it has none."""
    from omnigraph.cluster.state.ledger import require_ledger
    from omnigraph.cluster.state.places import is_cluster, place_named

    if not is_cluster(root):
        return None
    place = place_named(root)
    return {name: place.graph_uri(name) for name in require_ledger(place).state.graphs}


def resolve_store(*given: str | None) -> str:
    """The address of the graph's storage, for verbs that no server does."""
    target = resolve_target(*given)
    if target.is_server:
        raise typer.BadParameter(f"this works on the store itself, and {target} is a server's")
    return target.address


def graph_and_place(first: str, second: str | None) -> tuple[str | None, str]:
    """What the words of a verb with two places mean: with one of them, the graph is named in another way."""
    return (None, first) if second is None else (first, second)


def require_consent(target: Target, yes: bool, what: str) -> None:
    """Refuse to destroy something that is not on this machine, unless the user has agreed."""
    if not target.is_local and not yes and not said().get("yes"):
        agree(f"{target} is not local: {what} there")


def agree(what: str) -> None:
    """Ask the user to agree to something, on a terminal; elsewhere, refuse it and name the word of consent."""
    if sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm(f"{what}?", abort=True, err=True)
    else:
        raise typer.BadParameter(f"{what}; add --yes to agree")


def parse_at(text: str | None) -> str | int | None:
    """A manifest version if it is a number that could be one, else a commit id."""
    if text is not None and len(text) <= _LONGEST_VERSION and text.isascii() and text.isdecimal():
        return int(text)
    return text


def parse_state(text: str | None, branch: str | None) -> str | int | None:
    """What --snapshot names, for commands that take it or a --branch; a branch has a state at every time."""
    if text is not None and branch is not None:
        from omnigraph.manifest.refs.names import moment_named

        if moment_named(text) is None:
            raise typer.BadParameter("give --branch or --snapshot, not both, unless it is a time")
    return parse_at(text)


def open_graph(*given: str | None, read_only: bool, actor: str | None = None) -> Graph:
    """Open the graph the user named, or connect to it: a remote graph has the methods that commands use."""
    return open_target(resolve_target(*given), read_only=read_only, actor=actor)


def open_target(target: Target, *, read_only: bool, actor: str | None = None) -> Graph:
    """Open the graph of a target, or connect to it; a write to one that the configuration chose is announced."""
    if not read_only and target.origin is not None and not said().get("quiet"):
        sys.stderr.write(f"writing to {target} ({target.origin})\n")
    if target.is_server:
        return cast("Graph", _connected(target, actor))
    from omnigraph.opening import open as open_address

    if actor is None and not read_only:
        actor = read_config().actor
    return open_address(target.address, read_only=read_only, actor=actor)


def connect(*given: str | None, actor: str | None = None) -> RemoteGraph:
    """The graph of a server, for stored queries, which only servers have."""
    target = resolve_target(*given)
    if not target.is_server:
        raise typer.BadParameter(
            f"a name alone is that of a stored query, and {target} is no server; give --query FILE or -e TEXT"
        )
    return _connected(target, actor)


def _connected(target: Target, actor: str | None) -> RemoteGraph:
    from omnigraph.remote.connecting import connect as connect_to

    if actor is not None:
        raise typer.BadParameter("--as is for graphs of this machine; a server knows the actor by the token")
    return connect_to(target.address, graph=target.graph, token=target.token())
