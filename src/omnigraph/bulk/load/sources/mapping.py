"""Mapping files: which files are loaded into which types, and which column becomes which property.

::

    nodes:
      Airport: {data: airports.csv, columns: {code: IATA, name: AIRPORT}}
      Person: people.parquet
    edges:
      Flies:
        data: [flights-2015.csv, flights-2016.csv.gz]
        from: ORIGIN
        to: DESTINATION
        columns: {carrier: AIRLINE}

Paths are those of files beside the mapping file. Whatever is wrong is told with its line.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnigraph.bulk.load.sources.description import Source
from omnigraph.errors import OmniError, RequestError
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.lookup import edge_type, node_type

_SECTIONS: Final = ("data", "nodes", "edges")
_WORDS: Final = {
    "data": "data",
    "format": "format",
    "columns": "columns",
    "from": "from_",
    "to": "to",
    "delimiter": "delimiter",
    "quote": "quote",
    "nulls": "nulls",
    "list_separator": "list_separator",
    "names": "names",
}
"""What an entry says, and the argument of a `Source` that it is."""


@dataclass(frozen=True, slots=True)
class LoadMap:
    """What a mapping file names. ``lines`` has the line of each type, by `nodes.TYPE` and `edges.TYPE`."""

    path: str
    data: tuple[str, ...] = ()
    nodes: Mapping[str, Source] = field(default_factory=dict)
    edges: Mapping[str, Source] = field(default_factory=dict)
    lines: Mapping[str, int] = field(default_factory=dict)

    def check(self, catalog: Catalog) -> None:
        """Compare it with a schema; RequestError names the line of what the schema does not have, or needs."""
        for section, sources in (("nodes", self.nodes), ("edges", self.edges)):
            find = node_type if section == "nodes" else edge_type
            for name, source in sources.items():
                try:
                    source.layout(find(catalog, name))
                except OmniError as error:
                    line = self.lines.get(f"{section}.{name}", 0)
                    raise RequestError(f"{self.path}:{line}: {error}" if line else str(error)) from None


def read_map(path: str | os.PathLike[str]) -> LoadMap:
    """A mapping file; RequestError names the line of what is wrong with it."""
    import yaml

    shown = os.fspath(path)
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            root = yaml.compose(file, yaml.SafeLoader)
    except OSError as error:
        raise RequestError(f"{shown}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise RequestError(f"{shown}: it is not UTF-8") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark is not None else 1
        raise RequestError(f"{shown}:{line}: it is not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise RequestError(f"{shown}: it is not YAML: {error}") from None
    return _Reader(shown, Path(path).absolute().parent).read(root)


class _Reader:
    """Reads the nodes of a YAML document, which know their lines."""

    def __init__(self, path: str, folder: Path) -> None:
        self._path = path
        self._folder = folder
        self._lines: dict[str, int] = {}

    def read(self, root: Any) -> LoadMap:
        if root is None:
            raise RequestError(f"{self._path}: it is empty; it has data, nodes and edges")
        sections = dict(self._members(root, "the file", _SECTIONS))
        data = self._paths(sections["data"], "data") if "data" in sections else []
        found = {name: self._sources(name, sections.get(name)) for name in ("nodes", "edges")}
        if not data and not found["nodes"] and not found["edges"]:
            raise RequestError(f"{self._path}: it names nothing to load")
        return LoadMap(self._path, tuple(data), found["nodes"], found["edges"], self._lines)

    def _sources(self, section: str, node: Any) -> dict[str, Source]:
        if node is None:
            return {}
        found: dict[str, Source] = {}
        for name, value in self._members(node, section, None):
            self._lines[f"{section}.{name}"] = value.start_mark.line + 1
            found[name] = self._source(f"{section}.{name}", value)
        return found

    def _source(self, where: str, node: Any) -> Source:
        if self._kind(node) != "map":
            paths = self._paths(node, where)
            return Source(paths[0] if len(paths) == 1 else paths)
        given: dict[str, Any] = {}
        for word, value in self._members(node, where, tuple(_WORDS)):
            given[_WORDS[word]] = self._paths(value, where) if word == "data" else self._value(value)
        if "data" not in given:
            raise self._wrong(node, f"{where} does not say which files: add `data`")
        given["data"] = given["data"][0] if len(given["data"]) == 1 else given["data"]
        try:
            return Source(**given)
        except OmniError as error:
            raise self._wrong(node, f"{where}: {error}") from None

    def _members(self, node: Any, where: str, known: tuple[str, ...] | None) -> Iterator[tuple[str, Any]]:
        if self._kind(node) != "map":
            raise self._wrong(node, f"{where} is a mapping, as `name: …`")
        seen: set[str] = set()
        for key, value in node.value:
            name = str(key.value)
            if known is not None and name not in known:
                close = nearest_name(name, list(known))
                hint = f"did you mean '{close}'?" if close else f"there are {', '.join(known)}"
                raise self._wrong(key, f"{where} has no '{name}'; {hint}")
            if name in seen:
                raise self._wrong(key, f"{where} has '{name}' twice")
            seen.add(name)
            yield name, value

    def _paths(self, node: Any, where: str) -> list[str]:
        found = self._value(node)
        listed = found if isinstance(found, list) else [found]
        if not listed or not all(isinstance(path, str) and path for path in listed):
            raise self._wrong(node, f"{where}: a path is a text, or a list of texts")
        return [path if "://" in path else str(self._folder / path) for path in listed]

    def _value(self, node: Any) -> Any:
        """A value as the file writes it. Names of columns and files are texts, also `2015` and `yes`."""
        kind = self._kind(node)
        if kind == "map":
            return {name: self._value(value) for name, value in self._members(node, "columns", None)}
        if kind == "list":
            return [self._value(item) for item in node.value]
        return node.value

    @staticmethod
    def _kind(node: Any) -> str:
        return {"MappingNode": "map", "SequenceNode": "list"}.get(type(node).__name__, "text")

    def _wrong(self, node: Any, reason: str) -> RequestError:
        return RequestError(f"{self._path}:{node.start_mark.line + 1}: {reason}")


def parse_typed(entry: str) -> tuple[str, Source]:
    """A type and its source, from `TYPE=PATH` or `TYPE=PATH:from=COLUMN,to=COLUMN,PROPERTY=COLUMN`."""
    name, equals, rest = entry.partition("=")
    if not equals or not name or not rest:
        raise RequestError(f"'{entry}' is not written TYPE=PATH or TYPE=PATH:from=COLUMN,to=COLUMN")
    path, words = rest, ""
    head, colon, tail = rest.rpartition(":")
    if colon and head and "=" in tail and "/" not in tail:
        path, words = head, tail
    given: dict[str, str] = {}
    for word in words.split(",") if words else ():
        key, equals, column = word.partition("=")
        if not equals or not key or not column:
            raise RequestError(f"'{word}' in '{entry}' is not written from=COLUMN, to=COLUMN or PROPERTY=COLUMN")
        if key in given:
            raise RequestError(f"'{key}' is given twice in '{entry}'")
        given[key] = column
    start, end = given.pop("from", None), given.pop("to", None)
    return name, Source(path, columns=given or None, from_=start, to=end)
