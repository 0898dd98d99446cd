"""The verbs of the command line, each imported when it is named, so that no command waits for the others."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from functools import cache
from typing import Any, Final

import typer
from typer.core import TyperGroup

from omnigraph.cli.quick import take_plain_values
from omnigraph.cli.scope.capabilities import CAPABILITIES
from omnigraph.cli.scope.options import capable, take_graph_first, words_behind

VERBS: Final[Mapping[str, str]] = {
    "init": "graph.graphs:init",
    "query": "data.query:query",
    "entity": "data.entity:entity",
    "mutate": "data.mutate:mutate",
    "load": "data.load:load",
    "ingest": "data.load:ingest",
    "export": "data.export:export",
    "jobs": "maintenance.jobs:jobs",
    "doctor": "maintenance.doctor:doctor",
    "repair": "maintenance.repair:repair",
    "clone": "maintenance.clone:clone",
    "backup": "maintenance.backup:backup",
    "backups": "maintenance.backup:backups",
    "restore": "maintenance.backup:restore",
    "embed": "data.embed:embed",
    "index": "maintenance.indices:index",
    "optimize": "maintenance.optimize:optimize",
    "maintain": "maintenance.maintain:maintain",
    "cleanup": "maintenance.cleanup:cleanup",
    "log": "history.log:log",
    "blame": "history.blame:blame",
    "diff": "history.diff:diff",
    "revert": "history.undo:revert",
    "cherry-pick": "history.undo:cherry_pick",
    "reset": "history.undo:reset",
    "cluster": "cluster.commands:app",
    "serve": "server.serve:serve",
    "graphs": "server.graphs:app",
    "queries": "server.queries:app",
    "policy": "server.policy:app",
    "alias": "operator.alias:alias",
    "profile": "operator.profile:app",
    "login": "operator.login:login",
    "logout": "operator.login:logout",
    "snapshot": "graph.graphs:snapshot",
    "lint": "lang.lint:lint",
    "explain": "data.explain:explain",
    "fmt": "lang.fmt:fmt",
    "version": "version:version",
    "schema": "graph.schema:app",
    "branch": "graph.branch:app",
    "tag": "graph.tag:app",
    "commit": "graph.commit:app",
    "changes": "history.changes:app",
    "blob": "data.blob:app",
    "recovery": "maintenance.recovery:app",
}
"""Where the function of each verb is, or the Typer of its own verbs; in the order of `omnigraph --help`."""

_TWO_PLACES: Final = ("clone", "backup", "serve")
"""Verbs whose own words are places too."""


class VerbGroup(TyperGroup):
    """All verbs, as Typer wants them."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = _Imported()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take the words about the graph before the verb as well as behind it."""
        return super().parse_args(ctx, words_behind(args))

    def main(  # type: ignore[override]
        self, args: Any = None, prog_name: str | None = None, **more: Any
    ) -> Any:
        """Run a verb. A usage error of one with `--json` is one JSON object, as any other error of it is."""
        take_plain_values(self)  # here, because Typer adds its options for shells to a group that is made
        words = sys.argv[1:] if args is None else list(args)
        if not more.pop("standalone_mode", True):
            return super().main(args, prog_name, standalone_mode=False, **more)
        if "--json" not in words:
            return super().main(args, prog_name, **more)
        from typer._click.exceptions import ClickException

        try:
            code = super().main(args, prog_name, standalone_mode=False, **more)
        except ClickException as error:
            sys.stdout.write(json.dumps(_usage(error), indent=2, ensure_ascii=False) + "\n")
            sys.exit(error.exit_code)
        sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Any) -> dict[str, str]:
    return {"error": error.format_message(), "code": "usage", "outcome": "nothing_written"}


class _Imported(MutableMapping[str, Any]):
    """The verbs as Typer's commands, each made when it is first looked up."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _command(name, VERBS[name])
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in VERBS

    def __iter__(self) -> Iterator[str]:
        return iter(VERBS)

    def __len__(self) -> int:
        return len(VERBS)


@cache
def _command(name: str, place: str) -> Any:
    """The command of a verb, or the group of commands if it has verbs of its own. Making it takes longer than most
    of what it does, so a process that runs several commands makes each once."""
    module, _, member = place.partition(":")
    found = getattr(importlib.import_module(f"omnigraph.cli.{module}"), member)
    holder = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    command = typer.main.get_group(holder).commands[name]
    for each in getattr(command, "commands", {"": command}).values():
        capable(each, CAPABILITIES[name])
        if name not in _TWO_PLACES:
            take_graph_first(each)
    for each in (command, *getattr(command, "commands", {}).values()):
        take_plain_values(each)
    return command
