"""`omnigraph tag`: names for commits."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph, open_target, parse_at, resolve_target

app = typer.Typer(help="Create, list and delete tags: names for commits.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The tag.")]


@app.command("create")
@reports_errors
def create(
    name: Name,
    at: Annotated[
        str, typer.Option("--at", metavar="STATE", help="A branch, a commit id, a tag or a manifest version.")
    ] = "main",
    store: Store = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Give a name to a commit. A tag does not move, and keeps the branch that holds its commit."""
    created = open_graph(store, read_only=False, actor=actor).tag(name, parse_at(at))
    if as_json:
        print_json(created.as_json())
    else:
        print_text(styled("created ", "green"), f"tag {created.name} at commit {created.graph_commit_id}")


@app.command("list")
@reports_errors
def list_(uri: Address = None, store: Store = None, as_json: Json = False) -> None:
    """List all tags, and those that are damaged, with what is wrong."""
    graph = open_graph(uri, store, read_only=True)
    damaged = graph.damaged_tags()
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        found = graph.tags()
    if as_json:
        listed = {"tags": [tag.as_json() for tag in found]}
        print_json({**listed, "damaged": [problem.as_json() for problem in damaged]})
        return
    print_table(
        ("tag", "commit", "branch", "created", "by"),
        [
            (t.name, t.graph_commit_id, t.branch, f"{t.created_at:%Y-%m-%d %H:%M:%S}", t.creator or "")
            for t in found
        ],
    )
    for problem in damaged:
        print_text(styled("damaged ", "red"), str(problem))


@app.command("delete")
@reports_errors
def delete(name: Name, store: Store = None, as_json: Json = False) -> None:
    """Delete a tag. Its commit stays, as long as the commit's branch does."""
    target = resolve_target(store)
    deleted = open_target(target, read_only=False).delete_tag(name)
    if as_json:
        print_json({"uri": str(target), "name": deleted})
    else:
        print_text(styled("deleted ", "green"), f"tag {deleted}")
