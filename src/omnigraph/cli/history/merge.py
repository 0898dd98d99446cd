"""`omnigraph branch merge`: bring the changes of one branch into another."""

from __future__ import annotations

import json
from pathlib import Path
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
from omnigraph.cli.progress import watched
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Actor, Store, open_graph
from omnigraph.errors import Conflict, InvalidArgument, OmniError, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from omnigraph.history.merging.plans import MergePlan, MergeResult

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
    source: Annotated[str | None, typer.Argument(help="The branch whose changes are brought in.")] = None,
    into: Annotated[str, typer.Option("--into", help="The branch that gets them.")] = "main",
    store: Store = None,
    preview: Annotated[bool, typer.Option("--preview", help="Show what would happen; write nothing.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", dir_okay=False, help="Store the preview in a file, to be applied later."),
    ] = None,
    apply: Annotated[
        Path | None,
        typer.Option("--apply", exists=True, dir_okay=False, help="Do exactly what a stored preview says."),
    ] = None,
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
    options: dict[str, Any] = {
        "strict": strict,
        "squash": squash,
        **decisions(ours, theirs, choose),
        "if_commit": if_commit,
    }
    spark: dict[str, Any] = {"engine": engine.value, "spark": remote or master}
    _check(source, into, options, preview=preview, out=out, apply=apply)
    # On Spark a preview stages rows in the graph, which are removed.
    on_spark = engine is EngineName.SPARK or bool(remote or master)
    graph = open_graph(store, read_only=preview and not on_spark, actor=actor)
    if preview:
        with watched() as job:
            plan = graph.preview_merge(source or "", into, message=message, **options, **spark, **job)
        if out is not None:
            _store(plan, out)
        _show_plan(plan, as_json=as_json)
        return
    try:
        with watched() as job:
            if apply is not None:
                done = graph.apply_merge(_stored(apply), message=message, **spark, **job)
            else:
                done = graph.merge(source or "", into, message=message, **options, **spark, **job)
    except PreconditionFailed as error:
        raise lost_race(error, as_json=as_json) from None
    _report(done, as_json=as_json)
    if delete_branch:
        try:
            graph.delete_branch(done.plan.source)
        except OmniError as error:
            print_warning(f"merged, but branch {done.plan.source} was not deleted: {error}")


def _check(
    source: str | None, into: str, options: dict[str, Any], *, preview: bool, out: Path | None, apply: Path | None
) -> None:
    """Refuse options that do not go together."""
    if out is not None and not preview:
        raise typer.BadParameter("--out stores a preview; add --preview")
    if apply is None:
        if source is None:
            raise typer.BadParameter("which branch? name the one to merge, or a stored preview with --apply")
    elif source is not None or preview or into != "main" or any(options.values()):
        raise typer.BadParameter("--apply takes all of that from the stored preview; leave it out")


def _store(plan: MergePlan, out: Path) -> None:
    try:
        out.write_text(json.dumps(plan.as_json(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise typer.BadParameter(f"{out} cannot be written: {error.strerror}") from None


def _stored(path: Path) -> MergePlan:
    from omnigraph.history.merging.plans import MergePlan

    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidArgument("plan", f"{path} is not JSON ({error!s:.80}); preview again") from None
    return MergePlan.from_json(stored)


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
        header = ("conflict", "table", "id", "what", "property", "base", "ours", "theirs")
        print_table(header, [row for conflict in plan.conflicts for row in _conflict_rows(conflict)])


def _conflict_rows(conflict: Conflict) -> list[tuple[str, ...]]:
    """A conflict as lines of a table: one for each property about which the branches disagree."""
    what = (conflict.kind.value, conflict.table_key, conflict.id or "", conflict.message)
    images = (conflict.base, conflict.ours, conflict.theirs)
    if conflict.ours is None and conflict.theirs is None:
        return [(*what, "", "", "", "")]
    differing = conflict.properties or tuple(_differing(conflict))
    return [(*what, name, *(_cell(image, name) for image in images)) for name in differing]


def _differing(conflict: Conflict) -> Iterator[str]:
    """The properties in which the three sides of a conflict differ; the id itself if one side has no row."""
    rows = [image for image in (conflict.base, conflict.ours, conflict.theirs) if image is not None]
    names = [name for name in rows[0] if name != "id" and any(row[name] != rows[0][name] for row in rows)]
    yield from names or ["id"]


def _cell(image: dict[str, Any] | None, name: str) -> str:
    from omnigraph.read.result.cells import json_value
    from omnigraph.read.result.display import cell_text, on_one_line

    return "absent" if image is None else on_one_line(cell_text(json_value(image[name])))


def _report(done: MergeResult, *, as_json: bool) -> None:
    if as_json:
        print_json(done.as_json())
        return
    commit = "" if done.commit is None else f" as {done.commit.graph_commit_id}"
    name = done.outcome.value.replace("_", " ")
    print_text(styled(name, "green"), f"  {done.plan.source} into {done.plan.target}{commit}")
    if done.plan.changes:
        print_stat({key: dict(counts) for key, counts in done.plan.changes.items()})
