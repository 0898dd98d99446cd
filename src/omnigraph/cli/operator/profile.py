"""`omnigraph profile`: what the profiles of the configuration point at."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from omnigraph.cli.output import Json, print_json, print_table, reports_errors
from omnigraph.cli.scope.config import Binding, OperatorConfig, read_config
from omnigraph.cli.scope.target import PROFILE
from omnigraph.errors import ConfigInvalid

app = typer.Typer(help="Show the profiles of the configuration.", no_args_is_help=True)


@app.command("list")
@reports_errors
def list_(as_json: Json = False) -> None:
    """List all profiles."""
    config = read_config()
    found = {name: _shown(config, each) for name, each in sorted(config.profiles.items())}
    if as_json:
        listed = [{"name": name, **each} for name, each in found.items()]
        print_json({"path": str(config.path), "profiles": listed})
        return
    keys = ("server", "cluster", "store", "default_graph")
    rows = [(name, *(each[key] or "" for key in keys)) for name, each in found.items()]
    print_table(("profile", "server", "cluster", "store", "graph"), rows)


@app.command()
@reports_errors
def show(
    name: Annotated[
        str | None, typer.Argument(help="The profile. Default: that of $OMNIGRAPH_PROFILE.", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Show one profile."""
    config = read_config()
    wanted = name or os.environ.get(PROFILE)
    if wanted is None:
        raise typer.BadParameter("which profile? Name one, or set $OMNIGRAPH_PROFILE")
    if wanted not in config.profiles:
        raise ConfigInvalid(str(config.path), f"there is no profile '{wanted}'")
    found = {"name": wanted, **_shown(config, config.profiles[wanted])}
    if as_json:
        print_json(found)
    else:
        print_table(("key", "value"), [(key, value) for key, value in found.items() if value is not None])


def _shown(config: OperatorConfig, profile: Binding) -> dict[str, Any]:
    return {
        "server": profile.server,
        "url": config.servers.get(profile.server) if profile.server is not None else None,
        "cluster": profile.cluster,
        "store": profile.store,
        "default_graph": profile.graph,
    }
