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
_SECTIONS: Final = ("operator", "servers", "defaults", "profiles", "aliases")


@dataclass(frozen=True, slots=True)
class Binding:
    """What a profile, or the defaults, point at: a server or a store, and perhaps a graph of the server."""

    server: str | None = None
    store: str | None = None
    graph: str | None = None


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
    profiles: Mapping[str, Binding] = field(default_factory=dict)
    aliases: Mapping[str, Alias] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


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
    import yaml

    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigInvalid(str(path), f"it is not YAML: {error}") from None
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
        defaults = self._mapping("defaults", top.get("defaults"), ("output", "server", "store", "default_graph"))
        output = self._text("defaults.output", defaults.get("output"))
        if output is not None and output not in FORMATS:
            raise self._wrong(f"defaults.output is '{output}'; there are {', '.join(FORMATS)}")
        profiles = {
            name: self._binding(
                f"profiles.{name}",
                self._mapping(f"profiles.{name}", value, ("server", "store", "default_graph")),
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
        return OperatorConfig(self._path, actor, servers, bound, output, profiles, aliases, unknown)

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
        server, store, graph = (
            self._text(f"{where}.{key}", found.get(key)) for key in ("server", "store", "default_graph")
        )
        return Binding(server, store, graph)

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
