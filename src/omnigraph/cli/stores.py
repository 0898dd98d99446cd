"""Which graph a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from omnigraph.cli.arrow import leave_out_pandas

if TYPE_CHECKING:
    from omnigraph.graph import Graph

Store = Annotated[
    str | None,
    typer.Option(
        "--store",
        "--uri",
        "--server",
        help="The graph: a path, file://, s3://, or the http:// of a server. Default: the only *.omni here.",
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
_LONGEST_VERSION: Final = 20
Actor = Annotated[str | None, typer.Option("--as", help="Who is doing this; kept in the history.")]


def resolve_store(*given: str | None) -> str:
    """The address the user gave, in whichever way, or the only graph of this directory."""
    named = {address for address in given if address}
    if len(named) > 1:
        raise typer.BadParameter(f"two graphs are named: {' and '.join(sorted(named))}")
    if named:
        return named.pop()
    here = sorted(str(path) for path in Path().glob("*.omni"))
    if len(here) == 1:
        return here[0]
    found = f"this directory has {', '.join(here)}" if here else "this directory has no *.omni"
    raise typer.BadParameter(f"which graph? {found}; name one with --store")


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
    address = resolve_store(*given)
    if address.startswith(("http://", "https://")):
        from omnigraph.remote.connecting import connect

        if actor is not None:
            raise typer.BadParameter("--as is for graphs of this machine; a server knows the actor by the token")
        return cast("Graph", connect(address))
    leave_out_pandas()
    from omnigraph.opening import open as open_address

    return open_address(address, read_only=read_only, actor=actor)
