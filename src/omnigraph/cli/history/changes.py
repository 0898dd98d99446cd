"""`omnigraph changes` and `omnigraph commit changes`: what commits have changed, page by page."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.history.diff import Kinds, Ops, Types, print_change
from omnigraph.cli.output import Json, counted, print_error, print_json, print_text, reports_errors, styled
from omnigraph.cli.stores import Address, Store, open_graph
from omnigraph.errors import OmniError

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.feed.blocks import ChangeBlock
    from omnigraph.history.feed.pages import CommitChanges

app = typer.Typer(help="Follow the changes of a branch, commit by commit.", no_args_is_help=True)
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many changes to read at a time.")]
Lines = Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per block, and one for the end.")]
BranchOption = Annotated[str, typer.Option("--branch", help="Whose changes.")]


class _Form(StrEnum):
    """How blocks are printed."""

    TEXT = "text"
    JSON = "json"
    LINES = "lines"


@reports_errors
def commit_changes(
    commit_id: Annotated[str, typer.Argument(metavar="ID", help="The commit.")],
    store: Store = None,
    limit: Limit = 1_000,
    page_token: Annotated[
        str | None, typer.Option("--page-token", help="Print only the page that this token is for.")
    ] = None,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    lines: Lines = False,
    as_json: Json = False,
) -> None:
    """Show what a commit has changed against its first parent."""
    form = _form(as_json, lines)
    graph = open_graph(store, read_only=True)
    options: dict[str, Any] = {"kinds": kinds or None, "types": types or None, "ops": ops or None, "limit": limit}
    page = graph.commit_changes(commit_id, page_token=page_token, **options)
    rest = _rest_of_commit(graph, commit_id, page, options) if page_token is None else iter(())
    _print_blocks([page.block], (later.block for later in rest), form)
    _print_end({"next_page_token": None if page_token is None else page.next_page_token}, form)


def _rest_of_commit(
    graph: Graph, commit_id: str, page: CommitChanges, options: dict[str, Any]
) -> Iterator[CommitChanges]:
    while page.next_page_token is not None:
        page = graph.commit_changes(commit_id, page_token=page.next_page_token, **options)
        yield page


@app.command()
@reports_errors
def poll(
    uri: Address = None,
    store: Store = None,
    branch: BranchOption = "main",
    cursor: Annotated[
        str | None, typer.Option("--cursor", help="Go on behind this cursor of an earlier poll.")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--start", metavar="PLACE", help="now, beginning or after:COMMIT. Default: now."),
    ] = None,
    limit: Limit = 1_000,
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    lines: Lines = False,
    as_json: Json = False,
) -> None:
    """Show the commits of a branch in order, with their changes; the cursor for the next poll comes last.

    A cursor is printed only when everything before it has been.
    """
    if cursor is not None and start is not None:
        raise typer.BadParameter("give --cursor or --start, not both")
    form = _form(as_json, lines)
    graph = open_graph(uri, store, read_only=True)
    options: dict[str, Any] = {"kinds": kinds or None, "types": types or None, "ops": ops or None, "limit": limit}
    last = graph.changes(branch, cursor=cursor, start=start, **options)

    def rest() -> Iterator[ChangeBlock]:
        nonlocal last
        while last.next_page_token is not None:
            last = graph.changes(branch, page_token=last.next_page_token, **options)
            yield from last.blocks

    _print_blocks(last.blocks, rest(), form)
    _print_end({"cursor": last.cursor, "caught_up": last.caught_up}, form)


@app.command()
@reports_errors
def baseline(
    out: Annotated[str, typer.Option("--out", metavar="PATH", help="The file to write, on this machine.")],
    uri: Address = None,
    store: Store = None,
    branch: BranchOption = "main",
    kinds: Kinds = None,
    types: Types = None,
    ops: Ops = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
    as_json: Json = False,
) -> None:
    """Write the newest state of a branch as records, and print the cursor from which its changes follow.

    The cursor is printed when the file is safely on the disk. Poll with the same filters.
    """
    options: dict[str, Any] = {"kinds": kinds or None, "types": types or None, "ops": ops or None}
    done = open_graph(uri, store, read_only=True).baseline(out, branch, force=force, **options)
    if as_json:
        print_json(done.as_json())
        return
    state = f"{done.branch} at {done.snapshot_commit_id}"
    print_text(styled("wrote ", "green"), f"{counted(done.total_entities, 'record')} of {state} to {done.target}")
    print_text(styled("cursor ", "cyan"), done.resume_cursor)


def _form(as_json: bool, lines: bool) -> _Form:
    if as_json and lines:
        raise typer.BadParameter("give --json or --jsonl, not both")
    return _Form.JSON if as_json else _Form.LINES if lines else _Form.TEXT


def _print_blocks(first: Iterable[ChangeBlock], later: Iterable[ChangeBlock], form: _Form) -> None:
    """Print blocks as they come. If later ones fail, what was printed stays, and the exit code is 1."""
    separator = ""
    if form is _Form.JSON:
        sys.stdout.write('{"blocks": [')
    previous: ChangeBlock | None = None

    def show(blocks: Iterable[ChangeBlock]) -> None:
        nonlocal previous, separator
        for block in blocks:
            if form is _Form.TEXT:
                _print_block(block, is_continued=previous is not None and previous.cause == block.cause)
            else:
                text = json.dumps(block.as_json(), ensure_ascii=False)
                sys.stdout.write(f"{separator}\n{text}" if form is _Form.JSON else f"{text}\n")
            previous, separator = block, ","

    show(first)
    try:
        show(later)
    except OmniError as error:
        sys.stdout.flush()
        print_error(error)
        raise typer.Exit(1) from None


def _print_end(end: dict[str, Any], form: _Form) -> None:
    if form is _Form.JSON:
        sys.stdout.write("\n], " + json.dumps(end)[1:] + "\n")
    elif form is _Form.LINES:
        sys.stdout.write(json.dumps(end) + "\n")
    elif end.get("cursor") is not None:
        if not end["caught_up"]:
            print_text(styled("there is more: poll again with the cursor", "yellow"))
        print_text(styled("cursor ", "cyan"), end["cursor"])
    elif end.get("next_page_token") is not None:
        print_text(styled("next page ", "cyan"), end["next_page_token"])


def _print_block(block: ChangeBlock, *, is_continued: bool) -> None:
    if not is_continued:
        cause = block.cause
        actor = "" if cause.actor_id is None else f"  {cause.actor_id}"
        message = "" if cause.message is None else f"  {cause.message}"
        when = f"{cause.created_at:%Y-%m-%d %H:%M:%S}"
        print_text(styled(f"commit {cause.graph_commit_id}", "bold"), f"  {when}  {cause.kind}{actor}{message}")
    for change in block.changes:
        print_change(change)
