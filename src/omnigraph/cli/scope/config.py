"""The operator's configuration: servers, profiles, defaults and aliases of the person at the keyboard."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import ConfigInvalid
from omnigraph.records import dataclass

HOME: Final = "OMNIGRAPH_HOME"
FILE: Final = "config.yaml"
FORMATS: Final = ("table", "kv", "csv", "jsonl", "json")
_WARNED: Final[set[str]] = set()
LAYOUTS: Final = ("truncate", "wrap")
_NARROWEST: Final = 4
_DEFAULTS: Final = (
    "output",
    "server",
    "store",
    "default_graph",
    "table_max_column_width",
    "table_cell_layout",
)
_SECTIONS: Final = ("operator", "servers", "clusters", "defaults", "profiles", "aliases")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a profile, or the defaults, point at; ``graph`` is one of the server or cluster."""

    server: str | None = None
    store: str | None = None
    graph: str | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class TableLook:
    """How wide a cell of a table can be, and whether a text that is wider goes on in the next line."""

    max_column_width: int = 80
    is_wrapped: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """A short name for a stored query that reads, on a server."""

    query: str
    server: str | None = None
    graph: str | None = None
    args: tuple[str, ...] = ()
    """The parameters that the words behind the alias give values to, in their order."""
    params: Mapping[str, Any] = field(default_factory=dict)
    format: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorConfig:
    """Everything the file says. ``unknown`` are the keys that mean nothing, which are warned about."""

    path: Path
    actor: str | None = None
    servers: Mapping[str, str] = field(default_factory=dict)
    """The URL of each server."""
    defaults: Binding = Binding()
    output: str | None = None
    tables: TableLook = TableLook()
    profiles: Mapping[str, Binding] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    clusters: Mapping[str, str] = field(default_factory=dict)
    """The directory, or the place in a bucket, that holds the graphs of each cluster."""


