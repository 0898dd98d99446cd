"""The strict reader over many lines, one by one: what reading by the block has to agree with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from omnigraph.formats.jsonl.blocks import Unreadable
from omnigraph.formats.jsonl.records import BadRecord, read_line
from omnigraph.lang.schema.catalog import Catalog, EntityType


@dataclass(slots=True)
class StrictRecords:
    """The records of one type, as columns of Python values, with the line each came from."""

    entity: EntityType
    columns: dict[str, list[Any]]
    lines: list[int] = field(default_factory=list)


@dataclass(slots=True)
class StrictBlock:
    """All records by table key in order of first appearance, and all that are bad."""

    records: dict[str, StrictRecords] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    lines: int = 0


def read_strictly(data: bytes, catalog: Catalog) -> StrictBlock:
    """What each line is by itself."""
    found = StrictBlock()
    for number, line in enumerate(split_lines(data), 1):
        found.lines = number
        try:
            record = read_line(line, catalog)
        except BadRecord as error:
            found.unreadable.append(Unreadable(number, error.column, error.reason))
            continue
        if record is not None:
            entity, values = record
            empty = StrictRecords(entity, {name: [] for name in entity.columns})
            records = found.records.setdefault(entity.table_key, empty)
            for name, column in records.columns.items():
                column.append(values.get(name))
            records.lines.append(number)
    return found


def split_lines(data: bytes) -> Iterator[bytes]:
    """The lines of a file, without their ends."""
    start = 0
    while start < len(data):
        end = data.find(b"\n", start)
        end = len(data) if end < 0 else end
        yield data[start:end].removesuffix(b"\r")
        start = end + 1
