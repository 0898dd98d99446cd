"""Encoding rows as JSON Lines or Parquet, whole columns at a time.

A load of the result gives back every value bit for bit.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Iterable, Iterator
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph.errors import ExportRefused
from omnigraph.formats.columns import table_schema
from omnigraph.formats.rows import BLOB_PREFIX
from omnigraph.lang.schema.catalog import EntityType, NodeType, Property
from omnigraph.lang.values import FLOATS, Scalar

_ROWS_PER_GROUP: Final = 131_072
_BYTES_PER_GROUP: Final = 64 << 20
_BATCH_BYTES: Final = 64 << 20
"""Larger batches are encoded in halves, so that 32-bit offsets can address the text."""

_SHORT: Final = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPES: Final = {
    "\\": "\\\\",  # the first to be replaced
    '"': '\\"',
    **{chr(code): _SHORT.get(chr(code), f"\\u{code:04x}") for code in range(0x20)},
}
_IS_ESCAPED: Final = np.array([chr(code) in _ESCAPES for code in range(256)])
_QUOTED: Final = frozenset({Scalar.STRING, Scalar.DATE, Scalar.DATETIME, Scalar.BLOB})
_TEXT: Final = pa.string()
_WIDE_TEXT: Final = pa.large_string()
_F64: Final = pa.float64()

TABLE_KEY: Final = b"omnigraph.table"
"""The key in the metadata of a Parquet file whose value is the table of its rows."""


def json_lines(entity: EntityType, rows: pa.RecordBatch, limit: int = _BATCH_BYTES) -> Iterator[memoryview]:
    """The rows of a table as records of a load, one per line, without nulls. Blobs are given as bytes.

    More than ``limit`` bytes are encoded in halves.
    """
    if not rows.num_rows:
        return
    if rows.nbytes > limit and rows.num_rows > 1:
        half = rows.num_rows // 2
        yield from json_lines(entity, rows.slice(0, half), limit)
        yield from json_lines(entity, rows.slice(half), limit)
        return
    text = _TEXT if rows.nbytes <= limit else _WIDE_TEXT
    line = _Line(text)
    if isinstance(entity, NodeType):
        line.add(f'{{"type":{json.dumps(entity.name)},"data":{{"id":"', json_escaped(rows.column("id")), '"')
    else:
        line.add(f'{{"edge":{json.dumps(entity.name)},"from":"', json_escaped(rows.column("src")), '"')
        line.add(',"to":"', json_escaped(rows.column("dst")), '"')
        line.add(',"data":{"id":"', json_escaped(rows.column("id")), '"')
    for prop in entity.properties.values():
        values = _encoded(entity, prop, rows.column(prop.name))
        before, after = _around(prop)
        line.add(f",{json.dumps(prop.name, ensure_ascii=False)}:{before}", values, after)
    yield memoryview(_content(line.joined("}}\n"))).cast("B")


class _Line:
    """The parts of all lines: texts that every line has, and columns of values."""

    def __init__(self, text: pa.DataType) -> None:
        self._text = text
        self._pieces: list[Any] = []
        self._literal = ""

    def add(self, before: str, values: pa.Array, after: str) -> None:
        """Add a column between two texts; where it is null, the line has neither value nor texts."""
        values = values.cast(self._text)
        if values.null_count:
            first, last, nothing = map(self._scalar, (before, after, ""))
            self._end_literal()
            self._pieces.append(pc.binary_join_element_wise(first, values, last, nothing))
            return
        self._literal += before
        self._end_literal()
        self._pieces.append(values)
        self._literal = after

    def joined(self, end: str) -> pa.Array:
        """The lines."""
        self._literal += end
        self._end_literal()
        return pc.binary_join_element_wise(*self._pieces, self._scalar(""), null_handling="skip")

    def _end_literal(self) -> None:
        if self._literal:
            self._pieces.append(self._scalar(self._literal))
            self._literal = ""

    def _scalar(self, text: str) -> pa.Scalar:
        return pa.scalar(text, self._text)


def _content(lines: pa.Array) -> pa.Buffer:
    """The bytes of all texts of a column, one after another."""
    first, last = _extent(lines)
    return lines.buffers()[2].slice(first, last - first)


def _extent(texts: pa.Array) -> tuple[int, int]:
    """Where the bytes of a column of texts begin and end in its buffer."""
    wide = pa.types.is_large_string(texts.type) or pa.types.is_large_binary(texts.type)
    offsets = np.frombuffer(texts.buffers()[1], np.int64 if wide else np.int32)
    return int(offsets[texts.offset]), int(offsets[texts.offset + len(texts)])


def _around(prop: Property) -> tuple[str, str]:
    """The texts before and after a value."""
    if not prop.type.is_plain:
        return "[", "]"
    if prop.type.is_blob:
        return f'"{BLOB_PREFIX}', '"'
    return ('"', '"') if prop.type.scalar in _QUOTED else ("", "")


def _encoded(entity: EntityType, prop: Property, values: pa.Array) -> pa.Array:
    """A column as JSON, without the texts around each value."""
    if prop.type.is_plain:
        return _scalars(entity, prop, values)
    items = _scalars(entity, prop, pc.list_flatten(values))
    if prop.type.scalar in _QUOTED:
        items = pc.binary_join_element_wise('"', items, '"', "")
    items = pc.fill_null(items, "null")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, items, mask=values.is_null() if values.null_count else None)
    return pc.binary_join(lists, ",")


def _scalars(entity: EntityType, prop: Property, values: pa.Array) -> pa.Array:
    scalar = prop.type.scalar
    if scalar is Scalar.STRING:
        return json_escaped(values)
    if scalar in FLOATS:
        return _floats(entity, prop, values)
    if scalar is Scalar.DATETIME:
        wall_clock = values.cast(pa.timestamp("ms")).cast(_TEXT)
        return pc.binary_join_element_wise(pc.replace_substring(wall_clock, " ", "T"), "Z", "")
    if scalar is Scalar.BLOB:
        # One call per blob: a single pass over all bytes at the speed of C, which no kernel of Arrow has.
        encoded = [None if blob is None else b2a_base64(blob, newline=False) for blob in values.to_pylist()]
        return pa.array(encoded, pa.large_binary()).cast(_WIDE_TEXT)
    return values.cast(_TEXT)


def json_escaped(texts: pa.Array) -> pa.Array:
    """Texts as JSON spells them between quotes. Characters to escape are searched in all bytes at once."""
    if texts.buffers()[2] is None or not len(texts):
        return texts
    first, last = _extent(texts)
    content = np.frombuffer(texts.buffers()[2], np.uint8)[first:last]
    special = content[_IS_ESCAPED[content]]
    if not len(special):
        return texts
    present = {chr(code) for code in np.unique(special)}
    for letter, spelled in _ESCAPES.items():
        if letter in present:
            texts = pc.replace_substring(texts, letter, spelled)
    return texts


def _floats(entity: EntityType, prop: Property, numbers: pa.Array) -> pa.Array:
    """Numbers in the fewest digits that give the same number back, also to readers that use 64 bits.

    All have a decimal point, so that readers that tell integers from floats see floats.
    """
    if pc.all(pc.is_finite(numbers)).as_py() is False:
        raise ExportRefused(
            f"{entity.name}.{prop.name}", "it holds NaN or infinity, which JSON cannot write; use Parquet"
        )
    texts = numbers.cast(_TEXT)
    if prop.type.scalar is Scalar.F32:
        again = texts.cast(_F64).cast(pa.float32(), safe=False)
        differs = pc.not_equal(again, numbers)
        if pc.any(differs).as_py():
            texts = pc.if_else(differs, numbers.cast(_F64).cast(_TEXT), texts)
    return _with_point(texts)


def _with_point(texts: pa.Array) -> pa.Array:
    """Decimal numbers, each with a decimal point: 1 becomes 1.0, and 1e+30 becomes 1.0e+30."""
    pointless = pc.invert(pc.match_substring(texts, "."))
    if not pc.any(pointless).as_py():
        return texts
    texts = pc.if_else(pointless, pc.binary_join_element_wise(texts, ".0", ""), texts)
    powers = pc.and_(pointless, pc.match_substring(texts, "e"))
    if not pc.any(powers).as_py():
        return texts
    return pc.if_else(powers, pc.replace_substring_regex(texts, r"^(-?\d+)(e.*)\.0$", r"\1.0\2"), texts)


def parquet_schema(entity: EntityType) -> pa.Schema:
    """The columns of a Parquet file of a type's rows. Its metadata has the type."""
    fields = [
        pa.field(
            field.name,
            pa.binary() if _is_blob(entity, field.name) else field.type,
            nullable=field.nullable,
        )
        for field in table_schema(entity)
    ]
    return pa.schema(fields, {TABLE_KEY: entity.table_key.encode()})


