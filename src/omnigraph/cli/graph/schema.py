"""`omnigraph schema`: show the schema of a graph, plan another one, and accept it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import (
    Json,
    counted,
    lost_race,
    print_json,
    print_table,
    print_text,
    reports_errors,
    styled,
)
from omnigraph.cli.progress import watched
from omnigraph.cli.sources import read_source, text_of
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import (
    Actor,
    Address,
    At,
    Store,
    open_graph,
    open_target,
    parse_state,
    require_consent,
    resolve_target,
)
from omnigraph.errors import PreconditionFailed, RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from omnigraph.lang.schema.steps import MigrationPlan
    from omnigraph.write.evolution.apply import SchemaResult
    from omnigraph.write.evolution.plan import TableWork

app = typer.Typer(help="Show schemas, and change them.", no_args_is_help=True)

SchemaFile = Annotated[
    Path,
    typer.Option("--schema", "--to", exists=True, dir_okay=False, readable=True, help="The schema to change to."),
]
BranchOption = Annotated[str | None, typer.Option("--branch", help="The branch; main by default.")]
Fill = Annotated[
    list[str] | None,
    typer.Option(
        "--fill",
        metavar="TYPE.PROPERTY=VALUE",
        help="What existing rows get in a property that they have no value for: JSON, a text, or $OTHER_PROPERTY.",
    ),
]
DataLoss = Annotated[
    bool, typer.Option("--allow-data-loss", help="Drops purge what they drop, in older states too.")
]


@app.command()
@reports_errors
def show(
    uri: Address = None,
    store: Store = None,
    branch: BranchOption = None,
    at: At = None,
    as_json: Json = False,
) -> None:
    """Print the schema a graph has accepted, of a branch or of an older state."""
    graph = open_graph(uri, store, read_only=True)
    state = graph.snapshot(branch, at=parse_state(at, branch))
    source = graph.schema_source(at=state)
    if as_json:
        print_json({"schema_source": source, "shape_hash": state.catalog.hash, "branch": state.branch})
    else:
        sys.stdout.write(source)


app.command("get", hidden=True)(show)


@app.command()
@reports_errors
def infer(
    data: Annotated[
        list[str], typer.Argument(help="Files, directories or globs: CSV, Parquet, JSON Lines; s3://.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", dir_okay=False, help="Write the schema to this file instead.")
    ] = None,
    map_file: Annotated[
        Path | None, typer.Option("--map", dir_okay=False, help="Write a mapping file for `omnigraph load --map`.")
    ] = None,
    rows: Annotated[int, typer.Option("--rows", min=1, help="How many rows of a file are looked at.")] = 100_000,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Propose a schema for data, with keys and edges as far as they can be told. Read and edit it."""
    from omnigraph.bulk.load.inference.proposal import infer_schema

    for path in (out, map_file):
        if path is not None and path.exists() and not force:
            raise typer.BadParameter(f"{path} is there already; add --force to replace it")
    found = infer_schema(data, rows=rows)
    mapping = found.mapping(Path() if map_file is None else map_file.absolute().parent)
    for path, text in ((out, found.schema), (map_file, mapping)):
        if path is not None:
            _write_text(path, text)
    if as_json:
        print_json({"schema": found.schema, "map": mapping})
    elif out is None:
        sys.stdout.write(found.schema)


