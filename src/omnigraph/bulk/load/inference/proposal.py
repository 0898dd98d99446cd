"""The proposal: a schema as text, for a person to edit, and how the data it was made from is loaded into it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from omnigraph.bulk.load.inference.relations import Reference, Relations, Table, relate
from omnigraph.bulk.load.inference.samples import Location, Sample, read_samples
from omnigraph.bulk.load.inference.types import NOTHING
from omnigraph.bulk.load.sources.description import Source
from omnigraph.formats.dialect import PLAIN
from omnigraph.formats.format import Format, format_of
from omnigraph.lang.schema.format import format_schema

DEFAULT_ROWS: Final = 100_000
_RESERVED: Final = {"node": frozenset({"id", "src", "dst"}), "edge": frozenset({"id", "src", "dst", "from", "to"})}


@dataclass(frozen=True)
class ProposedSchema:
    """A schema that fits some data, with its sources by type: `load(nodes=found.nodes, edges=found.edges, …)`.

    ``records`` are files of JSON Lines whose records name their types themselves; they are the ``data`` of a load.
    """

    schema: str
    nodes: Mapping[str, Source]
    edges: Mapping[str, Source]
    records: tuple[str, ...] = ()

    def mapping(self, folder: str | os.PathLike[str] = ".") -> str:
        """The text of a mapping file in that folder, for `omnigraph load --map`."""
        import yaml

        found: dict[str, Any] = {}
        if self.records:
            found["data"] = [_shown(path, folder) for path in self.records]
        for name, sources in (("nodes", self.nodes), ("edges", self.edges)):
            if sources:
                found[name] = {kind: _entry(source, folder) for kind, source in sources.items()}
        return yaml.safe_dump(found, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)


def infer_schema(
    data: Location | Sequence[Location] | Mapping[str, Any],
    *,
    rows: int = DEFAULT_ROWS,
    storage_options: Mapping[str, str] | None = None,
) -> ProposedSchema:
    """Propose a schema from the first ``rows`` of files: CSV, Parquet or JSON Lines, on disk or `s3://`.

    Each file is a type, named after it; ``data`` may also be files or Arrow data by type. What tells rows apart
    becomes a key, and what refers to keys of other types an edge. All of it is a guess for a person to edit.
    """
    return propose(relate(read_samples(data, rows, storage_options or {})))


def propose(relations: Relations) -> ProposedSchema:
    """The proposal for tables that are nodes and edges."""
    lines = ["// Proposed from data. Names, types, keys and edges are guesses: edit them.", ""]
    nodes: dict[str, Source] = {}
    edges: dict[str, Source] = {}
    for name, table in relations.nodes.items():
        names = _property_names(table.guesses, "node", name)
        lines += [f"node {name} {{", *_properties(table, names, table.guesses), "}", ""]
        if table.sample.kind is None:
            nodes[name] = _source(table, columns=_renamed(names, table.guesses))
    for name, (table, source, target) in relations.edges.items():
        others = {
            column: guess for column, guess in table.guesses.items() if not _is_end(table, column, source, target)
        }
        names = _property_names(others, "edge", name)
        body = [*_properties(table, names, others), *_edge_key(table, source, target, names)]
        body += [_unknown_ends(source, target)]
        lines += [f"edge {name}: {source.target} -> {target.target} {{", *filter(None, body), "}", ""]
        if table.sample.kind is None:
            columns = _renamed(names, others)
            edges[name] = _source(table, columns=columns, from_=source.column, to=target.column)
    for name, reference in _pairs(relations):
        table = relations.nodes[name]
        edge = _edge_name(name, reference)
        guess = table.guesses[reference.column]
        if guess.is_nullable or table.key is None or table.sample.kind is not None:
            lines += [f"// {name}.{reference.column} refers to {reference.target}; perhaps an edge {edge}", ""]
            continue
        lines += [f"edge {edge}: {name} -> {reference.target} {{ @key(src, dst) }}", ""]
        edges[edge] = _source(table, columns={}, from_=table.key, to=reference.column)
    tables = chain(relations.nodes.values(), (edge[0] for edge in relations.edges.values()))
    records = dict.fromkeys(
        str(p) for table in tables if table.sample.kind is not None for p in table.sample.sources
    )
    return ProposedSchema(format_schema("\n".join(lines)), nodes, edges, tuple(records))


def _pairs(relations: Relations) -> Iterable[tuple[str, Reference]]:
    return ((name, reference) for name, found in relations.references.items() for reference in found)


def _edge_name(name: str, reference: Reference) -> str:
    """A name for the edges that a column stands for: `manager_id` of Person is `PersonManager`."""
    bare = re.sub(r"(?i)[_-]?(id|code|key)$", "", reference.column) or reference.target
    words = re.findall(r"[A-Za-z0-9]+", bare) or [reference.target]
    return name + "".join(word[0].upper() + word[1:] for word in words)


def _is_end(table: Table, column: str, source: Reference, target: Reference) -> bool:
    ends = (source.column, target.column)
    return column in ends or (table.sample.kind == "edge" and column in ("from", "to", "id"))


def _properties(table: Table, names: Mapping[str, str], guesses: Mapping[str, Any]) -> list[str]:
    found = []
    for column, guess in guesses.items():
        if table.sample.kind is not None and column == "id":
            continue
        if guess.type == NOTHING:
            found.append(f"  // {_one_line(column)}: {guess.note}")
            continue
        key = " @key" if column == table.key and guesses is table.guesses else ""
        note = f" // {guess.note}" if guess.note else ""
        found.append(f"  {names[column]}: {guess.spelled}{key}{note}")
    if table.key is None and table.sample.kind != "edge" and guesses is table.guesses:
        found.append("  // no column tells the rows apart: each load adds all of them again")
    return found


def _edge_key(table: Table, source: Reference, target: Reference, names: Mapping[str, str]) -> list[str]:
    """The key of edges: their ends, with one more column if that tells them apart."""
    rows = table.sample.rows
    ends = [source.column, target.column]
    if _tell_apart(rows, ends):
        return ["  @key(src, dst)"]
    for column, name in names.items():
        if table.guesses[column].can_be_key and _tell_apart(rows, [*ends, column]):
            return [f"  @key(src, dst, {name})"]
    return ["  // parallel edges: each load adds all of them again, unless a @key(src, dst, …) tells them apart"]


def _tell_apart(rows: Any, columns: list[str]) -> bool:
    return bool(rows.select(columns).group_by(columns).aggregate([]).num_rows == rows.num_rows)


def _unknown_ends(source: Reference, target: Reference) -> str:
    lost = [ref for ref in (source, target) if ref.known < 1]
    if not lost:
        return ""
    shown = " and ".join(f"{ref.column} ({1 - ref.known:.1%} of its values)" for ref in lost)
    return f"  // not all ends exist: {shown}; --skip-bad leaves such edges out"


def _property_names(guesses: Mapping[str, Any], kind: str, type_name: str) -> dict[str, str]:
    """The names of the properties of columns: as they are where that is possible."""
    names: dict[str, str] = {}
    for column, guess in guesses.items():
        if guess.type == NOTHING:
            continue
        name = "_".join(re.findall(r"[A-Za-z0-9]+", column)) or "column"
        name = name if name[0].islower() else name.lower() if name[0].isalpha() else f"_{name}"
        if name in _RESERVED[kind]:
            name = f"{type_name[0].lower()}{type_name[1:]}_{name}"
        while name in names.values():
            name = f"{name}_2"
        names[column] = name
    return names


def _renamed(names: Mapping[str, str], guesses: Mapping[str, Any]) -> dict[str, str] | None:
    """The columns of properties, if a name is not that of its column, or a column is left out."""
    is_plain = len(names) == len(guesses) and all(column == name for column, name in names.items())
    return None if is_plain else {name: column for column, name in names.items()}


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _source(table: Table, **described: Any) -> Source:
    """The source of a table, with what is unusual about its CSV."""
    dialect = table.sample.dialect
    if dialect is None:
        return Source(_data(table.sample), **described)
    told = "\t" if format_of(str(table.sample.sources[0]))[0] is Format.TSV else ","
    delimiter = dialect.delimiter if dialect.delimiter != told else None
    return Source(_data(table.sample), delimiter=delimiter, nulls=dialect.nulls, **described)


def _data(sample: Sample) -> Any:
    return sample.sources[0] if len(sample.sources) == 1 else list(sample.sources)


def _entry(source: Source, folder: str | os.PathLike[str]) -> Any:
    """A source as a mapping file has it."""
    paths = [_shown(path, folder) for path in (source.data if isinstance(source.data, list) else [source.data])]
    entry: dict[str, Any] = {"data": paths[0] if len(paths) == 1 else paths}
    entry |= {"from": source.from_} if source.from_ else {}
    entry |= {"to": source.to} if source.to else {}
    entry |= {"delimiter": source.delimiter} if source.delimiter else {}
    entry |= {"nulls": list(source.nulls)} if tuple(source.nulls) != PLAIN.nulls else {}
    if source.columns is not None:
        entry["columns"] = dict(source.mapping or {})
    return entry if len(entry) > 1 else entry["data"]


def _shown(path: Any, folder: str | os.PathLike[str]) -> str:
    text = str(path)
    return text if "://" in text else os.path.relpath(Path(text).absolute(), Path(folder).absolute())
