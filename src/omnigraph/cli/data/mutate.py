"""`omnigraph mutate`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, lost_race, print_json, print_text, reports_errors, styled
from omnigraph.cli.sources import (
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
from omnigraph.cli.stores import Actor, Store, connect, open_graph
from omnigraph.errors import PreconditionFailed

if TYPE_CHECKING:
    from omnigraph.write.mutations.requests import MutationResult

Branch = Annotated[str, typer.Option("--branch", help="The branch to write.")]


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
    given = read_parameters(params, params_file)
    try:
        if name is not None and is_stored(name, query, text):
            done = connect(store, actor=actor).invoke_mutation(name, given, branch=branch, if_commit=if_commit)
        else:
            source = read_query(query, text)
            graph = open_graph(store, read_only=False, actor=actor)
            with text_of(source) as queries:
                done = graph.mutate(queries, given, name=name, branch=branch, if_commit=if_commit)
    except PreconditionFailed as error:
        raise lost_race(error, as_json=as_json) from None
    if as_json:
        print_json(done.as_json())
    else:
        _print_mutation(done)


def _print_mutation(done: MutationResult) -> None:
    if done.commit is None:
        print_text("nothing matched, nothing changed")
        return
    print_text(
        styled("committed ", "green"),
        f"{counted(done.affected_nodes, 'node')}, {counted(done.affected_edges, 'edge')} on {done.branch} "
        f"as {done.commit.graph_commit_id}",
    )
