"""`omnigraph commit`: the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.history.changes import commit_changes
from omnigraph.cli.history.log import (
    After,
    ByActor,
    Filters,
    Limit,
    OfBranch,
    OfKind,
    Since,
    Until,
    log_options,
    next_page,
    print_next,
)
from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.manifest.state import Commit

app = typer.Typer(help="Look at the history.", no_args_is_help=True)


@app.command("list")
@reports_errors
def list_(
    uri: Address = None,
    store: Store = None,
    branch: OfBranch = "main",
    filters: Filters = None,
    actor: ByActor = None,
    kind: OfKind = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    after: After = None,
    as_json: Json = False,
) -> None:
    """List the commits that led to a branch, newest first."""
    options = log_options(filters, actor=actor, kind=kind, since=since, until=until, after=after)
    found = open_graph(uri, store, read_only=True).log(branch, limit=limit + 1, **options)
    page, following = found[:limit], next_page([entry.commit.graph_commit_id for entry in found], limit)
    if as_json:
        commits = [{**entry.commit.as_json(), "reclaimed": entry.is_reclaimed} for entry in page]
        print_json({"branch": branch, "commits": commits, "next": following})
        return
    print_table(
        ("commit", "version", "when", "kind", "actor", "message"),
        [
            (
                c.graph_commit_id,
                f"{c.manifest_version} (gone)" if entry.is_reclaimed else str(c.manifest_version),
                f"{c.created_at:%Y-%m-%d %H:%M:%S}",
                c.kind,
                c.actor_id or "",
                c.message or "",
            )
            for entry in page
            for c in [entry.commit]
        ],
    )
    print_next(following)


@app.command("show")
@reports_errors
def show(
    commit_id: Annotated[str, typer.Argument(metavar="ID", help="The commit, or a tag.")],
    store: Store = None,
    as_json: Json = False,
) -> None:
    """Show one commit."""
    commit = open_graph(store, read_only=True).commit(commit_id)
    if as_json:
        print_json(commit.as_json())
    else:
        _print_commit(commit)


def _print_commit(commit: Commit) -> None:
    for label, value in (
        ("commit", commit.graph_commit_id),
        ("branch", commit.branch),
        ("version", str(commit.manifest_version)),
        ("parents", ", ".join(commit.parents) or "none"),
        ("when", f"{commit.created_at:%Y-%m-%d %H:%M:%S.%f} UTC"),
        ("kind", commit.kind),
        ("actor", commit.actor_id or "nobody"),
        ("message", commit.message or ""),
    ):
        print_text(styled(f"{label:8} ", "cyan"), value)


app.command("changes")(commit_changes)
