"""Reading records by the block: ranges of bytes into rows, at about the speed of Arrow's own JSON reader.

`records` alone defines what a record is. Here Arrow reads the lines that are certainly right, and `read_line`, the
strict reader, reads every line in doubt; so rows, positions and reasons are always those of the strict reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.formats.jsonl.lines import Chunk, Lines, chunks, groups
from omnigraph.formats.jsonl.parse import Parsed, parse
from omnigraph.formats.jsonl.records import BadRecord, read_line
from omnigraph.formats.rows import rows_of
from omnigraph.lang.schema.catalog import Catalog, EntityType

CHUNK_BYTES: Final = 8 << 20
"""How many bytes Arrow reads at once: few enough for the processor's caches, enough to be worth the call."""
LineReader = Callable[[bytes, Catalog], tuple[EntityType, dict[str, Any]] | None]
ParsedGroup = tuple[EntityType, Lines, Parsed]
"""Lines of one type, by their positions in a chunk, and what Arrow read of them."""


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """The records of one type as rows of its table, with the line of each.

    Rows have all columns, nullable; ``id`` is null if the record has none and the type has no key.
    """

    entity: EntityType
    rows: pa.Table
    lines: Lines


@dataclass(frozen=True, slots=True)
class Unreadable:
    """One record that cannot be read."""

    line: int
    column: int
    reason: str


@dataclass(frozen=True, slots=True)
class Block:
    """The records of a range of bytes by table key, in the order of their first lines, and the unreadable ones.

    One that is not ``is_closed`` ends within a record of CSV, in quotes.
    """

    records: dict[str, TypedRecords]
    unreadable: list[Unreadable]
    lines: int
    is_closed: bool = True


@dataclass(frozen=True, slots=True)
class _TypeRows:
    """The rows of one type so far: tables that Arrow read, and records that the strict reader read."""

    entity: EntityType
    tables: list[pa.Table] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    record_lines: list[int] = field(default_factory=list)


def read_block(
    data: bytes | memoryview, catalog: Catalog, size: int = CHUNK_BYTES, strict: LineReader = read_line
) -> Block:
    """All records of whole lines of JSON, and all unreadable lines.

    Arrow reads about ``size`` bytes at once; the ``strict`` reader reads the lines in doubt.
    """

    def parsed_groups(chunk: Chunk) -> Iterator[ParsedGroup]:
        for group in groups(chunk, catalog):
            yield group.entity, group.lines, parse(group.entity, group.text, group.named)

    return collected(data, size, parsed_groups, lambda line: strict(line, catalog))


def collected(
    data: bytes | memoryview,
    size: int,
    parsed_groups: Callable[[Chunk], Iterator[ParsedGroup]],
    strict: Callable[[bytes], tuple[EntityType, dict[str, Any]] | None],
) -> Block:
    """The records of whole lines: those of groups of lines that Arrow reads, and those that the strict reader
    reads because they are in no group or in doubt."""
    found: dict[str, _TypeRows] = {}
    unreadable: list[Unreadable] = []
    count = 0
    for chunk in chunks(np.frombuffer(data, np.uint8), size):
        doubtful = np.ones(len(chunk), np.bool_)
        for entity, lines, parsed in parsed_groups(chunk):
            accepted = lines[parsed.accepted]
            if len(accepted):
                doubtful[accepted] = False
                typed = found.setdefault(entity.table_key, _TypeRows(entity))
                typed.tables.extend(parsed.rows)
                typed.lines.append(accepted + (chunk.before + 1))
        for index in np.flatnonzero(doubtful).tolist():
            number = chunk.before + index + 1
            try:
                record = strict(chunk.line(index))
            except BadRecord as error:
                unreadable.append(Unreadable(number, error.column, error.reason))
                continue
            if record is not None:
                entity, values = record
                typed = found.setdefault(entity.table_key, _TypeRows(entity))
                typed.records.append(values)
                typed.record_lines.append(number)
        count += len(chunk)
    records = [_together(typed) for typed in found.values()]
    records.sort(key=lambda typed: int(typed.lines[0]))
    return Block({typed.entity.table_key: typed for typed in records}, unreadable, count)


def _together(found: _TypeRows) -> TypedRecords:
    """The rows of a type in the order of their lines."""
    entity = found.entity
    tables, lines = list(found.tables), list(found.lines)
    if found.records:
        columns = {name: [record.get(name) for record in found.records] for name in entity.columns}
        tables.append(rows_of(entity, columns, len(found.records)))
        lines.append(np.array(found.record_lines, np.int64))
    rows, numbers = pa.concat_tables(tables), np.concatenate(lines)
    if (numbers[1:] < numbers[:-1]).any():
        order = np.argsort(numbers, kind="stable")
        rows, numbers = rows.take(pa.array(order)), numbers[order]
    return TypedRecords(entity, rows, numbers)
