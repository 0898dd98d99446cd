"""`omnigraph branch merge`: bring the changes of one branch into another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.history.diff import print_stat
from omnigraph.cli.output import (
    Json,
    lost_race,
    print_json,
    print_table,
    print_text,
    print_warning,
    reports_errors,
    styled,
)
from omnigraph.cli.spark import Engine, EngineName, Master, Remote, progress
from omnigraph.cli.stores import Actor, Store, open_graph
from omnigraph.errors import OmniError, PreconditionFailed

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.merge import MergePlan, MergeResult

Ours = Annotated[bool, typer.Option("--ours", help="Decide conflicts for the target's side.")]
Theirs = Annotated[bool, typer.Option("--theirs", help="Decide conflicts for the other side.")]
Choose = Annotated[
    list[str] | None,
    typer.Option("--choose", metavar="TABLE/ID=SIDE", help="Decide one conflict, as node:Person/Ada=theirs."),
]
Message = Annotated[str | None, typer.Option("--message", "-m", help="Why; kept in the history.")]
IfCommit = Annotated[str | None, typer.Option("--if-commit", help="Only if the branch is at this commit.")]


@reports_errors
def merge(
    source: Annotated[str, typer.Argument(help="The branch whose changes are brought in.")],
    into: Annotated[str, typer.Option("--into", help="The branch that gets them.")] = "main",
    store: Store = None,
    preview: Annotated[bool, typer.Option("--preview", help="Show what would happen; write nothing.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="No two changes of one entity merge.")] = False,
    squash: Annotated[bool, typer.Option("--squash", help="Leave out the second parent.")] = False,
    ours: Ours = False,
    theirs: Theirs = False,
    choose: Choose = None,
    delete_branch: Annotated[
        bool, typer.Option("--delete-branch", help="Delete the source once it is merged.")
    ] = False,
    if_commit: IfCommit = None,
    message: Message = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Merge a branch into another, as one commit, or show all conflicts and change nothing."""
    # On Spark a preview stages rows in the graph, which are removed.
    on_spark = engine is EngineName.SPARK or bool(remote or master)
    graph = open_graph(store, read_only=preview and not on_spark, actor=actor)
    options: dict[str, Any] = {
        "strict": strict,
        "squash": squash,
        **decisions(ours, theirs, choose),
        "if_commit": if_commit,
        "message": message,
        "engine": engine.value,
        "spark": remote or master,
    }
    if preview:
        with progress() as listener:
            plan = graph.preview_merge(source, into, **options, listener=listener)
        _show_plan(plan, as_json=as_json)
        return
    with progress() as listener:
        done = _merged(graph, source, into, {**options, "listener": listener}, as_json=as_json)
    _report(done, as_json=as_json)
    if delete_branch:
        try:
            graph.delete_branch(source)
        except OmniError as error:
            print_warning(f"merged, but branch {source} was not deleted: {error}")


def _merged(graph: Graph, source: str, into: str, options: dict[str, Any], *, as_json: bool) -> MergeResult:
    try:
        return graph.merge(source, into, **options)
    except PreconditionFailed as error:
        raise lost_race(error, as_json=as_json) from None


def decisions(ours: bool, theirs: bool, choose: list[str] | None) -> dict[str, Any]:
    """How the user wants conflicts decided."""
    if ours and theirs:
        raise typer.BadParameter("give --ours or --theirs, not both")
    choices = dict(_choice(text) for text in choose or ())
    return {"resolve": "ours" if ours else "theirs" if theirs else None, "choices": choices}


def _choice(text: str) -> tuple[tuple[str, str], str]:
    entity, _, side = text.rpartition("=")
    table_key, slash, entity_id = entity.partition("/")
    if not slash or not entity_id or side not in ("ours", "theirs"):
        raise typer.BadParameter(f"'{text}' is not written TABLE/ID=ours or TABLE/ID=theirs")
    return (table_key, entity_id), side


def _show_plan(plan: MergePlan, *, as_json: bool) -> None:
    if as_json:
        print_json(plan.as_json())
        return
    print_text(styled(plan.outcome.value, "bold"), f"  {plan.source} into {plan.target} (at {plan.target_commit})")
    print_stat({key: dict(counts) for key, counts in plan.changes.items()})
    if plan.conflicts:
        rows = [(c.kind.value, c.table_key, c.id or "", c.message) for c in plan.conflicts]
        print_table(("conflict", "table", "id", "what"), rows)


def _report(done: MergeResult, *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_json())
        return
    commit = "" if done.commit is None else f" as {done.commit.graph_commit_id}"
    name = done.outcome.value.replace("_", " ")
    print_text(styled(name, "green"), f"  {done.plan.source} into {done.plan.target}{commit}")
    if done.plan.changes:
        print_stat({key: dict(counts) for key, counts in done.plan.changes.items()})
