"""Rows that this process holds: Arrow tables and readers, DataFrames, relations, dictionaries and texts.

They are read in chunks, one after the other, so that data of any length takes the memory of a few chunks.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from mmap import mmap
from typing import Any, Final

import numpy as np
import pyarrow as pa

from omnigraph.arguments import described
from omnigraph.bulk.load.inputs import json_line
from omnigraph.bulk.load.sources.finding import TypedData
from omnigraph.errors import InvalidArgument, SourceUnusable
from omnigraph.formats.columnar import numbered_ends, read_columns
from omnigraph.formats.dialect import Layout
from omnigraph.formats.jsonl.blocks import Block, read_block
from omnigraph.formats.jsonl.flat import FlatForm, read_flat_block
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.values import INTEGERS

_CHUNK_ROWS: Final = 100_000
_CHUNK_BYTES: Final = 32 << 20

Chunk = Any
"""Lines of JSON as bytes, or rows of one type as a table of Arrow."""


@dataclass(frozen=True, slots=True)
class HeldRows:
    """Rows that this process holds, by the name that errors call them.

    ``chunks`` begins to read them, ``read`` makes records of a chunk, also in another process. Of a source that
    ``is_spent`` once it was read, there is no second attempt.
    """

    name: str
    chunks: Callable[[], Iterator[Chunk]]
    read: Callable[[Chunk], Block]
    is_spent: bool = False


def size_of(chunk: Chunk) -> int:
    """How many bytes a chunk has."""
    return len(chunk) if isinstance(chunk, bytes) else int(chunk.nbytes)


def held_text(data: str | bytes | mmap, catalog: Catalog) -> HeldRows:
    """JSON Lines in memory, or in a file that is mapped to it, in chunks of whole lines."""
    content = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    return HeldRows("<data>", partial(_line_chunks, content), partial(_read_lines, catalog))


def held_records(data: Iterable[Mapping[str, Any]], catalog: Catalog) -> HeldRows:
    """Dictionaries, each a record that names its type."""
    if not isinstance(data, Iterable):
        raise InvalidArgument("data", f"it is records, a text, bytes or a path, not {described(data)}")
    read = partial(_read_lines, catalog)
    return HeldRows("<records>", partial(_json_chunks, data), read, isinstance(data, Iterator))


def _read_lines(catalog: Catalog, chunk: Chunk) -> Block:
    return read_block(chunk, catalog)


def held_rows(data: TypedData, catalog: Catalog) -> HeldRows:
    """Rows of one type, checked for the columns they have. A reader or a generator is spent once it is read."""
    given, entity = data.source.data, data.entity
    tables = _tables(given)
    if tables is not None:
        reader = _table_reader(data, catalog, is_pandas=_is_pandas(given))
        return HeldRows(data.name, tables, reader, isinstance(given, pa.RecordBatchReader | Iterator))
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        kinds = "files, an Arrow table or reader, a DataFrame, or dictionaries"
        raise InvalidArgument(entity.name, f"its rows are {kinds}, not {described(given)}")
    rows = iter(given)
    first = next(rows, None)
    if first is not None and _tables(first) is not None:
        batches = chain([first], rows) if rows is given else given
        reader = _table_reader(data, catalog, is_pandas=_is_pandas(first))
        return HeldRows(data.name, partial(_tables_of_all, batches), reader, rows is given)
    if first is not None and not isinstance(first, Mapping):
        raise InvalidArgument(entity.name, f"its rows are dictionaries, not {described(first)}")
    columns = data.layout.members(entity, tuple(first or ()))
    form = FlatForm(entity, columns, numbered_ends(catalog, entity), not data.layout.is_all)
    given = given if rows is not given else rows if first is None else chain([first], rows)
    return HeldRows(
        data.name, partial(_json_chunks, given), partial(_read_flat, form), isinstance(given, Iterator)
    )


def _read_flat(form: FlatForm, chunk: Chunk) -> Block:
    return read_flat_block(chunk, form)


def _is_pandas(data: object) -> bool:
    return type(data).__module__.partition(".")[0] == "pandas"


def _tables(data: Any) -> Callable[[], Iterator[pa.Table]] | None:
    """What reads data that consists of columns, in chunks; None if it does not."""
    if _is_pandas(data) and hasattr(data, "iloc"):
        return lambda: _cut([pa.Table.from_pandas(data, preserve_index=False)])
    if type(data).__module__.startswith("polars") and type(data).__name__ == "LazyFrame":
        return lambda: _cut([pa.table(data.collect())])
    if isinstance(data, pa.Table):
        return lambda: _cut([data])
    if hasattr(data, "__arrow_c_stream__"):
        return lambda: _cut(_one_by_one(pa.RecordBatchReader.from_stream(data)))
    if hasattr(data, "__arrow_c_array__"):
        return lambda: _cut([pa.Table.from_batches([pa.record_batch(data)])])
    if hasattr(data, "to_batches"):
        return lambda: _cut(_one_by_one(data.to_batches()))
    return None


def _one_by_one(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    return (pa.Table.from_batches([batch]) for batch in batches)


def _tables_of_all(given: Iterable[Any]) -> Iterator[pa.Table]:
    """The rows of tables or batches that come one after the other."""

    def each() -> Iterator[pa.Table]:
        for one in given:
            found = _tables(one)
            if found is None:
                raise SourceUnusable(type(one).__name__, "all parts of a source are tables or batches of Arrow")
            yield from found()

    return _cut(each())


def _cut(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Tables cut and put together to chunks of many rows, though not of too many bytes."""
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        per_row = max(1, table.nbytes // max(1, table.num_rows))
        most = max(1, min(_CHUNK_ROWS, 2 * _CHUNK_BYTES // per_row))
        for first in range(0, table.num_rows, most):
            part = table.slice(first, most)
            if held and (rows + part.num_rows > _CHUNK_ROWS or size + part.num_rows * per_row > 2 * _CHUNK_BYTES):
                yield _together(held)
                held, rows, size = [], 0, 0
            held.append(part)
            rows, size = rows + part.num_rows, size + part.num_rows * per_row
    if held:
        yield _together(held)


def _together(tables: list[pa.Table]) -> pa.Table:
    if any(table.schema != tables[0].schema for table in tables):
        raise SourceUnusable("the batches of a source", "they have different columns")
    return pa.concat_tables(tables)


@dataclass(frozen=True, slots=True)
class _TableReader:
    """Makes records of rows. Numbers of pandas that are whole are integers where a property is one."""

    entity: EntityType
    layout: Layout
    name: str
    numbered: frozenset[str]
    is_pandas: bool

    def __call__(self, chunk: Chunk) -> Block:
        columns = self.layout.columns(self.entity, chunk.column_names, self.name)
        arrays = {name: chunk[column].combine_chunks() for name, column in columns.items()}
        if self.is_pandas:
            whole = {*self.numbered, *_integers(self.entity)}
            arrays = {name: _whole(values) if name in whole else values for name, values in arrays.items()}
        return read_columns(self.entity, pa.RecordBatch.from_pydict(arrays), self.numbered)


def _table_reader(data: TypedData, catalog: Catalog, *, is_pandas: bool) -> _TableReader:
    numbered = frozenset(numbered_ends(catalog, data.entity))
    return _TableReader(data.entity, data.layout, data.name, numbered, is_pandas)


def _integers(entity: EntityType) -> list[str]:
    return [p.name for p in entity.properties.values() if p.type.is_plain and p.type.scalar in INTEGERS]


def _whole(values: pa.Array) -> pa.Array:
    """Numbers as integers, if all are whole: pandas has no integers in a column that lacks some."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.drop_null().to_numpy(zero_copy_only=False)
    is_whole = bool((np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)).all())
    return values.cast(pa.int64()) if is_whole else values


def _line_chunks(content: bytes | mmap) -> Iterator[bytes]:
    """A text in chunks of whole lines."""
    start = len(BOM_UTF8) if content[: len(BOM_UTF8)] == BOM_UTF8 else 0
    while start < len(content):
        end = content.find(b"\n", start + _CHUNK_BYTES) + 1 or len(content)
        yield content[start:end]
        start = end


def _json_chunks(records: Iterable[Mapping[str, Any]]) -> Iterator[bytes]:
    """Dictionaries as lines of JSON."""
    lines: list[bytes] = []
    size = 0
    for record in records:
        lines.append(json_line(record))
        size += len(lines[-1]) + 1
        if size >= _CHUNK_BYTES:
            yield b"\n".join(lines)
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines)