def write_parquet(
    entity: EntityType,
    batches: Iterable[pa.RecordBatch],
    sink: IO[bytes],
    rows_per_group: int = _ROWS_PER_GROUP,
) -> int:
    """Write rows as one Parquet file; the number of rows. Equal rows give equal bytes, whatever the batches."""
    schema = parquet_schema(entity)
    rows = 0
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        for group in grouped(batches, rows_per_group, _BYTES_PER_GROUP):
            columns = [group.column(field.name).cast(field.type).combine_chunks() for field in schema]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=rows_per_group)
            rows += group.num_rows
    return rows


def grouped(batches: Iterable[pa.RecordBatch], max_rows: int, max_bytes: int) -> Iterator[pa.Table]:
    """The rows in groups of up to so many rows and bytes. The groups depend on the rows, not on the batches."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        while batch.num_rows:
            sizes = np.cumsum(row_bytes(batch))
            fitting = min(max_rows - rows, int(np.searchsorted(sizes, max_bytes - size, "right")))
            taken = min(max(fitting, 0 if held else 1), batch.num_rows)
            if taken:
                held.append(batch.slice(0, taken))
                rows, size = rows + taken, size + int(sizes[taken - 1])
            batch = batch.slice(taken)
            if batch.num_rows:
                yield pa.Table.from_batches(held)
                held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held)


def row_bytes(rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    """How many bytes the values of each row take, which depends on the values alone."""
    total = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        total += _cell_bytes(column)
    return total


def _cell_bytes(column: pa.Array) -> npt.NDArray[np.int64] | int:
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * 4
    if pa.types.is_list(kind):
        offsets = column.offsets.to_numpy().astype(np.int64)
        items = np.broadcast_to(_cell_bytes(column.values), len(column.values))
        ends = np.concatenate([[0], np.cumsum(items)])
        return np.asarray(ends[offsets[1:]] - ends[offsets[:-1]], np.int64)
    if pa.types.is_struct(kind):  # a blob that is not read, but described
        return _filled(pc.struct_field(column, "size"))
    if pa.types.is_primitive(kind):
        return max(1, int(kind.bit_width) // 8)
    return _filled(pc.binary_length(column))


def _filled(numbers: pa.Array) -> npt.NDArray[np.int64]:
    values: npt.NDArray[np.int64] = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def _is_blob(entity: EntityType, name: str) -> bool:
    prop = entity.properties.get(name)
    return prop is not None and prop.type.is_blob
