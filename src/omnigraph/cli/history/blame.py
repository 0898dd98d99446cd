"""`omnigraph blame`: which commit gave each property of an entity its value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, reports_errors
from omnigraph.cli.stores import At, Store, open_graph, parse_state

if TYPE_CHECKING:
    from omnigraph.history.blame import PropertyBlame


@reports_errors
def blame(
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="A node or edge type, or node:T, edge:T.")],
    entity_id: Annotated[str, typer.Argument(metavar="ID", help="The id; a node's key.")],
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to read. Default: main.", show_default=False)
    ] = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Show which commit, and who, gave each property of one node or edge its value."""
    state = parse_state(at, branch)
    found = open_graph(store, read_only=True).blame(type_name, entity_id, branch=branch, at=state)
    if as_json:
        print_json(found.as_json())
        return
    header = ("property", "value", "commit", "when", "kind", "actor", "message")
    print_table(header, [_row(each) for each in found])


def _row(found: PropertyBlame) -> tuple[str, ...]:
    from omnigraph.read.result.cells import json_value
    from omnigraph.read.result.display import cell_text, on_one_line

    commit = found.commit
    return (
        found.property,
        on_one_line(cell_text(json_value(found.value))),
        commit.graph_commit_id,
        f"{commit.created_at:%Y-%m-%d %H:%M:%S}",
        commit.kind,
        commit.actor_id or "",
        on_one_line(commit.message or ""),
    )
