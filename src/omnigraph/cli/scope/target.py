"""Scope resolution: flags, environment and configuration become one target.

The first of these that says something decides: an address on the command line (positional, `--store`, `--server`,
`--cluster`),
`--profile`, `$OMNIGRAPH_STORE`, `$OMNIGRAPH_PROFILE`, the defaults of the configuration, the only `*.omni` here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import typer

from omnigraph.cli.scope.config import Binding, OperatorConfig, read_config
from omnigraph.cli.scope.credentials import token_of
from omnigraph.errors import ConfigInvalid
from omnigraph.records import dataclass

STORE: Final = "OMNIGRAPH_STORE"
PROFILE: Final = "OMNIGRAPH_PROFILE"
_WEB: Final = ("http://", "https://")


AppliedGraphs = Callable[[str], Mapping[str, str] | None]
"""Tells where the graphs of a cluster with a ledger are, by their names; None if it has no ledger."""


@dataclass(frozen=True, slots=True)
class Given:
    """What the command line says about the graph."""

    stores: Sequence[str] = ()
    """Positional addresses and `--store`; naming one graph twice is no mistake."""
    server: str | None = None
    graph: str | None = None
    profile: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The graph that a command works on: its storage, or a server that has it."""

    address: str
    is_server: bool = False
    graph: str | None = None
    """Which graph of the server."""
    server: str | None = None
    """The server's name in the configuration."""
    origin: str | None = None
    """What named the target, if the command line did not."""

    @property
    def is_local(self) -> bool:
        """Is it on this machine's disk?"""
        return not self.is_server and "://" not in self.address.removeprefix("file://")

    def token(self) -> str | None:
        """The token for the server, if there is one."""
        return token_of(self.server)

    def __str__(self) -> str:
        return self.address if self.graph is None else f"{self.address}/graphs/{self.graph}"


def no_ledgers(_: str) -> Mapping[str, str] | None:
    """Every cluster is a folder of graphs: no ledger is looked for."""
    return None


def resolve(
    given: Given, environment: Mapping[str, str] = os.environ, applied_graphs: AppliedGraphs = no_ledgers
) -> Target:
    """The one target that is meant; a wrong or a missing word is a usage error.

    ``applied_graphs`` looks for the ledger of a cluster, which may be in a bucket.
    """
    stores = sorted({address for address in given.stores if address})
    if given.server is not None and stores:
        raise typer.BadParameter(f"two graphs are named: {stores[0]} and --server {given.server}")
    if len(stores) > 1:
        raise typer.BadParameter(f"two graphs are named: {' and '.join(stores)}")
    if given.cluster is not None and (given.server is not None or stores):
        other = stores[0] if stores else f"--server {given.server}"
        raise typer.BadParameter(f"two graphs are named: {other} and one of --cluster {given.cluster}")
    if given.cluster is not None:
        return _cluster(given.cluster, given.graph, read_config(environment), applied_graphs)
    if stores:
        return _store(stores[0], given, None)
    if given.server is not None:
        return _server(given.server, given.graph, read_config(environment), None)
    if given.profile is not None:
        return _profile(
            given.profile, given, read_config(environment), f"--profile {given.profile}", applied_graphs
        )
    if environment.get(STORE):
        return _store(environment[STORE], given, f"${STORE}")
    config = read_config(environment)
    if environment.get(PROFILE):
        return _profile(environment[PROFILE], given, config, f"${PROFILE}={environment[PROFILE]}", applied_graphs)
    if config.defaults.server is not None or config.defaults.store is not None:
        return _bound(config.defaults, given, config, f"defaults of {config.path}", applied_graphs)
    return _store(_only_here(), given, None)


def _store(address: str, given: Given, origin: str | None) -> Target:
    if address.startswith(_WEB):
        raise typer.BadParameter(f"{address} is a server; name it with --server {address}")
    if given.graph is not None:
        raise typer.BadParameter(f"{address} is one graph; --graph chooses among those of a server or cluster")
    return Target(address, origin=origin)


def _cluster(
    named: str,
    graph: str | None,
    config: OperatorConfig,
    applied_graphs: AppliedGraphs,
    origin: str | None = None,
) -> Target:
    """A graph of a cluster: a directory or a place in a bucket, named by the configuration or by itself."""
    root = config.clusters.get(named, named.rstrip("/"))
    applied = applied_graphs(root)
    if applied is not None:
        return _of_cluster(root, graph, applied, origin)
    if graph is not None:
        return Target(f"{root}/{graph}.omni", origin=origin)
    here = sorted(path.stem for path in Path(root.removeprefix("file://")).glob("*.omni"))
    if len(here) == 1:
        return Target(f"{root}/{here[0]}.omni", origin=origin)
    found = f"it has {', '.join(here)}" if here else "it cannot be told which ones it has"
    raise typer.BadParameter(f"which graph of {root}? {found}; name one with --graph")


def _of_cluster(root: str, graph: str | None, applied: Mapping[str, str], origin: str | None) -> Target:
    """A graph that a cluster has applied: the one that is named, or the only one."""
    wanted = next(iter(applied)) if graph is None and len(applied) == 1 else graph
    if wanted is None or wanted not in applied:
        what = "which graph of" if graph is None else f"there is no graph '{graph}' in"
        raise typer.BadParameter(f"{what} {root}? it has {', '.join(applied) or 'none'}; name one with --graph")
    return Target(applied[wanted], origin=origin)


def _server(named: str, graph: str | None, config: OperatorConfig, origin: str | None) -> Target:
    """A server by its name in the configuration or by its URL, which may end in the name of a graph."""
    if named in config.servers:
        return Target(config.servers[named], True, graph, named, origin)
    if not named.startswith(_WEB):
        known = ", ".join(sorted(config.servers)) or "none"
        raise typer.BadParameter(f"there is no server '{named}' in {config.path}; it has {known}")
    return Target(named, True, graph, server_of(named, config.servers), origin)


def server_of(url: str, servers: Mapping[str, str]) -> str | None:
    """The server whose URL is the longest beginning of a URL, up to a `/`. Its token is sent nowhere else."""
    fitting = [name for name, known in servers.items() if url == known or url.startswith(f"{known}/")]
    return max(fitting, key=lambda name: len(servers[name]), default=None)


def _profile(
    name: str, given: Given, config: OperatorConfig, origin: str, applied_graphs: AppliedGraphs
) -> Target:
    found = config.profiles.get(name)
    if found is None:
        known = ", ".join(sorted(config.profiles)) or "none"
        raise typer.BadParameter(f"there is no profile '{name}' in {config.path}; it has {known}")
    if [found.server, found.cluster, found.store].count(None) != 2:
        raise ConfigInvalid(str(config.path), f"profiles.{name} names exactly one of server, cluster and store")
    return _bound(found, given, config, origin, applied_graphs)


def _bound(
    binding: Binding, given: Given, config: OperatorConfig, origin: str, applied_graphs: AppliedGraphs
) -> Target:
    if binding.server is not None:
        return _server(binding.server, given.graph or binding.graph, config, origin)
    if binding.cluster is not None:
        return _cluster(binding.cluster, given.graph or binding.graph, config, applied_graphs, origin)
    assert binding.store is not None  # noqa: S101  callers have looked
    return _store(binding.store, given, origin)


def _only_here() -> str:
    here = sorted(str(path) for path in Path().glob("*.omni"))
    if len(here) == 1:
        return here[0]
    found = f"this directory has {', '.join(here)}" if here else "this directory has no *.omni"
    raise typer.BadParameter(f"which graph? {found}; name one with --store or --server")
