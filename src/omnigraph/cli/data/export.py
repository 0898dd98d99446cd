"""`omnigraph export`: a snapshot as records, to a file, a directory of parts, or standard output."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.output import Json, counted, print_json, print_text, reports_errors, styled
from omnigraph.cli.progress import watched
from omnigraph.cli.spark import Engine, EngineName, Master, Remote
from omnigraph.cli.stores import Address, At, Store, open_graph, parse_state

if TYPE_CHECKING:
    from omnigraph.bulk.export.job import ExportResult


class ExportFormat(StrEnum):
    """The forms of an export."""

    JSONL = "jsonl"
    PARQUET = "parquet"


@reports_errors
def export(
    uri: Address = None,
    store: Store = None,
    branch: Annotated[
        str | None, typer.Option("--branch", help="The branch to export. Default: main.", show_default=False)
    ] = None,
    at: At = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", help="A node or edge type; can be repeated. Default: all.")
    ] = None,
    form: Annotated[
        ExportFormat, typer.Option("--format", help="parquet writes a directory.")
    ] = ExportFormat.JSONL,
    out: Annotated[
        str | None,
        typer.Option("--out", help="A file, or a directory of parts if it ends in /. Default: standard output."),
    ] = None,
    ordered: Annotated[
        bool, typer.Option("--ordered", help="Sort each type by id: equal graphs give equal bytes.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace an earlier export.")] = False,
    engine: Engine = EngineName.AUTO,
    master: Master = None,
    remote: Remote = None,
    as_json: Json = False,
) -> None:
    """Write a snapshot as records that `load` takes back."""
    state = parse_state(at, branch)
    if out is None:
        _require_out(form, engine, as_json=as_json, on_cluster=bool(master or remote), force=force)
    graph = open_graph(uri, store, read_only=True)
    with watched() as job:
        done = graph.export(
            sys.stdout.buffer if out is None else out,
            format=form.value,
            branch=branch,
            at=state,
            types=types or None,
            ordered=ordered,
            force=force,
            engine=engine.value,
            spark=remote or master,
            listener=None if out is None else job["listener"],
            cancellation=job["cancellation"],
        )
    if out is None:
        sys.stdout.buffer.flush()
    elif as_json:
        print_json({"uri": graph.address, **done.as_json()})
    else:
        _print_export(done)


def _require_out(form: ExportFormat, engine: EngineName, *, as_json: bool, on_cluster: bool, force: bool) -> None:
    """Refuse what needs a place of its own where records go to standard output."""
    for is_given, option in (
        (form is ExportFormat.PARQUET, "--format parquet"),
        (engine is EngineName.SPARK, "--engine spark"),
        (on_cluster, "--master and --remote"),
        (as_json, "--json"),
        (force, "--force"),
    ):
        if is_given:
            raise typer.BadParameter(f"{option}: add --out, since standard output receives the records")


def _print_export(done: ExportResult) -> None:
    state = done.branch if done.graph_commit_id is None else f"{done.branch} at {done.graph_commit_id}"
    print_text(
        styled("exported ", "green"),
        f"{counted(done.total_entities, 'record')} of {state} to {done.target} "
        f"({counted(len(done.files) or 1, 'file')}, {done.engine})",
    )
    for kind, counts in (("node", done.nodes), ("edge", done.edges)):
        for name, count in counts.items():
            print_text(f"  {kind} {name}: {count}")
