"""`omnigraph cluster`: graphs, schemas, stored queries and policies as files that are applied together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli.cluster.printing import (
    print_applying,
    print_checked,
    print_plan,
    print_refreshed,
    print_status,
)
from omnigraph.cli.output import Json, print_json, print_text, reports_errors, styled
from omnigraph.cli.scope.config import read_config
from omnigraph.cli.stores import Actor

app = typer.Typer(help="Plan and apply the graphs of a cluster, as cluster.yaml says.", no_args_is_help=True)
Config = Annotated[Path, typer.Option("--config", metavar="DIR", help="The folder of cluster.yaml.")]
HERE = Path()


@app.command()
@reports_errors
def validate(config: Config = HERE, as_json: Json = False) -> None:
    """Check cluster.yaml and all files it names. Exit code 1 if one is wrong."""
    from omnigraph.cluster.codes import is_wrong
    from omnigraph.cluster.configuration.resources import check_configuration

    checked = check_configuration(config)
    is_ok = not is_wrong(checked.problems)
    if as_json:
        print_json(
            {
                "status": "ok" if is_ok else "failed",
                "config_digest": checked.digest,
                "resources": {name: each.applied.digest for name, each in sorted(checked.resources.items())},
                "diagnostics": [each.as_json() for each in checked.problems],
            }
        )
    else:
        print_checked(checked)
    if not is_ok:
        raise typer.Exit(1)


@app.command()
@reports_errors
def plan(config: Config = HERE, as_json: Json = False) -> None:
    """Show what apply would do: every change, the steps of schemas, and what stands against it."""
    from omnigraph.cluster.changes.applying import plan_cluster

    found = plan_cluster(config)
    if as_json:
        print_json(found.as_json())
    else:
        print_plan(found)


@app.command()
@reports_errors
def apply(config: Config = HERE, actor: Actor = None, as_json: Json = False) -> None:
    """Make the changes of the plan, as far as possible. Exit code 1 if one of them failed."""
    from omnigraph.cluster.changes.applying import apply_cluster

    done = apply_cluster(config, actor or read_config().actor)
    if as_json:
        print_json(done.as_json())
    else:
        print_applying(done)
    if done.is_failed:
        raise typer.Exit(1)


@app.command()
@reports_errors
def approve(
    resource: Annotated[str, typer.Argument(metavar="RESOURCE", help="What to agree to: graph.NAME.")],
    config: Config = HERE,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept with the approval.")] = "",
    actor: Actor = None,
    as_json: Json = False,
) -> None:
    """Agree to the removal of a graph, as it is planned now. Any other change makes the approval void."""
    from omnigraph.cluster.changes.approving import approve as agree

    given = agree(config, resource, actor or read_config().actor, reason)
    if as_json:
        print_json(given.as_json())
    else:
        print_text(styled("approved ", "green"), f"{given.operation} of {given.resource} as {given.approval_id}")


@app.command()
@reports_errors
def status(config: Config = HERE, as_json: Json = False) -> None:
    """Show what the ledger has, and whether the catalog still has it too. Exit code 1 if it has not."""
    from omnigraph.cluster.codes import is_wrong
    from omnigraph.cluster.status import read_status

    found = read_status(config)
    if as_json:
        print_json(found.as_json())
    else:
        print_status(found)
    if is_wrong(found.problems):
        raise typer.Exit(1)


@app.command()
@reports_errors
def refresh(config: Config = HERE, as_json: Json = False) -> None:
    """Look at the graphs and the catalog, and note in the ledger what is missing or was changed."""
    from omnigraph.cluster.changes.refreshing import refresh as look_again

    found = look_again(config)
    if as_json:
        print_json(found.as_json())
    else:
        print_refreshed(found)


@app.command("import")
@reports_errors
def import_(config: Config = HERE, as_json: Json = False) -> None:
    """Make the ledger of a cluster that has none, of the graphs that are there."""
    from omnigraph.cluster.changes.refreshing import import_cluster

    found = import_cluster(config)
    if as_json:
        print_json(found.as_json())
    else:
        print_refreshed(found)


@app.command("force-unlock")
@reports_errors
def force_unlock(
    lock_id: Annotated[str, typer.Argument(metavar="LOCK_ID", help="The id of the lock, exactly.")],
    config: Config = HERE,
    as_json: Json = False,
) -> None:
    """Remove the lock of a command that was killed. Make sure that it was."""
    from omnigraph.cluster.configuration.config import root_of
    from omnigraph.cluster.state.lock import force_unlock as unlock
    from omnigraph.cluster.state.places import place_at

    removed = unlock(place_at(root_of(config)), lock_id)
    if as_json:
        print_json({"unlocked": removed.as_json()})
    else:
        print_text(styled("unlocked ", "green"), f"{removed.lock_id} of `cluster {removed.operation}`")