def _write_text(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RequestError(f"cannot write {path}: {error.strerror or error}") from None


@app.command()
@reports_errors
def history(uri: Address = None, store: Store = None, branch: BranchOption = None, as_json: Json = False) -> None:
    """List the schemas that a branch has had, newest first, with the steps that led to each."""
    graph = open_graph(uri, store, read_only=True)
    found = graph.schema_history(branch)
    if as_json:
        print_json({"schemas": [one.as_json() for one in found]})
        return
    for one in found:
        commit = one.commit
        print_text(styled(f"{commit.graph_commit_id}  {commit.created_at:%Y-%m-%d %H:%M:%S}", "bold"))
        for step in one.steps or ("created",):
            print_text(f"  {step}")


@app.command()
@reports_errors
def plan(
    new: SchemaFile,
    uri: Address = None,
    store: Store = None,
    old: Annotated[
        Path | None,
        typer.Option(
            "--from", exists=True, dir_okay=False, readable=True, help="Plan from this schema, without a graph."
        ),
    ] = None,
    branch: BranchOption = None,
    fill: Fill = None,
    allow_data_loss: DataLoss = False,
    as_json: Json = False,
) -> None:
    """Show the steps to another schema and the work they take. Exit code 1 if a change is refused."""
    after = read_source(new)
    if old is not None:
        from omnigraph.lang.schema.migration import compare_schemas, idle_notes
        from omnigraph.lang.schema.resolve import compile_schema

        with text_of(read_source(old)) as before:
            compile_schema(before)
        with text_of(after) as wanted:
            steps = compare_schemas(before, wanted, allow_data_loss=allow_data_loss)
        notes = idle_notes(before, wanted)
        work: tuple[TableWork, ...] = ()
        shown = {**steps.as_json(), "notes": list(notes)}
    else:
        graph = open_graph(uri, store, read_only=True)
        fills = _fills(fill)
        with text_of(after) as wanted:
            planned = graph.plan_schema(wanted, branch=branch, fill=fills, allow_data_loss=allow_data_loss)
        steps, notes, shown, work = planned.steps, planned.notes, planned.as_json(), planned.work
    if as_json:
        print_json(shown)
    else:
        _print_plan(steps, notes, work)
    if not steps.supported:
        raise typer.Exit(1)


@app.command()
@reports_errors
def apply(
    new: SchemaFile,
    uri: Address = None,
    store: Store = None,
    branch: BranchOption = None,
    every: Annotated[
        bool,
        typer.Option("--all-branches", help="All branches get it, or none."),
    ] = False,
    fill: Fill = None,
    allow_data_loss: DataLoss = False,
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", help="Only if the branch is still at this commit.")
    ] = None,
    message: Annotated[str | None, typer.Option("--message", "-m", help="Kept with the commit.")] = None,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Give a branch another schema, as one commit. Its rows are kept, and older states keep their schema."""
    if every and (branch is not None or if_commit is not None):
        raise typer.BadParameter("--all-branches goes without --branch and --if-commit")
    if every and (engine is EngineName.SPARK or master or remote):
        raise typer.BadParameter("--all-branches runs in this process, not on Spark")
    target = resolve_target(uri, store)
    if not target.is_server:
        from omnigraph.cluster.managed import require_unmanaged

        require_unmanaged(target.address, "its schema")
    if allow_data_loss:
        require_consent(target, False, "drop rows and values")
    graph = open_target(target, read_only=False, actor=actor)
    source, fills = read_source(new), _fills(fill)
    if every:
        with text_of(source) as wanted:
            results = graph.apply_schema_to_all(
                wanted, fill=fills, allow_data_loss=allow_data_loss, message=message
            )
        if as_json:
            print_json({"branches": [done.as_json() for done in results]})
        for done in () if as_json else results:
            print_text(styled(f"{done.plan.branch}:", "bold"))
            _print_result(done)
        return
    try:
        with watched() as job, text_of(source) as wanted:
            done = graph.apply_schema(
                wanted,
                branch=branch,
                fill=fills,
                allow_data_loss=allow_data_loss,
                message=message,
                if_commit=if_commit,
                engine=engine.value,
                spark=remote or master,
                **job,
            )
    except PreconditionFailed as error:
        raise lost_race(error, as_json=as_json) from error
    if as_json:
        print_json(done.as_json())
    else:
        _print_result(done)


def _print_result(done: SchemaResult) -> None:
    _print_plan(done.plan.steps, done.plan.notes, done.plan.work)
    if done.commit is not None:
        print_text(styled("commit ", "bold"), done.commit.graph_commit_id)


def _fills(given: list[str] | None) -> dict[str, object]:
    """Fills as they are written: a value that is no JSON is a text."""
    found: dict[str, object] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise typer.BadParameter(f"'{text}' has no value; write TYPE.PROPERTY=VALUE")
        if name.strip() in found:
            raise typer.BadParameter(f"'{name.strip()}' is given twice")
        try:
            found[name.strip()] = json.loads(value)
        except ValueError:
            found[name.strip()] = value
    return found


def _print_plan(planned: MigrationPlan, notes: Iterable[str], work: Iterable[TableWork]) -> None:
    for step in planned.steps:
        refused = step.kind == "unsupported_change"
        print_text(styled("✗ " if refused else "• ", "bold red" if refused else "green"), str(step))
    for note in notes:
        print_text(styled("note: ", "cyan"), note)
    if not planned.steps:
        print_text("no changes")
    elif not planned.supported:
        print_text(styled("not supported", "bold red"))
    else:
        print_text(f"{counted(len(planned.steps), 'step')}, supported")
        rows = [(one.table_key, one.action, f"{one.rows:,}", _read(one)) for one in work]
        if rows:
            print_table(("table", "what happens", "rows", "read"), rows)


def _read(work: TableWork) -> str:
    """How much of a table has to be read."""
    if work.computed:
        return f"all, to compute {', '.join(work.computed)}"
    return "all, to check them" if work.reads_rows else "none"
