"""Lines of JSON that are rows of one type: objects with properties and ends as members, as other programs write
them. Arrow reads what is certainly right, the strict reader the rest, as for records."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.formats.columns import table_schema
from omnigraph.formats.jsonl.blocks import CHUNK_BYTES, Block, ParsedGroup, collected
from omnigraph.formats.jsonl.columns import Doubts, column_of, json_type, key_ids
from omnigraph.formats.jsonl.lines import Chunk, chosen, regular
from omnigraph.formats.jsonl.parse import Text, parse_form
from omnigraph.formats.jsonl.records import read_flat_line
from omnigraph.lang.schema.catalog import EntityType


@dataclass(frozen=True, slots=True)
class FlatForm:
    """Which member each column of a type is read from. Other members are ignored, or else refused.

    ``numbered`` are the ends of edges that are integers.
    """

    entity: EntityType
    columns: Mapping[str, str]
    numbered: Collection[str] = ()
    ignores_others: bool = False

    def options(self) -> pj.ParseOptions:
        """Arrow's options: it accepts these members, with these types."""
        members = []
        for name, member in self.columns.items():
            prop = self.entity.properties.get(name)
            own = pa.int64() if name in self.numbered else pa.string()
            members.append((member, own if prop is None else json_type(prop.type)))
        others = "ignore" if self.ignores_others else "error"
        return pj.ParseOptions(explicit_schema=pa.schema(members), unexpected_field_behavior=others)

    def rows(self, text: Text, table: pa.Table, doubts: Doubts) -> pa.Table:
        """The rows of a table that Arrow read."""
        stored = pa.schema([column.with_nullable(True) for column in table_schema(self.entity)])
        columns: dict[str, Any] = {}
        for column in stored:
            member = self.columns.get(column.name)
            read = pa.nulls(len(text)) if member is None else table[member].combine_chunks()
            prop = self.entity.properties.get(column.name)
            if prop is not None:
                columns[column.name] = column_of(prop, read, column.type, doubts)
                continue
            columns[column.name] = read.cast(pa.string())
            is_end = column.name != "id"
            doubts.mark(read.is_null() if is_end else pc.equal(columns["id"], ""))
        if self.entity.key:
            ids = key_ids(self.entity, columns)
            if "id" in self.columns:
                doubts.mark(pc.not_equal(columns["id"], ids))
            columns["id"] = ids
        return pa.Table.from_arrays([columns[name] for name in stored.names], schema=stored)


def read_flat_block(data: bytes | memoryview, form: FlatForm, size: int = CHUNK_BYTES) -> Block:
    """All rows of whole lines of JSON, and all unreadable lines."""
    options = form.options()

    def parsed_groups(chunk: Chunk) -> Iterator[ParsedGroup]:
        fitting = regular(chunk)
        if fitting.any():
            text = chosen(chunk, Text(chunk.content, chunk.offsets).lines(), fitting)
            yield form.entity, np.flatnonzero(fitting), parse_form(form, text, options)

    def strict(line: bytes) -> tuple[EntityType, dict[str, Any]] | None:
        return read_flat_line(line, form.entity, form.columns, form.numbered, ignores_others=form.ignores_others)

    return collected(data, size, parsed_groups, strict)
