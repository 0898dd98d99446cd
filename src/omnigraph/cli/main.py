"""The `omnigraph` command."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
import warnings
from typing import Annotated, Final, NoReturn

import typer

from omnigraph.cli.scope.capabilities import LEGEND
from omnigraph.cli.streams import UNWRITTEN, OutputFailed, take_over, tell
from omnigraph.cli.verbs import VerbGroup

_OBJECTS_PER_COLLECTION: Final = 50_000
"""A short command makes few objects that only refer to each other; looking for them takes longer than its work."""

_IDLE: Final = "OPENBLAS_THREAD_TIMEOUT", "20"
"""After how many cycles, as a power of two, threads that NumPy starts when it is imported stop looking for work:
by themselves they keep a processor busy for longer than a command takes. A value that the caller set stays."""

app = typer.Typer(
    name="omnigraph",
    help="A typed property-graph database over Lance tables.",
    cls=VerbGroup,
    epilog=LEGEND,
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


def main() -> NoReturn:
    """Run the command line, and end the process with it."""
    take_over()
    try:
        run()
    except SystemExit as end:
        leave(end)
    except OutputFailed as failure:
        tell(failure)
        os._exit(UNWRITTEN)
    leave(SystemExit(0))


def run() -> None:
    """Run the command line. Mistakes, and commands that say how they end, raise SystemExit."""
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    os.environ.setdefault(*_IDLE)
    warnings.showwarning = _show_warning
    app()


def leave(end: SystemExit) -> NoReturn:
    """End the process as Python does, except that the interpreter is not taken apart.

    Arrow and Lance have threads. One that asks for Python's lock while the interpreter goes away is killed within
    C++, which aborts the process: a command that had done its work would now and then end with 134.
    """
    if end.code is not None and not isinstance(end.code, int):
        raise end
    getattr(threading, "_shutdown", int)()
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OutputFailed as failure:
        tell(failure)
        os._exit(end.code or UNWRITTEN)
    except (OSError, ValueError):
        raise end from None  # Python says what is wrong with the stream
    os._exit(end.code or 0)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for people, without the place in our sources that it came from."""
    from omnigraph.cli.output import print_warning

    print_warning(str(message))
