"""Which graph a command works on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from omnigraph.graph import Graph

Store = Annotated[
    str | None,
    typer.Option("--store", "--uri", help="The graph: a path, file://, s3://. Default: the only *.omni here."),
]
Address = Annotated[str | None, typer.Argument(help="The graph; the same as --store.", show_default=False)]
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


def open_graph(*given: str | None, read_only: bool, actor: str | None = None) -> Graph:
    """Open the graph the user named."""
    from omnigraph.graph import open as open_address

    return open_address(resolve_store(*given), read_only=read_only, actor=actor)
