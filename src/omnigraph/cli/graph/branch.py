"""`omnigraph branch`: create, list and delete branches."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

from omnigraph.cli.history.merge import merge
from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Actor, Address, Store, open_graph, open_target, require_consent, resolve_target

app = typer.Typer(help="Create, list, merge and delete branches.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(help="The branch.")]


@app.command("create")
@reports_errors
def create(
    name: Name,
    from_: Annotated[str, typer.Option("--from", help="The branch to start from.")] = "main",
    store: Store = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Create a branch at the newest state of another one."""
    created = open_graph(store, read_only=False, actor=actor).create_branch(name, from_)
    if as_json:
        print_json(created.as_json())
    else:
        print_text(
            styled("created ", "green"),
            f"branch {created.name} from {created.parent} at manifest version {created.fork_version}",
        )


@app.command("list")
@reports_errors
def list_(uri: Address = None, store: Store = None, as_json: Json = False) -> None:
    """List all branches, and those whose refs are damaged, with what is wrong."""
    graph = open_graph(uri, store, read_only=True)
    damaged = graph.damaged_branches()
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        found = graph.branches()
    if as_json:
        listed = {"branches": [branch.as_json() for branch in found]}
        print_json({**listed, "damaged": [problem.as_json() for problem in damaged]})
        return
    print_table(
        ("branch", "from", "at version", "created", "by"),
        [
            (
                b.name,
                b.parent or "",
                "" if b.fork_version is None else str(b.fork_version),
                "" if b.created_at is None else f"{b.created_at:%Y-%m-%d %H:%M:%S}",
                b.creator or "",
            )
            for b in found
        ],
    )
    for problem in damaged:
        print_text(styled("damaged ", "red"), str(problem))


@app.command("delete")
@reports_errors
def delete(
    name: Name,
    store: Store = None,
    yes: Annotated[bool, typer.Option("--yes", help="Consent, needed for graphs that are not local.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a branch that no other descends from."""
    target = resolve_target(store)
    require_consent(target, yes, "delete a branch")
    deleted = open_target(target, read_only=False).delete_branch(name)
    if as_json:
        print_json({"uri": str(target), "name": deleted.name})
    else:
        print_text(styled("deleted ", "green"), f"branch {deleted.name}")


app.command("merge")(merge)
