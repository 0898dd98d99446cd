"""What commands print: colours and tables on a terminal, plain text in a pipe, JSON when asked."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec

import typer

from omnigraph.errors import Diagnostic, JobCancelled, LanguageError, OmniError, Outcome

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

P = ParamSpec("P")
_LOST_RACE = 4
_INTERRUPTED = 130
_live: Console | None = None
_TERMINAL_VARIABLES = {"FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"}
"""By these a user tells rich that standard output is a terminal though it does not look like one."""
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]


def console(*, stderr: bool = False) -> Console:
    """A console that never wraps or guesses at colours of its own."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, soft_wrap=True, markup=False, emoji=False)


def _is_piped() -> bool:
    """Does standard output certainly not go to a terminal?"""
    return not (sys.stdout.isatty() or _TERMINAL_VARIABLES & os.environ.keys())


def _is_silenced() -> bool:
    from omnigraph.cli.scope.options import is_silenced

    return is_silenced()


def print_json(value: dict[str, Any]) -> None:
    """Print the one JSON object of a command."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def print_text(*parts: str | Text) -> None:
    """Print a line for people."""
    if _is_silenced():
        return
    texts = [part for part in parts if isinstance(part, str) and part.isprintable()]
    if len(texts) == len(parts):
        sys.stdout.write("".join(texts) + "\n")
    else:
        console().print(*parts, sep="")


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows under a header: a table as those of results on a terminal, tab-separated lines in a pipe."""
    if _is_silenced():
        return
    out = None if _is_piped() else console()
    if out is None or not out.is_terminal:
        for row in (header, *rows):
            sys.stdout.write("\t".join(row) + "\n")
        return
    for line in table_lines(header, [*zip(*rows, strict=True)] or [()] * len(header)):
        out.print(line)


def table_lines(header: Sequence[str], columns: Sequence[Sequence[Any]]) -> Iterator[str]:
    """The lines of a table, with cells as wide as the configuration says. Columns are JSON values."""
    from omnigraph.cli.scope.config import read_config
    from omnigraph.read.result.display import aligned, wrapped

    look = read_config().tables
    return (wrapped if look.is_wrapped else aligned)(header, columns, look.max_column_width)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number and what it counts, in the singular or the plural: `1 row`, `2 rows`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def styled(text: str, style: str) -> Text | str:
    """A piece of a line in a style; plain in a pipe."""
    if _is_piped():
        return text
    from rich.text import Text

    return Text(text, style=style)


def diagnostic_text(diagnostic: Diagnostic, style: str = "bold red") -> Text:
    """A diagnostic with its headline and its mark in colour."""
    from rich.text import Text

    text = Text()
    for index, line in enumerate(diagnostic.render().split("\n")):
        if index:
            text.append("\n")
        gutter, bar, rest = line.partition(" | ")
        if index == 0:
            text.append(line, style)
        elif bar and rest.strip("^ \t") == "" and "^" in rest:
            text.append(gutter + bar, "blue")
            text.append(rest, style)
        elif bar:
            text.append(gutter + bar, "blue")
            text.append(rest)
        else:
            text.append(line, "cyan" if " = help: " in line else "blue")
    return text


def reports_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Turn errors into a message (or JSON, under `--json`) and exit code 1; after Ctrl-C it is 130."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except OmniError as error:
            _print_failure(error, as_json=bool(kwargs.get("as_json")))
            raise typer.Exit(_INTERRUPTED if isinstance(error, JobCancelled) else 1) from None
        except KeyboardInterrupt:
            if kwargs.get("as_json"):
                print_json({"error": "interrupted", "code": "interrupted", "outcome": Outcome.UNKNOWN.value})
            else:
                sys.stderr.write("interrupted\n")
            raise typer.Exit(_INTERRUPTED) from None

    return run


def _print_failure(error: OmniError, *, as_json: bool) -> None:
    if as_json:
        print_json({**error.as_json(), "outcome": error.outcome.value})
    else:
        print_error(error)


def lost_race(error: OmniError, *, as_json: bool) -> typer.Exit:
    """The exit of a command whose --if-commit no longer holds, after saying so: its code is 4."""
    _print_failure(error, as_json=as_json)
    return typer.Exit(_LOST_RACE)


def live(shown: Console | None) -> None:
    """Let warnings appear above what a console shows at the moment; None once it shows nothing any more."""
    global _live
    _live = shown


def print_warning(message: str) -> None:
    """Print a warning to standard error, above a bar that is shown there."""
    print_note(f"warning: {message}")


def print_note(message: str) -> None:
    """Print a line to standard error, above a bar that is shown there."""
    out = console(stderr=True) if _live is None else _live
    out.print(message, style="yellow", markup=False, highlight=False, soft_wrap=True, emoji=False)


def print_error(error: OmniError) -> None:
    """Print an error to standard error; one in a text shows the text."""
    out = console(stderr=True)
    if not isinstance(error, LanguageError):
        out.print(f"error: {error}", style="bold red")
        return
    for index, diagnostic in enumerate(error.diagnostics):
        if index:
            out.print()
        out.print(diagnostic_text(diagnostic))
    if error.omitted:
        out.print(f"\n… and {error.omitted} more")
