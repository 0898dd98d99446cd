"""`omnigraph mutate`, `omnigraph load` and `omnigraph ingest`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_error, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import (
    Params,
    ParamsFile,
    QueryFile,
    QueryName,
    QueryText,
    read_parameters,
    read_query,
)
from omnigraph.cli.stores import Actor, Address, Store, open_graph
from omnigraph.errors import PreconditionFailed

if TYPE_CHECKING:
    from omnigraph.write.requests import LoadResult, MutationResult

Branch = Annotated[str, typer.Option("--branch", help="The branch to write.")]
DataFile = Annotated[str, typer.Option("--data", help="A JSON Lines file; `-` reads standard input.")]
LOST_RACE = 4
"""The exit code of a mutation whose --if-commit no longer holds."""


class LoadMode(StrEnum):
    """How a load treats what is there."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


@reports_errors
def mutate(
    name: QueryName = None,
    query: QueryFile = None,
    text: QueryText = None,
    params: Params = None,
    params_file: ParamsFile = None,
    branch: Branch = "main",
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only if the branch is at this commit; else exit code 4.")
    ] = None,
    store: Store = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Insert, update or delete: all statements of a query as one commit, or none."""
    source = read_query(query, text)
    given = read_parameters(params, params_file)
    graph = open_graph(store, read_only=False, actor=actor)
    try:
        done = graph.mutate(source.text, given, name=name, branch=branch, if_commit=if_commit)
    except PreconditionFailed as error:
        if as_json:
            print_json(error.as_json())
        else:
            print_error(error)
        raise typer.Exit(LOST_RACE) from None
    if as_json:
        print_json(done.as_json())
    else:
        _print_mutation(done)


@reports_errors
def load(
    mode: Annotated[LoadMode, typer.Option("--mode", help="What happens to rows that are there.")],
    data: DataFile,
    uri: Address = None,
    store: Store = None,
    branch: Branch = "main",
    from_: Annotated[
        str | None, typer.Option("--from", help="Fork the branch from this one if it is missing.")
    ] = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Load JSON Lines records as one commit."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = graph.load(_data(data), mode.value, branch=branch, from_=from_)
    _report_load(done, graph.address, as_json)


@reports_errors
def ingest(
    branch: Annotated[str, typer.Option("--branch", help="The branch to load into; forked if missing.")],
    data: DataFile,
    uri: Address = None,
    store: Store = None,
    from_: Annotated[str, typer.Option("--from", help="The branch to fork from.")] = "main",
    mode: Annotated[
        LoadMode, typer.Option("--mode", help="What happens to rows that are there.")
    ] = LoadMode.MERGE,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Load JSON Lines records into a branch of their own, for review."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    done = graph.ingest(_data(data), branch, from_=from_, mode=mode.value)
    _report_load(done, graph.address, as_json)


def _data(name: str) -> bytes | Path:
    if name == "-":
        return sys.stdin.buffer.read()
    path = Path(name)
    if not path.is_file():
        raise typer.BadParameter(f"{name} is not a file")
    return path


def _print_mutation(done: MutationResult) -> None:
    if done.commit is None:
        print_text("nothing matched, nothing changed")
        return
    print_text(
        styled("committed ", "green"),
        f"{done.affected_nodes} nodes, {done.affected_edges} edges on {done.branch} "
        f"as {done.commit.graph_commit_id}",
    )


def _report_load(done: LoadResult, address: str, as_json: bool) -> None:
    if as_json:
        print_json({"uri": address, **done.as_json()})
        return
    created = f" (forked from {done.base_branch})" if done.branch_created else ""
    print_text(
        styled("committed ", "green"),
        f"{done.total_entities} records on {done.branch}{created} as {done.commit.graph_commit_id}",
    )
    for kind, counts in (("node", done.nodes), ("edge", done.edges)):
        for name, count in counts.items():
            print_text(f"  {kind} {name}: {count}")
