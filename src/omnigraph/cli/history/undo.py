"""`omnigraph revert`, `omnigraph cherry-pick` and `omnigraph reset`: new commits that undo or repeat others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.history.diff import print_stat
from omnigraph.cli.history.merge import Choose, IfCommit, Message, Ours, Theirs, decisions
from omnigraph.cli.output import Json, lost_race, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import watched
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Actor, Address, Store, open_graph
from omnigraph.errors import PreconditionFailed

if TYPE_CHECKING:
    from omnigraph.history.merging.undo import UndoResult

CommitId = Annotated[str, typer.Argument(metavar="COMMIT", help="A commit id or a tag.")]
BranchOption = Annotated[str, typer.Option("--branch", help="The branch that gets the new commit.")]


@reports_errors
def revert(
    commits: Annotated[list[str], typer.Argument(metavar="COMMIT…", help="Commit ids or tags.")],
    branch: BranchOption = "main",
    store: Store = None,
    ours: Ours = False,
    theirs: Theirs = False,
    choose: Choose = None,
    if_commit: IfCommit = None,
    message: Message = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Undo commits by one new commit, the newest first. What was changed again since is a conflict."""
    graph = open_graph(store, read_only=False, actor=actor)
    options = {**decisions(ours, theirs, choose), "if_commit": if_commit, "message": message}
    options |= {"engine": engine.value, "spark": remote or master}
    done = _attempt(graph.revert, commits, branch, options, as_json)
    print_json(done.as_json()) if as_json else _report(done)


@reports_errors
def cherry_pick(
    commit: CommitId,
    branch: BranchOption = "main",
    store: Store = None,
    ours: Ours = False,
    theirs: Theirs = False,
    choose: Choose = None,
    if_commit: IfCommit = None,
    message: Message = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Do on a branch what a commit of any branch did."""
    graph = open_graph(store, read_only=False, actor=actor)
    options = {**decisions(ours, theirs, choose), "if_commit": if_commit, "message": message}
    options |= {"engine": engine.value, "spark": remote or master}
    done = _attempt(graph.cherry_pick, commit, branch, options, as_json)
    print_json(done.as_json()) if as_json else _report(done)


@reports_errors
def reset(
    to: Annotated[str, typer.Option("--to", metavar="COMMIT", help="The commit or tag whose content is wanted.")],
    uri: Address = None,
    branch: BranchOption = "main",
    store: Store = None,
    if_commit: IfCommit = None,
    message: Message = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Bring a branch back to its content at a commit, by a new commit: the history stays."""
    graph = open_graph(uri, store, read_only=False, actor=actor)
    options = {"if_commit": if_commit, "message": message, "engine": engine.value, "spark": remote or master}
    done = _attempt(graph.reset, to, branch, options, as_json)
    print_json(done.as_json()) if as_json else _report(done)


def _attempt(
    act: Callable[..., UndoResult], commit: str | list[str], branch: str, options: dict[str, Any], as_json: bool
) -> UndoResult:
    try:
        with watched() as job:
            return act(commit, branch, **options, **job)
    except PreconditionFailed as error:
        raise lost_race(error, as_json=as_json) from None


def _report(done: UndoResult) -> None:
    if done.commit is None:
        print_text(f"nothing to change: {done.kind} of {', '.join(done.of)} on {done.branch}")
        return
    name = done.kind.replace("_", "-")
    print_text(
        styled(f"{name} ", "green"), f"{', '.join(done.of)} on {done.branch} as {done.commit.graph_commit_id}"
    )
    print_stat({key: dict(counts) for key, counts in done.changes.items()})
