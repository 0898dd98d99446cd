"""The `omnigraph` command."""

from __future__ import annotations

import platform
import warnings
from typing import Annotated

import typer

import omnigraph
from omnigraph.cli.data import embed, entity, explain, export, load, mutate, query
from omnigraph.cli.graph import branch, commit, graphs, schema, tag
from omnigraph.cli.history import blame, changes, diff, log, merge, undo
from omnigraph.cli.lang import fmt, lint
from omnigraph.cli.maintenance import (
    backup,
    cleanup,
    clone,
    doctor,
    indices,
    jobs,
    maintain,
    optimize,
    recovery,
    repair,
)
from omnigraph.cli.output import Json, print_json, print_text, print_warning
from omnigraph.cli.server import serve

app = typer.Typer(
    name="omnigraph",
    help="A typed property-graph database over Lance tables.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(schema.app, name="schema")
app.add_typer(branch.app, name="branch")
app.add_typer(tag.app, name="tag")
app.add_typer(commit.app, name="commit")
app.add_typer(changes.app, name="changes")
app.add_typer(recovery.app, name="recovery")
commit.app.command("changes")(changes.commit_changes)
app.command("init")(graphs.init)
app.command("query")(query.query)
app.command("entity")(entity.entity)
app.command("mutate")(mutate.mutate)
app.command("load")(load.load)
app.command("ingest")(load.ingest)
app.command("export")(export.export)
app.command("jobs")(jobs.jobs)
app.command("doctor")(doctor.doctor)
app.command("repair")(repair.repair)
app.command("clone")(clone.clone)
app.command("backup")(backup.backup)
app.command("backups")(backup.backups)
app.command("restore")(backup.restore)
app.command("embed")(embed.embed)
app.command("index")(indices.index)
app.command("optimize")(optimize.optimize)
app.command("maintain")(maintain.maintain)
app.command("cleanup")(cleanup.cleanup)
app.command("log")(log.log)
app.command("blame")(blame.blame)
app.command("diff")(diff.diff)
branch.app.command("merge")(merge.merge)
app.command("revert")(undo.revert)
app.command("cherry-pick")(undo.cherry_pick)
app.command("reset")(undo.reset)
app.command("serve")(serve.serve)
app.command("snapshot")(graphs.snapshot)
app.command("lint")(lint.lint)
app.command("explain")(explain.explain)
app.command("fmt")(fmt.fmt)


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", "-v", help="Print the version and exit.", is_eager=True, callback=_print_version
        ),
    ] = False,
) -> None:
    """A typed property-graph database over Lance tables."""


@app.command()
def version(as_json: Json = False) -> None:
    """Print the release and the version of the schema format it writes."""
    from omnigraph.lang.schema.identity import IR_VERSION
    from omnigraph.manifest.stamp import INTERNAL_SCHEMA_VERSION

    if as_json:
        print_json(
            {
                "version": omnigraph.__version__,
                "internal_schema_version": INTERNAL_SCHEMA_VERSION,
                "schema_ir_version": IR_VERSION,
                "python": platform.python_version(),
            }
        )
        return
    print_text(f"omnigraph {omnigraph.__version__}")
    print_text(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
    print_text(f"schema-ir {IR_VERSION}")


def main() -> None:
    """Run the command line."""
    warnings.showwarning = _show_warning
    app()


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """A warning as a line for people, without the place in our sources that it came from."""
    print_warning(str(message))
