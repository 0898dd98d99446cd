"""`omnigraph login` and `omnigraph logout`: the tokens of servers."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_text, print_warning, reports_errors, styled
from omnigraph.cli.scope.config import read_config
from omnigraph.cli.scope.credentials import forget_token, store_token

Name = Annotated[str, typer.Argument(metavar="NAME", help="A server of the configuration.")]


@reports_errors
def login(
    name: Name,
    token: Annotated[
        str | None,
        typer.Option("--token", help="The token. Others may see it among the processes; prefer standard input."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Keep the token of a server: in the keyring if there is one, else in a file that only you can read.

    Without --token it is asked for on a terminal, or read from standard input.
    """
    if name not in read_config().servers:
        print_warning(f"there is no server '{name}' in {read_config().path} yet; add its url there")
    place = store_token(name, token if token is not None else _asked())
    if as_json:
        print_json({"server": name, "stored_in": place})
    else:
        print_text(styled("logged in ", "green"), f"to {name}; the token is in {place}")


def _asked() -> str:
    if sys.stdin.isatty():
        import getpass

        return getpass.getpass("token: ").strip()
    return sys.stdin.readline().strip()


@reports_errors
def logout(name: Name, as_json: Json = False) -> None:
    """Forget the token of a server, if there is one."""
    was_there = forget_token(name)
    if as_json:
        print_json({"server": name, "removed": was_there})
    else:
        print_text(f"logged out of {name}" if was_there else f"there is no token for {name}")