def home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the configuration and the credentials."""
    return Path(environment[HOME]) if environment.get(HOME) else Path.home() / ".omnigraph"


def read_config(environment: Mapping[str, str] = os.environ) -> OperatorConfig:
    """The configuration; an empty one if there is no file. ConfigInvalid says what is wrong with the file."""
    path = home(environment) / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return OperatorConfig(path)
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigInvalid(str(path), f"it cannot be read: {error}") from None
    from omnigraph.policy.documents import read_yaml

    try:
        found = read_yaml(text)
    except ValueError as error:
        raise ConfigInvalid(str(path), str(error)) from None
    config = _Reader(path).config({} if found is None else found)
    for key in config.unknown:
        _warn_once(f"{path} has an unknown key '{key}'; it is ignored")
    return config


def _warn_once(message: str) -> None:
    from omnigraph.cli.output import print_warning

    if message not in _WARNED:
        _WARNED.add(message)
        print_warning(message)


class _Reader:
    """Makes a configuration of what YAML gave, and collects the keys that it does not know."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unknown: list[str] = []

    def config(self, found: object) -> OperatorConfig:
        top = self._mapping("the file", found, _SECTIONS)
        operator = self._mapping("operator", top.get("operator"), ("actor",))
        servers = {
            name: self._url(name, self._mapping(f"servers.{name}", value, ("url",)))
            for name, value in self._named("servers", top.get("servers")).items()
        }
        clusters = {
            name: self._root(name, self._mapping(f"clusters.{name}", value, ("root",)))
            for name, value in self._named("clusters", top.get("clusters")).items()
        }
        defaults = self._mapping("defaults", top.get("defaults"), _DEFAULTS)
        output = self._text("defaults.output", defaults.get("output"))
        if output is not None and output not in FORMATS:
            raise self._wrong(f"defaults.output is '{output}'; there are {', '.join(FORMATS)}")
        profiles = {
            name: self._binding(
                f"profiles.{name}",
                self._mapping(f"profiles.{name}", value, ("server", "cluster", "store", "default_graph")),
            )
            for name, value in self._named("profiles", top.get("profiles")).items()
        }
        aliases = {
            name: self._alias(name, value) for name, value in self._named("aliases", top.get("aliases")).items()
        }
        bound = self._binding("defaults", defaults)
        if bound.server is not None and bound.store is not None:
            raise self._wrong("defaults has both server and store; keep one")
        if bound.store is not None and bound.graph is not None:
            raise self._wrong("defaults.default_graph is a graph of a server, and defaults.store is one graph")
        actor = self._text("operator.actor", operator.get("actor"))
        unknown = tuple(self._unknown)
        look = self._tables(defaults)
        return OperatorConfig(
            self._path, actor, servers, bound, output, look, profiles, aliases, unknown, clusters
        )

    def _tables(self, defaults: Mapping[str, Any]) -> TableLook:
        width = defaults.get("table_max_column_width", TableLook().max_column_width)
        if type(width) is not int or width < _NARROWEST:
            raise self._wrong(f"defaults.table_max_column_width is a whole number of at least {_NARROWEST}")
        layout = self._text("defaults.table_cell_layout", defaults.get("table_cell_layout")) or LAYOUTS[0]
        if layout not in LAYOUTS:
            raise self._wrong(f"defaults.table_cell_layout is '{layout}'; there are {', '.join(LAYOUTS)}")
        return TableLook(width, layout == "wrap")

    def _alias(self, name: str, value: object) -> Alias:
        where = f"aliases.{name}"
        found = self._mapping(where, value, ("query", "server", "graph", "args", "params", "format"))
        query = self._text(f"{where}.query", found.get("query"))
        if query is None:
            raise self._wrong(f"{where} names no query")
        args = found.get("args") or []
        if not isinstance(args, list) or not all(isinstance(each, str) for each in args):
            raise self._wrong(f"{where}.args is a list of parameters' names")
        form = self._text(f"{where}.format", found.get("format"))
        if form is not None and form not in FORMATS:
            raise self._wrong(f"{where}.format is '{form}'; there are {', '.join(FORMATS)}")
        params = self._named(f"{where}.params", found.get("params"))
        server, graph = (self._text(f"{where}.{key}", found.get(key)) for key in ("server", "graph"))
        return Alias(query, server, graph, tuple(args), params, form)

    def _binding(self, where: str, found: Mapping[str, Any]) -> Binding:
        server, store, graph, cluster = (
            self._text(f"{where}.{key}", found.get(key)) for key in ("server", "store", "default_graph", "cluster")
        )
        return Binding(server, store, graph, cluster)

    def _root(self, name: str, found: Mapping[str, Any]) -> str:
        root = self._text(f"clusters.{name}.root", found.get("root"))
        if root is None or root.startswith(("http://", "https://")):
            raise self._wrong(f"clusters.{name}.root is a directory or an s3:// address")
        return root.rstrip("/")

    def _url(self, name: str, found: Mapping[str, Any]) -> str:
        url = self._text(f"servers.{name}.url", found.get("url"))
        if url is None or not url.startswith(("http://", "https://")):
            raise self._wrong(f"servers.{name}.url is an http:// or https:// URL")
        return url.rstrip("/")

    def _mapping(self, where: str, found: object, known: tuple[str, ...]) -> Mapping[str, Any]:
        given = self._named(where, found)
        prefix = "" if where == "the file" else f"{where}."
        self._unknown += [f"{prefix}{key}" for key in given if key not in known]
        return given

    def _named(self, where: str, found: object) -> Mapping[str, Any]:
        if found is None:
            return {}
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise self._wrong(f"{where} is a mapping of names")
        return found

    def _text(self, where: str, found: object) -> str | None:
        if found is None:
            return None
        if not isinstance(found, str) or not found.strip():
            raise self._wrong(f"{where} is a text")
        return found

    def _wrong(self, reason: str) -> ConfigInvalid:
        return ConfigInvalid(str(self._path), reason)
