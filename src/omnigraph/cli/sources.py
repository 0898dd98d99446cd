"""What commands are given to work on: files, queries and the values of their parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.arguments import unique_members
from omnigraph.errors import LanguageError

if TYPE_CHECKING:
    from omnigraph.lang.schema.catalog import Catalog
    from omnigraph.lang.source import Source

QueryName = Annotated[str | None, typer.Argument(help="The query to run, if there are several.")]
QueryFile = Annotated[
    Path | None, typer.Option("--query", exists=True, dir_okay=False, readable=True, help="A .gq file.")
]
QueryText = Annotated[str | None, typer.Option("--query-string", "-e", help="The query itself.")]
Params = Annotated[str | None, typer.Option("--params", help="Parameters as a JSON object.")]
ParamsFile = Annotated[
    Path | None,
    typer.Option("--params-file", exists=True, dir_okay=False, readable=True, help="Parameters in a file."),
]

Exact = Annotated[
    bool,
    typer.Option("--exact", help="Compare all vectors, where an index would find nearly all of the nearest."),
]


def read_source(path: Path) -> Source:
    """The text of a file, named by its path as given."""
    from omnigraph.lang.source import decode

    return decode(path.read_bytes(), str(path))


@contextmanager
def text_of(source: Source) -> Iterator[str]:
    """A text to hand on without its name; a mistake that is found in it is told with the name."""
    try:
        yield source.text
    except LanguageError as error:
        found = [replace(each, source=source.name) for each in error.diagnostics]
        raise type(error)(found, error.omitted) from None


def read_catalog(path: Path) -> Catalog:
    """The catalog of a schema file."""
    from omnigraph.lang.schema.catalog import load_catalog

    source = read_source(path)
    return load_catalog(source.text, source.name)


def read_query(file: Path | None, text: str | None) -> Source:
    """The queries the user gave, in a file or on the command line."""
    from omnigraph.lang.source import Source

    if file is not None and text is not None:
        raise typer.BadParameter("give --query FILE or -e TEXT, not both")
    if file is not None:
        return read_source(file)
    if text is not None:
        return Source(text, "<query>")
    raise typer.BadParameter("give --query FILE or -e TEXT, or the NAME of a stored query of a server")


def is_stored(name: str | None, file: Path | None, text: str | None) -> bool:
    """Does the user mean a stored query, by its name alone?"""
    return name is not None and file is None and text is None


def read_parameters(text: str | None, file: Path | None) -> dict[str, Any] | None:
    """The parameters the user gave, as JSON on the command line or in a file."""
    if text is not None and file is not None:
        raise typer.BadParameter("give --params or --params-file, not both")
    if file is not None:
        text = read_source(file).text
    if text is None:
        return None
    try:
        given = json.loads(text, object_pairs_hook=unique_members)
    except (ValueError, RecursionError) as error:
        raise typer.BadParameter(f"the parameters are not JSON: {error}") from None
    if given is not None and not isinstance(given, dict):
        raise typer.BadParameter("the parameters are one JSON object")
    return given
