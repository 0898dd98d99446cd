"""`omnigraph log`: the history of a branch, for people; and the options that `omnigraph commit list` shares."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Store, open_graph

if TYPE_CHECKING:
    from collections.abc import Mapping

    from omnigraph.history.log import LogEntry

OfBranch = Annotated[str, typer.Option("--branch", help="Whose history.")]
Filters = Annotated[list[str] | None, typer.Option("--filter", help="actor=NAME or kind=KIND; can be repeated.")]
ByActor = Annotated[str | None, typer.Option("--actor", help="Only commits of this actor.")]
OfKind = Annotated[str | None, typer.Option("--kind", help="Only commits of this kind: load, mutation, merge …")]
Since = Annotated[str | None, typer.Option("--since", metavar="TIME", help="Not older: 2026-05-01T12:00:00Z.")]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Only older than this.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
After = Annotated[str | None, typer.Option("--after", help="Go on behind this commit.")]
_FILTERS = ("actor", "kind")


@reports_errors
def log(
    type_name: Annotated[
        str | None, typer.Argument(metavar="TYPE", help="With an id: only commits that changed one entity.")
    ] = None,
    entity_id: Annotated[str | None, typer.Argument(metavar="ID", help="The entity's id.")] = None,
    branch: OfBranch = "main",
    store: Store = None,
    actor: ByActor = None,
    kind: OfKind = None,
    filters: Filters = None,
    since: Since = None,
    until: Until = None,
    stat: Annotated[bool, typer.Option("--stat", help="Count what each commit changed, by type.")] = False,
    limit: Limit = 50,
    after: After = None,
    as_json: Json = False,
) -> None:
    """Show the commits that led to a branch, newest first, or those that changed one node or edge."""
    if type_name is not None and entity_id is None:
        raise typer.BadParameter(f"which {type_name}? give its id too")
    options = log_options(filters, actor=actor, kind=kind, since=since, until=until, after=after)
    graph = open_graph(store, read_only=True)
    found = graph.log(branch, type=type_name, id=entity_id, stat=stat, limit=limit + 1, **options)
    page, following = found[:limit], next_page([entry.commit.graph_commit_id for entry in found], limit)
    if as_json:
        print_json({"branch": branch, "commits": [entry.as_json() for entry in page], "next": following})
        return
    for entry in page:
        _print_entry(entry)
    print_next(following)


def log_options(filters: list[str] | None, **given: str | None) -> dict[str, Any]:
    """The options of a log, with those that are written as --filter NAME=VALUE."""
    wanted = dict(given)
    for entry in filters or ():
        name, equals, value = entry.partition("=")
        if not equals or name not in _FILTERS:
            raise typer.BadParameter(f"{entry!r} is not a filter; write actor=NAME or kind=KIND")
        if wanted[name] not in (None, value):
            raise typer.BadParameter(f"two values for {name}: {wanted[name]} and {value}")
        wanted[name] = value
    return wanted


def next_page(ids: list[str], limit: int) -> str | None:
    """The commit that the next page goes on behind; None if this page is the last."""
    return ids[limit - 1] if len(ids) > limit else None


def print_next(following: str | None) -> None:
    """Say how to go on."""
    if following is not None:
        print_text(styled(f"more: --after {following}", "cyan"))


def _print_entry(entry: LogEntry) -> None:
    commit = entry.commit
    names = ", ".join([*entry.branches, *(f"tag {tag}" for tag in entry.tags)])
    print_text(styled(commit.graph_commit_id, "yellow"), styled(f"  {names}", "bold cyan") if names else "")
    merged = f"  merges {', '.join(commit.parents[1:])}" if commit.parents[1:] else ""
    by = f" by {commit.actor_id}" if commit.actor_id else ""
    print_text(f"    {commit.created_at:%Y-%m-%d %H:%M:%S}  {commit.kind}{by}{merged}")
    if entry.is_reclaimed:
        print_text(styled("    its state is gone from the store", "yellow"))
    for line in (commit.message or "").splitlines():
        print_text(f"    {line}")
    for table_key, counts in (entry.changes or {}).items():
        print_text(f"    {table_key}  {_counted(counts)}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {op}" for op, count in counts.items() if count)
