"""What a caller passed to a load, sorted: files with what is in them, data of this process, DataFrames of Spark.

Everything is checked against the schema here, before a row is read: types, properties, columns, ends and keys.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypeGuard

from omnigraph.bulk.load.sources.description import Location, Source, source_of
from omnigraph.bulk.load.sources.files import SourceFile, absolute, listed, recognised
from omnigraph.bulk.load.sources.opening import column_names, schema_of
from omnigraph.errors import RequestError, SourceUnusable
from omnigraph.formats.dialect import DELIMITERS, Layout
from omnigraph.formats.encoding import TABLE_KEY
from omnigraph.formats.format import Format, format_named
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import edge_type, node_type


@dataclass(frozen=True, slots=True)
class TypedData:
    """Rows of one type that are no files: held by this process, or a DataFrame of Spark."""

    entity: EntityType
    source: Source
    layout: Layout

    @property
    def name(self) -> str:
        """The name of the source in errors."""
        return f"<{type(self.source.data).__name__} of {self.entity.name}>"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a load: files, rows that this process holds, and DataFrames of Spark."""

    files: list[SourceFile] = field(default_factory=list)
    held: list[TypedData] = field(default_factory=list)
    frames: list[TypedData] = field(default_factory=list)

    @property
    def file_bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files)


def find_sources(
    catalog: Catalog,
    options: Mapping[str, str],
    data: Location | Sequence[Location] | None,
    nodes: Mapping[str, Any] | None = None,
    edges: Mapping[str, Any] | None = None,
) -> Sources:
    """Everything that a caller passed, checked against the schema. ``options`` are those of the graph's store."""
    typed: list[tuple[EntityType, Source]] = []
    typed += [(node_type(catalog, name), source_of(given)) for name, given in (nodes or {}).items()]
    typed += [(edge_type(catalog, name), source_of(given)) for name, given in (edges or {}).items()]
    described = [TypedData(entity, source, source.layout(entity)) for entity, source in typed]
    locations = [] if data is None else [data] if isinstance(data, str | os.PathLike) else list(data)
    found = Sources(find_files(locations, catalog, options))
    for one in described:
        if are_locations(one.source.data):
            found.files.extend(typed_files(one, options))
        else:
            (found.frames if is_frame(one.source.data) else found.held).append(one)
    if not (found.files or described):
        raise RequestError("nothing to load: give records, files, or rows by type as nodes={…} and edges={…}")
    return found


def is_frame(data: object) -> bool:
    """Is it a DataFrame of Spark?"""
    return hasattr(data, "mapInArrow")


def are_locations(data: object) -> TypeGuard[Location | Sequence[Location]]:
    """Is it the place of a file, or a list of such places?"""
    if isinstance(data, str | os.PathLike):
        return True
    return isinstance(data, list | tuple) and bool(data) and all(isinstance(e, str | os.PathLike) for e in data)


def find_files(locations: Iterable[Location], catalog: Catalog, options: Mapping[str, str]) -> list[SourceFile]:
    """The files at some locations, each once; those of a directory or a glob in the order of their names."""
    found: dict[str, SourceFile] = {}
    for location in locations:
        text = os.fspath(location)
        named = {text, str(absolute(text))}
        for name, size in listed(text, options):
            otherwise = Format.JSONL if name in named else None
            found.setdefault(name, recognised(name, size, options, otherwise=otherwise))
    return [_typed(file, catalog) if file.format.is_table else file for file in found.values()]


def typed_files(data: TypedData, options: Mapping[str, str]) -> list[SourceFile]:
    """The files of a source, all of which hold rows of one type."""
    given = data.source.data
    places = [given] if isinstance(given, str | os.PathLike) else given
    kind = None if data.source.format is None else format_named(data.source.format)
    found: dict[str, SourceFile] = {}
    for place in places:
        for name, size in listed(os.fspath(place), options):
            file = recognised(name, size, options, otherwise=None, given=kind)
            dialect = data.source.dialect(file.format)
            found.setdefault(name, _laid_out(replace(file, dialect=dialect), data.entity, data.layout))
    return list(found.values())


def _laid_out(file: SourceFile, entity: EntityType, layout: Layout) -> SourceFile:
    """A file of one type with its columns, which have to be there and fit the type."""
    names = column_names(file)
    if file.format is Format.JSONL:
        columns = layout.members(entity, names)
    else:
        _require_delimiter(file, names, layout)
        columns = layout.columns(entity, names, file.name)
    return replace(
        file, table_key=entity.table_key, columns=columns, names=names, ignores_others=not layout.is_all
    )


def _require_delimiter(file: SourceFile, names: Sequence[str], layout: Layout) -> None:
    """Refuse CSV whose header is one name that has another delimiter in it, as then its rows are one cell each."""
    if not file.format.is_delimited or len(names) != 1 or names[0] in dict(layout.chosen).values():
        return
    other = next((mark for mark in DELIMITERS if mark in names[0] and mark != file.dialect.delimiter), None)
    if other is not None:
        reason = f"its header {names[0]!r:.60} is one column, as {file.dialect.delimiter!r} is the delimiter"
        remedy = (
            f"`delimiter: {json.dumps(other)}` in a mapping file, or Source(…, delimiter={other!r}), says another"
        )
        raise SourceUnusable(file.name, f"{reason}; {remedy}")


def _typed(file: SourceFile, catalog: Catalog) -> SourceFile:
    """A file of rows with the type of them, from its metadata or from the folder it is in."""
    stored = None if file.format.is_delimited else (schema_of(file).metadata or {}).get(TABLE_KEY)
    key = stored.decode(errors="replace") if stored is not None else _type_of_folder(file.name)
    known = {f"node:{name}" for name in catalog.nodes} | {f"edge:{name}" for name in catalog.edges}
    if key not in known:
        reason = (
            f"its rows are of {key}, which the schema has not" if key else "it does not say the type of its rows"
        )
        remedy = "put it below nodes/TYPE or edges/TYPE, or name its type: --nodes TYPE=PATH, --edges TYPE=PATH"
        raise SourceUnusable(file.name, f"{reason}; {remedy}")
    entity, source = catalog.entity(key), Source(file.name)
    return _laid_out(replace(file, dialect=source.dialect(file.format)), entity, Layout(key))


def _type_of_folder(name: str) -> str | None:
    """The type that a path names: the part below the innermost folder `nodes` or `edges`."""
    kinds = {"nodes": "node", "edges": "edge"}
    for folder, inner in reversed(list(pairwise(name.split("/")))):
        if folder in kinds:
            return f"{kinds[folder]}:{inner.partition('.')[0]}"
    return None
