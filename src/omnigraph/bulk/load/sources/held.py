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
from omnigraph.bulk.load.inputs import numbered_line
from omnigraph.bulk.load.sources.finding import TypedData
from omnigraph.errors import InvalidArgument, SourceUnusable
from omnigraph.formats.cells import RowErrors
from omnigraph.formats.columnar import numbered_ends, read_columns
from omnigraph.formats.dialect import Layout
from omnigraph.formats.jsonl.blocks import Block, read_block
from omnigraph.formats.jsonl.flat import FlatForm, read_flat_block
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.values import INTEGERS

_CHUNK_ROWS: Final = 100_000
_CHUNK_BYTES: Final = 32 << 20
_BY_TYPE: Final = "; rows of one type are given by their type, as nodes={…} and edges={…}"

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
        raise InvalidArgument("data", f"it is records, a text, bytes or a path, not {described(data)}{_BY_TYPE}")
    read = partial(_read_lines, catalog)
    return HeldRows("<records>", partial(_json_chunks, data), read, isinstance(data, Iterator))


def _read_lines(catalog: Catalog, chunk: Chunk) -> Block:
    return read_block(chunk, catalog)


def held_rows(data: TypedData, catalog: Catalog) -> HeldRows:
    """Rows of one type, checked for the columns they have. A reader or a generator is spent once it is read."""
    given, entity = data.source.data, data.entity
    tables = _tables(given)
    if tables is not None:
        reader = _table_reader(data, catalog, given)
        is_spent = isinstance(given, pa.RecordBatchReader | Iterator)
        return HeldRows(data.name, partial(_converted, tables, data.name), reader, is_spent)
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        kinds = "files, an Arrow table or reader, a DataFrame, or dictionaries"
        raise InvalidArgument(entity.name, f"its rows are {kinds}, not {described(given)}")
    rows = iter(given)
    first = next(rows, None)
    if first is not None and _tables(first) is not None:
        batches = chain([first], rows) if rows is given else given
        reader = _table_reader(data, catalog, first)
        chunks = partial(_converted, partial(_tables_of_all, batches), data.name)
        return HeldRows(data.name, chunks, reader, rows is given)
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
    if _is_pandas(data) and hasattr(data, "columns"):
        return lambda: _cut([_of_pandas(data)])
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


def _converted(tables: Callable[[], Iterator[pa.Table]], name: str) -> Iterator[pa.Table]:
    """Tables of a source; SourceUnusable if Arrow has no columns for what is in it."""
    try:
        yield from tables()
    except pa.ArrowException as error:
        reason = "; ".join(str(part) for part in error.args).partition("\n")[0].partition(". Detail: ")[0]
        raise SourceUnusable(name, f"Arrow cannot read it: {reason}") from error
    except UnicodeEncodeError as error:
        half = f"U+{ord(error.object[error.start]):04X}"
        raise SourceUnusable(name, f"a text has {half}, half of a character, which UTF-8 cannot hold") from error


def _of_pandas(frame: Any) -> pa.Table:
    """A DataFrame of pandas without its index. Arrow has no columns that leave zeros out."""
    if not frame.columns.is_unique:
        raise pa.ArrowInvalid(f"a column is there twice: {', '.join(map(str, frame.columns))}")
    sparse = [name for name in frame.columns if hasattr(frame[name], "sparse")]
    frame = frame.assign(**{name: frame[name].sparse.to_dense() for name in sparse}) if sparse else frame
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except pa.ArrowException:
        plain = frame.copy(deep=False)
        for name in [name for name in frame.columns if frame[name].dtype == object]:
            plain[name] = frame[name].where(frame[name].notna(), None)  # Arrow does not know pandas' own NA
        return pa.Table.from_pandas(plain, preserve_index=False)


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
    index: tuple[str, ...] = ()

    def __call__(self, chunk: Chunk) -> Block:
        try:
            columns = self.layout.columns(self.entity, chunk.column_names, self.name)
        except SourceUnusable as error:
            if not self.index:
                raise
            hint = f"its index, {', '.join(self.index)}, is no column before reset_index()"
            raise SourceUnusable(error.source, f"{error.reason}; {hint}") from None
        arrays = {name: chunk[column].combine_chunks() for name, column in columns.items()}
        errors = RowErrors(chunk.num_rows)
        if self.is_pandas:
            whole = _whole_columns(self.entity, self.numbered)
            arrays |= {name: _whole(arrays[name], whole[name], errors) for name in arrays.keys() & whole.keys()}
        return read_columns(self.entity, pa.RecordBatch.from_pydict(arrays), self.numbered, errors)


def _table_reader(data: TypedData, catalog: Catalog, rows: Any) -> _TableReader:
    numbered, is_pandas = frozenset(numbered_ends(catalog, data.entity)), _is_pandas(rows)
    index = tuple(str(name) for name in rows.index.names if name is not None) if is_pandas else ()
    return _TableReader(data.entity, data.layout, data.name, numbered, is_pandas, index)


def _whole_columns(entity: EntityType, numbered: Iterable[str]) -> dict[str, str]:
    """The columns whose values are integers, and what errors call them."""
    found = {name: f"'{name}' is the id of a node" for name in numbered}
    for prop in entity.properties.values():
        if prop.type.is_plain and prop.type.scalar in INTEGERS:
            found[prop.name] = f"{entity.name}.{prop.name} is {prop.type}"
    return found


def _whole(values: pa.Array, target: str, errors: RowErrors) -> pa.Array:
    """Numbers as integers where they are whole: pandas has no integers in a column that lacks some."""
    if not pa.types.is_floating(values.type):
        return values
    numbers, valid = values.fill_null(0).to_numpy(zero_copy_only=False), values.is_valid()
    is_whole = np.isfinite(numbers) & (np.floor(numbers) == numbers) & (np.abs(numbers) < 2**53)
    for position in np.flatnonzero(~is_whole).tolist():
        errors.add([position], f"{target}: {numbers[position]} is not an exact integer")
    mask = ~(is_whole & valid.to_numpy(zero_copy_only=False))
    return pa.array(np.where(is_whole, numbers, 0).astype(np.int64), mask=mask)


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
    for number, record in enumerate(records, 1):
        lines.append(numbered_line(number, record))
        size += len(lines[-1]) + 1
        if size >= _CHUNK_BYTES:
            yield b"\n".join(lines)
            lines, size = [], 0
    if lines:
        yield b"\n".join(lines)
