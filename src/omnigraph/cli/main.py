"""The `omnigraph` command."""

from __future__ import annotations

import gc
import warnings
from typing import Annotated, Final

import typer

from omnigraph.cli.verbs import VerbGroup

_OBJECTS_PER_COLLECTION: Final = 50_000
"""A short command makes few objects that only refer to each other; looking for them takes longer than its work."""

app = typer.Typer(
    name="omnigraph",
    help="A typed property-graph database over Lance tables.",
    cls=VerbGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    from omnigraph.cli.version import version

    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """A typed property-graph database over Lance tables."""


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    warnings.showwarning = _show_warning
    app()


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for people, without the place in our sources that it came from."""
    from omnigraph.cli.output import print_warning

    print_warning(str(message))
