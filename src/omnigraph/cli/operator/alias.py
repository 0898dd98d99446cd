"""`omnigraph alias`: a stored query under a short name of the operator's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from omnigraph.cli.output import Json, reports_errors
from omnigraph.cli.results import Format, OutFile, ResultFormat, chosen_format, write_result
from omnigraph.cli.scope.config import Alias, read_config
from omnigraph.cli.scope.target import Given, resolve
from omnigraph.cli.sources import Params, ParamsFile, read_parameters
from omnigraph.cli.stores import open_target
from omnigraph.errors import ConfigInvalid, QueryNotFound

if TYPE_CHECKING:
    from omnigraph.remote.graph import RemoteGraph


@reports_errors
def alias(
    name: Annotated[str, typer.Argument(help="An alias of the configuration.")],
    values: Annotated[
        list[str] | None, typer.Argument(help="Values of the parameters that the alias lists, in their order.")
    ] = None,
    params: Params = None,
    params_file: ParamsFile = None,
    form: ResultFormat = None,
    out: OutFile = None,
    as_json: Json = False,
) -> None:
    """Run the stored query of an alias on its server, and print its rows.

    Values of --params win over those behind the alias, and these over those in the configuration.
    """
    config = read_config()
    found = config.aliases.get(name)
    if found is None:
        known = ", ".join(sorted(config.aliases)) or "none"
        raise ConfigInvalid(str(config.path), f"there is no alias '{name}'; it has {known}")
    given = read_parameters(params, params_file) or {}
    wanted = form or (Format(found.format) if found.format is not None and not as_json else None)
    chosen = chosen_format(wanted, as_json, out)
    if len(values or []) > len(found.args):
        raise typer.BadParameter(f"alias '{name}' takes no more values than {', '.join(found.args) or 'none'}")
    target = resolve(Given(server=_server(name, found), graph=found.graph))
    graph = cast("RemoteGraph", open_target(target, read_only=True))
    positional = _typed(graph, found.query, dict(zip(found.args, values or [], strict=False)))
    write_result(graph.invoke(found.query, {**found.params, **positional, **given}), chosen, out)


def _server(name: str, found: Alias) -> str:
    config = read_config()
    server = found.server or config.defaults.server
    if server is None:
        raise ConfigInvalid(str(config.path), f"aliases.{name} names no server, and there is no default one")
    return server


def _typed(graph: RemoteGraph, query: str, values: Mapping[str, str]) -> dict[str, Any]:
    """Words as values of the query's parameters: texts stay texts, and everything else is JSON if it can be."""
    if not values:
        return {}
    known = {each["name"]: each for each in graph.queries()}
    if query not in known:
        raise QueryNotFound(query)
    kinds = {each["name"]: each["kind"] for each in known[query]["params"]}
    return {name: text if kinds.get(name) in _TEXTS else _json(text) for name, text in values.items()}


_TEXTS = ("string", "date", "datetime")


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
