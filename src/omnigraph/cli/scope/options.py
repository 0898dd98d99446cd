"""The words about the graph that every verb of a capability takes, without naming them in its own parameters.

`capable` adds them to a verb, and `given_here` tells a running verb what was said. A verb that cannot use one of
them refuses it by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from omnigraph.cli.scope.capabilities import Capability
from omnigraph.cli.scope.target import Given

REPORTING: Final = frozenset(
    {
        "blob put",
        "backup",
        "branch create",
        "branch delete",
        "branch merge",
        "cherry-pick",
        "clone",
        "cluster apply",
        "cluster approve",
        "cluster force-unlock",
        "cluster import",
        "cluster refresh",
        "embed",
        "export",
        "index",
        "ingest",
        "init",
        "load",
        "maintain",
        "mutate",
        "optimize",
        "reset",
        "restore",
        "revert",
        "schema apply",
        "tag create",
        "tag delete",
    }
)
"""Commands that change something and print what they have done. Others print what they were asked for."""
_ANYWHERE: Final = frozenset({"--as", "--server", "--graph", "--profile", "--store", "--cluster"})
_FLAGS: Final = frozenset({"--yes", "--quiet", "--json"})
"""Words that may stand before the verb, with a value and without."""
_ADDRESS: Final = re.compile(r"\.omni/?$|^[a-z0-9]+://")
_SAID: Final = "omnigraph.scope"
_WHY: Final[Mapping[Capability, str]] = {
    Capability.DIRECT: "it works on the store itself; name that with --store",
    Capability.CONTROL: "it works on a whole cluster; name its folder with --config",
    Capability.LOCAL: "it works on files, not on a graph",
    Capability.SERVED: "it asks a server; name that with --server",
    Capability.ANY: "",
}
_TAKES: Final[Mapping[Capability, frozenset[str]]] = {
    Capability.ANY: frozenset({"server", "cluster", "graph", "profile", "yes", "quiet"}),
    Capability.SERVED: frozenset({"server", "profile"}),
    Capability.DIRECT: frozenset({"cluster", "graph", "profile", "yes", "quiet"}),
    Capability.CONTROL: frozenset({"quiet"}),
    Capability.LOCAL: frozenset(),
}


def _words(
    server: Annotated[
        str | None, typer.Option("--server", metavar="NAME|URL", help="The server that has the graph.")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="NAME|PLACE", help="The directory or bucket that has the graph."),
    ] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", metavar="ID", help="Which graph of the server or cluster.")
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="A profile of the configuration.")
    ] = None,
    yes: Annotated[
        bool,
        typer.Option("--yes", help="Agree to lose what is on main, in a bucket or on a server."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", help="Print only mistakes and what was asked for: no progress, no report.")
    ] = False,
) -> None:
    """Only its options are used."""


def capable(command: Any, capability: Capability) -> None:
    """Give a verb the words of its capability, unless it has a word of its own by that name."""
    own = {name for each in command.params for name in (*each.opts, f"--{each.name}")}
    holder = typer.Typer(add_completion=False)
    holder.command()(_words)
    options: list[Any] = typer.main.get_command(holder).params
    for option in options:
        if option.name == "help" or own & set(option.opts):
            continue
        if option.name in _TAKES[capability]:
            option.callback = _note
        else:
            option.hidden = True
            option.callback = _refuse(_WHY[capability])
        option.expose_value = False
        command.params.append(option)


def take_graph_first(command: Any) -> None:
    """Let a verb with words of its own take a graph as its first word, as all other verbs do.

    That is one which ends in `.omni` or has a scheme: no name of a query, branch, tag, type or commit does.
    """
    has_store = any("--store" in each.opts for each in command.params)
    words = [each.name for each in command.params if each.param_type_name == "argument"]
    if not has_store or not words or "uri" in words:
        return
    parse = command.parse_args

    def parse_args(ctx: Any, args: list[str]) -> Any:
        is_graph = bool(args) and not args[0].startswith("-") and _ADDRESS.search(args[0])
        if is_graph and any(word.partition("=")[0] in ("--store", "--uri") for word in args):
            raise typer.BadParameter(f"two graphs are named: {args[0]} and that of --store", ctx)
        return parse(ctx, ["--store", *args] if is_graph else args)

    command.parse_args = parse_args


def words_behind(args: Sequence[str]) -> list[str]:
    """The words of a command line with those about the graph behind the verb, where they may stand as well."""
    taken: list[str] = []
    rest = list(args)
    while rest:
        word, joined, _ = rest[0].partition("=")
        if word in _ANYWHERE and not joined and len(rest) > 1:
            taken += [rest.pop(0), rest.pop(0)]
        elif word in _FLAGS or (word in _ANYWHERE and joined):
            taken.append(rest.pop(0))
        else:
            break
    if not rest:
        return list(args)
    end = rest.index("--") if "--" in rest else len(rest)
    return [*rest[:end], *taken, *rest[end:]]


def _note(ctx: typer.Context, option: Any, value: Any) -> Any:
    if value:
        ctx.meta.setdefault(_SAID, {})[option.name] = value
    return value


def _refuse(why: str) -> Any:
    def refuse(ctx: typer.Context, option: Any, value: Any) -> Any:
        if value:
            raise typer.BadParameter(f"`{ctx.info_name}` takes no {option.opts[0]}: {why}")
        return value

    return refuse


def said() -> dict[str, Any]:
    """The words of the running verb, by name."""
    from typer._click.globals import get_current_context

    context = get_current_context(silent=True)
    return {} if context is None else context.meta.get(_SAID, {})


def is_silenced() -> bool:
    """Was the running verb told to be quiet, and are its lines only about what it has done?"""
    from typer._click.globals import get_current_context

    context = get_current_context(silent=True)
    if context is None or not said().get("quiet"):
        return False
    return context.command_path.partition(" ")[2] in REPORTING and not context.params.get("preview")


def given_here(*stores: str | None) -> Given:
    """What the running verb was told about the graph, with the addresses that are parameters of its own."""
    words = said()
    named = tuple(address for address in stores if address)
    return Given(named, words.get("server"), words.get("graph"), words.get("profile"), words.get("cluster"))
