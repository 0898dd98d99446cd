"""`omnigraph query`: run a read and print its rows."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli.output import Json, reports_errors
from omnigraph.cli.results import OutFile, ResultFormat, chosen_format, write_result
from omnigraph.cli.sources import (
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryText,
    read_parameters,
    read_query,
)
from omnigraph.cli.spark import Master, Remote
from omnigraph.cli.stores import Store, open_graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NO_STORED_QUERIES: Final = "; a query stored on a server can be run by its name alone, but no server was named"
_LONGEST_VERSION: Final = 20
_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?:([KMGT])(i)?)?B?", re.IGNORECASE | re.ASCII)
_UNITS: Final = ("", "K", "M", "G", "T")


def _parse_size(text: str) -> int:
    """A number of bytes: 1000000, 512MB, 1.5GiB."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a size; write a number of bytes, or 512MB, or 2GiB")
    number, unit, binary = found.groups(default="")
    return int(float(number) * (1024 if binary else 1000) ** _UNITS.index(unit.upper()))


class QueryEngine(StrEnum):
    """Who answers."""

    EMBEDDED = "embedded"
    SPARK = "spark"


@reports_errors
def query(
    name: QueryName = None,
    query: QueryFile = None,
    text: QueryText = None,
    params: Params = None,
    params_file: ParamsFile = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to read. Default: main.", show_default=False)
    ] = None,
    snapshot: Annotated[
        str | None,
        typer.Option("--snapshot", metavar="ID", help="An older state: a commit id or a manifest version."),
    ] = None,
    form: ResultFormat = None,
    out: OutFile = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after this long.")
    ] = None,
    memory_limit: Annotated[
        int | None,
        typer.Option(
            "--memory-limit",
            parser=_parse_size,
            metavar="SIZE",
            help="Give up rather than use more memory than this, such as 512MB or 2GiB.",
        ),
    ] = None,
    engine: Annotated[
        QueryEngine,
        typer.Option("--engine", help="embedded, or spark: the same rows, of graphs larger than this machine."),
    ] = QueryEngine.EMBEDDED,
    master: Master = None,
    remote: Remote = None,
    as_json: Json = False,
) -> None:
    """Run a read on one state of the graph and print its rows."""
    if branch is not None and snapshot is not None:
        raise typer.BadParameter("give --branch or --snapshot, not both")
    if (master or remote) and engine is not QueryEngine.SPARK:
        raise typer.BadParameter("--master and --remote need --engine spark")
    chosen = chosen_format(form, as_json, out)
    source = read_query(query, text, _NO_STORED_QUERIES)
    given = read_parameters(params, params_file)
    graph = open_graph(store, read_only=True)
    found = graph.query(
        source.text,
        given,
        name=name,
        branch=branch,
        snapshot=parse_snapshot(snapshot),
        timeout=timeout,
        memory_limit=memory_limit,
        engine=engine.value,
        spark=_session(master, remote) if engine is QueryEngine.SPARK else None,
    )
    write_result(found, chosen, out)


def _session(master: str | None, remote: str | None) -> SparkSession:
    from omnigraph.spark.session import spark_session

    return spark_session(master=master, remote=remote)


def parse_snapshot(text: str | None) -> str | int | None:
    """A manifest version if it is a number that could be one, else a commit id."""
    if text is not None and len(text) <= _LONGEST_VERSION and text.isascii() and text.isdecimal():
        return int(text)
    return text
