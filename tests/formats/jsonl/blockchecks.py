"""Checks that blocks are read as the strict reader reads their lines."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from tests.formats.jsonl.records_text import CATALOG
from tests.formats.jsonl.strict import read_strictly

from omnigraph.formats.columns import table_schema
from omnigraph.formats.jsonl.blocks import Block, TypedRecords, read_block
from omnigraph.formats.rows import rows_of

GOOD = '{"type": "Thing", "data": {"s": "good"}}'


def strictly(data: bytes) -> Block:
    """What the strict reader makes of the same bytes."""
    found = read_strictly(data, CATALOG)
    records = {
        key: TypedRecords(
            typed.entity, rows_of(typed.entity, typed.columns, len(typed.lines)), np.array(typed.lines)
        )
        for key, typed in found.records.items()
    }
    return Block(records, found.unreadable, found.lines)


def plain(block: Block) -> Any:
    """A block as something that can be compared and shown; texts tell -0.0 from 0.0."""
    records = [
        (key, typed.entity, typed.lines.tolist(), [repr(row) for row in typed.rows.to_pylist()])
        for key, typed in block.records.items()
    ]
    return records, block.unreadable, block.lines


def check(data: str | bytes, size: int = 1 << 20) -> Block:
    """Read a block, which must be what the strict reader reads; the block."""
    content = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    block = read_block(content, CATALOG, size)
    assert plain(block) == plain(strictly(content))
    for typed in block.records.values():
        nullable = pa.schema([field.with_nullable(True) for field in table_schema(typed.entity)])
        assert typed.rows.schema.equals(nullable, check_metadata=True)
        typed.rows.validate(full=True)
        assert typed.lines.dtype == np.int64
    return block


def thing(values: str) -> str:
    return f'{{"type": "Thing", "data": {{{values}}}}}'


def edge(values: str, name: str = "Knows") -> str:
    return f'{{"edge": "{name}", "from": "a", "to": "b", "data": {{{values}}}}}'
