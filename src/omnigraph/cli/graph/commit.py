"""`omnigraph commit`: the history."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, print_json, print_table, print_text, reports_errors, styled
from omnigraph.cli.stores import Address, Store, open_graph

if TYPE_CHECKING:
    from omnigraph.manifest.state import Commit

app = typer.Typer(help="Look at the history.", no_args_is_help=True)
_FILTERS = ("actor", "kind")


@app.command("list")
@reports_errors
def list_(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[str, typer.Option("--branch", help="Whose history.")] = "main",
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="actor=NAME or kind=KIND; may be repeated.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="How many at most.")] = 50,
    after: Annotated[str | None, typer.Option("--after", help="Go on behind this commit.")] = None,
    as_json: Json = False,
) -> None:
    """List the commits that led to a branch, newest first."""
    wanted = _parse_filters(filters or [])
    graph = open_graph(uri, store, read_only=True)
    found = graph.commits(branch, actor=wanted.get("actor"), kind=wanted.get("kind"), limit=limit + 1, after=after)
    page, more = found[:limit], len(found) > limit
    if as_json:
        following = page[-1].graph_commit_id if more else None
        print_json({"branch": branch, "commits": [c.as_json() for c in page], "next": following})
        return
    print_table(
        ("commit", "version", "when", "kind", "actor", "message"),
        [
            (
                c.graph_commit_id,
                str(c.manifest_version),
                f"{c.created_at:%Y-%m-%d %H:%M:%S}",
                c.kind,
                c.actor_id or "",
                c.message or "",
            )
            for c in page
        ],
    )
    if more:
        print_text(styled(f"more: --after {page[-1].graph_commit_id}", "cyan"))


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


def _parse_filters(given: list[str]) -> dict[str, str]:
    wanted = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        if not equals or name not in _FILTERS:
            raise typer.BadParameter(f"{entry!r} is not a filter; write actor=NAME or kind=KIND")
        wanted[name] = value
    return wanted
