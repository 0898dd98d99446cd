"""`omnigraph query`: run a read and print its rows."""

from __future__ import annotations

import re
from typing import Annotated, Final

import typer

from omnigraph.cli.output import Json, reports_errors
from omnigraph.cli.results import Metadata, OutFile, ResultFormat, chosen_format, write_result
from omnigraph.cli.sources import (
    Exact,
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryText,
    is_stored,
    read_parameters,
    read_query,
    text_of,
)
from omnigraph.cli.spark import EngineName, Master, Remote
from omnigraph.cli.stores import At, Store, connect, open_graph, parse_state

_SIZE: Final = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?:([KMGT])(i)?)?B?", re.IGNORECASE | re.ASCII)
_UNITS: Final = ("", "K", "M", "G", "T")


def _parse_size(text: str) -> int:
    """A number of bytes: 1000000, 512MB, 1.5GiB."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise typer.BadParameter(f"{text!r} is not a size; write a number of bytes, or 512MB, or 2GiB")
    number, unit, binary = found.groups(default="")
    return int(float(number) * (1024 if binary else 1000) ** _UNITS.index(unit.upper()))


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
    at: At = None,
    exact: Exact = False,
    form: ResultFormat = None,
    out: OutFile = None,
    metadata: Metadata = False,
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
        EngineName,
        typer.Option("--engine", help="local, or spark: the same rows, of graphs larger than this machine."),
    ] = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    as_json: Json = False,
) -> None:
    """Run a read on one state of the graph and print its rows."""
    if (master or remote) and engine is EngineName.LOCAL:
        raise typer.BadParameter("--master and --remote are for Spark; leave out --engine local")
    state = parse_state(at, branch)
    chosen = chosen_format(form, as_json, out)
    given = read_parameters(params, params_file)
    if name is not None and is_stored(name, query, text):
        write_result(connect(store).invoke(name, given, branch=branch, at=state), chosen, out, metadata=metadata)
        return
    source = read_query(query, text)
    graph = open_graph(store, read_only=True)
    with text_of(source) as queries:
        found = graph.query(
            queries,
            given,
            name=name,
            branch=branch,
            at=state,
            exact=exact,
            timeout=timeout,
            memory_limit=memory_limit,
            engine=engine.value,
            spark=remote or master,
        )
    write_result(found, chosen, out, metadata=metadata)
