"""Reading records by the block: whole ranges of bytes into rows, at about the speed of Arrow's own JSON reader.

What a record may be is defined in `write.records` alone. Here Arrow reads what is certainly right, and every line
about which there is a doubt is given to `read_line`; so rows, places and reasons are always the strict reader's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.formats.jsonl.lines import Lines, Piece, groups, pieces
from omnigraph.formats.jsonl.parse import parse
from omnigraph.formats.jsonl.records import BadRecord, read_line
from omnigraph.formats.rows import rows_of
from omnigraph.lang.schema.catalog import Catalog, EntityType

_PIECE: Final = 8 << 20
"""How many bytes are read at once: few enough to stay in the processor's caches, enough to be worth the call."""


@dataclass(frozen=True, slots=True)
class TypedRecords:
    """The records of one type as rows of its table, with the line each came from.

    Rows have all columns, nullable; ``id`` is null where none was given and the type has no key.
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
    """What a range of bytes holds: records by table key in order of first appearance, and all that are bad."""

    records: dict[str, TypedRecords]
    unreadable: list[Unreadable]
    lines: int


@dataclass(frozen=True, slots=True)
class _Found:
    """The rows of one type so far: tables that Arrow read, and records that were read one by one."""

    entity: EntityType
    tables: list[pa.Table] = field(default_factory=list)
    lines: list[Lines] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    record_lines: list[int] = field(default_factory=list)


def read_block(data: bytes | memoryview, catalog: Catalog, size: int = _PIECE) -> Block:
    """All records of whole lines of JSON, and all lines that are none; ``size`` is how much is read at once."""
    found: dict[str, _Found] = {}
    unreadable: list[Unreadable] = []
    count = 0
    for piece in pieces(np.frombuffer(data, np.uint8), size):
        doubtful = np.ones(len(piece), np.bool_)
        for group in groups(piece, catalog):
            parsed = parse(group.entity, group.text, group.named)
            accepted = group.lines[parsed.accepted]
            if len(accepted):
                doubtful[accepted] = False
                typed = found.setdefault(group.entity.table_key, _Found(group.entity))
                typed.tables.extend(parsed.rows)
                typed.lines.append(accepted + (piece.before + 1))
        _read_strictly(piece, doubtful, catalog, found, unreadable)
        count += len(piece)
    records = [_together(typed) for typed in found.values()]
    records.sort(key=lambda typed: int(typed.lines[0]))
    return Block({typed.entity.table_key: typed for typed in records}, unreadable, count)


def _read_strictly(
    piece: Piece,
    doubtful: npt.NDArray[np.bool_],
    catalog: Catalog,
    found: dict[str, _Found],
    unreadable: list[Unreadable],
) -> None:
    for index in np.flatnonzero(doubtful).tolist():
        number = piece.before + index + 1
        try:
            record = read_line(piece.line(index), catalog)
        except BadRecord as error:
            unreadable.append(Unreadable(number, error.column, error.reason))
            continue
        if record is not None:
            entity, values = record
            typed = found.setdefault(entity.table_key, _Found(entity))
            typed.records.append(values)
            typed.record_lines.append(number)


def _together(found: _Found) -> TypedRecords:
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
