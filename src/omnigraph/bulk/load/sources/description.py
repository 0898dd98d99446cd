"""What a caller says about a source of rows of one type: where they are, how they are written, and which column
becomes which property."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from omnigraph.arguments import described, optional_text, text_argument
from omnigraph.errors import InvalidArgument, RequestError
from omnigraph.formats.dialect import PLAIN, Dialect, Layout
from omnigraph.formats.format import Format, format_named
from omnigraph.lang.schema.catalog import EdgeType, EntityType, NodeType
from omnigraph.lang.schema.lookup import unknown_name

_ENDS: Final = {"from": "src", "to": "dst"}

Location = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Source:
    """Rows of one node or edge type, for `nodes={TYPE: …}` and `edges={TYPE: …}` of a load.

    ``data`` is one path, directory, glob or `s3://` address, or a list of them; or an Arrow table or reader, a
    DataFrame of pandas, polars or Spark, a relation of DuckDB, or dictionaries. ``columns`` says which column
    each property is read from, as `{"name": "full_name"}`, or lists those of the same name, and all other columns
    are left out; without it every column is a property. ``from_`` and ``to`` name the columns with the ends of
    edges. ``format`` is told by a file's name unless it is given: `jsonl`, `csv`, `tsv`, `parquet` or `arrow`.

    The rest is about CSV. ``nulls`` are the texts that stand for no value, unless they are quoted;
    ``list_separator`` is between the items of a list that is not written as JSON. A file without a ``header`` has
    the columns that ``names`` lists.
    """

    data: Any
    format: str | None = None
    columns: Mapping[str, str] | Sequence[str] | None = None
    from_: str | None = None
    to: str | None = None
    delimiter: str | None = None
    quote: str = PLAIN.quote
    nulls: Sequence[str] = PLAIN.nulls
    list_separator: str = PLAIN.list_separator
    names: Sequence[str] | None = None
    mapping: Mapping[str, str] | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.format is not None:
            format_named(text_argument("format", self.format))
        for name in ("from_", "to"):
            optional_text(name, getattr(self, name))
        object.__setattr__(self, "mapping", _mapping(self.columns))
        for name in ("delimiter", "quote", "list_separator"):
            mark = getattr(self, name)
            if mark is not None and (not isinstance(mark, str) or len(mark.encode()) != 1 or mark in "\r\n"):
                raise InvalidArgument(name, f"it is one character, not {mark!r:.40}")
        if self.quote == (self.delimiter or PLAIN.delimiter):
            raise InvalidArgument("quote", f"{self.quote!r} is the delimiter as well")
        if isinstance(self.nulls, str) or not all(isinstance(text, str) for text in self.nulls):
            raise InvalidArgument("nulls", "it is a list of texts")
        if self.names is not None and (isinstance(self.names, str) or len(set(self.names)) < len(self.names)):
            raise InvalidArgument("names", "it is a list of the names of all columns, each once")

    def dialect(self, kind: Format) -> Dialect:
        """How the cells of a CSV file of this source are written."""
        return Dialect(
            self.delimiter or ("\t" if kind is Format.TSV else PLAIN.delimiter),
            self.quote,
            tuple(self.nulls),
            self.list_separator,
            None if self.names is None else tuple(self.names),
        )

    def layout(self, entity: EntityType) -> Layout:
        """Which column of the source each column of the type's table is read from, checked against the type.

        RequestError names what the type does not have, with the nearest name that it has, and what is missing.
        """
        chosen = dict(self.mapping or {})
        known = [*entity.columns, *_ENDS] if isinstance(entity, EdgeType) else list(entity.columns)
        for name in chosen:
            if name not in known:
                raise unknown_name(f"property of {entity.name} called", name, entity.properties)
        ends = {"src": self.from_, "dst": self.to}
        if isinstance(entity, NodeType) and (self.from_ or self.to):
            raise RequestError(f"from_ and to are for edges, and {entity.name} is a node type")
        found = {_ENDS.get(name, name) if isinstance(entity, EdgeType) else name: chosen[name] for name in chosen}
        if len(found) < len(chosen):
            raise RequestError(f"an end of {entity.name} is given twice: {', '.join(sorted(chosen))}")
        for end, column in ends.items():
            if column is not None and end in found:
                raise RequestError(f"the column of {end} is given twice: {found[end]} and {column}")
        found |= {end: column for end, column in ends.items() if column is not None}
        layout = Layout(entity.table_key, tuple(sorted(found.items())), is_all=self.mapping is None)
        if self.mapping is not None:
            layout.require_needed(entity, "columns")
        return layout


Rows = Source | Location | Sequence[Location] | Any
"""Rows of one type: a source, or what a `Source` takes as its data."""


def _mapping(columns: object) -> dict[str, str] | None:
    """The columns of properties as the caller gave them, by property."""
    if columns is None:
        return None
    if isinstance(columns, Mapping):
        pairs = dict(columns)
    elif isinstance(columns, Sequence) and not isinstance(columns, str):
        pairs = {name: name for name in columns}
    else:
        raise InvalidArgument("columns", f"it is {{property: column}} or a list, not {described(columns)}")
    if not all(isinstance(text, str) for pair in pairs.items() for text in pair):
        raise InvalidArgument("columns", "the names of properties and columns are texts")
    return pairs


def source_of(given: object) -> Source:
    """What a caller gave for a type, as a source: itself, or the data of one without more to say about it."""
    return given if isinstance(given, Source) else Source(given)
