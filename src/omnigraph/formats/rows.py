"""Making rows: typed values into the columns of a table, with ids and blobs."""

from __future__ import annotations

import base64
import binascii
import os
import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.errors import BadValue
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import EntityType, Property

BLOB_PREFIX: Final = "base64:"
"""Before the bytes of a blob where they are written as text."""
_LETTERS: Final = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_PAIRS: Final = np.stack([np.repeat(_LETTERS, 32), np.tile(_LETTERS, 32)], axis=1).reshape(-1).view(np.uint16)
"""Two letters of an id for each number below 1024."""
_ID_PAIRS: Final = 13
_COUNTED: Final = (12, 11, 10)
"""The pairs of letters in which ids that are made at once differ, the last one first."""


def fresh_id() -> str:
    """A new id for a row of a type without a key."""
    return str(ULID())


def fresh_ids(count: int) -> pa.Array:
    """That many new ids, up to 2**30, in ascending order: a time and 50 random bits for all, and a number for
    each. They are ULIDs of one moment, and compress well."""
    # Not `ULID()`: within a millisecond it only counts on, in the letters that the numbers replace.
    first = ULID.from_bytes(int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10))
    letters = np.frombuffer(bytearray(str(first).encode() * count), np.uint16).reshape(count, _ID_PAIRS)
    numbers = np.arange(count, dtype=np.int32)
    for pair in _COUNTED:
        letters[:, pair] = _PAIRS.take(numbers & 1023)
        numbers >>= 10
    length = 2 * _ID_PAIRS
    offsets = np.arange(0, length * count + 1, length, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def with_fresh_ids(rows: pa.Table) -> pa.Table:
    """The rows with new ids where they have none."""
    ids = rows["id"]
    missing = ids.null_count
    if not missing:
        return rows
    filled = fresh_ids(missing)
    if missing < rows.num_rows:
        present = ids.combine_chunks()
        filled = pc.replace_with_mask(present, present.is_null(), filled)
    index = rows.schema.get_field_index("id")
    return rows.set_column(index, rows.schema.field(index), filled)


def rows_of(entity: EntityType, columns: Mapping[str, Sequence[Any]], length: int) -> pa.Table:
    """A table with all columns of a type from Python values; a column without values is null."""
    schema = table_schema(entity)
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        prop = entity.properties.get(field.name)
        arrays.append(_column(field, prop, [None] * length if values is None else values))
    nullable = pa.schema([field.with_nullable(True) for field in schema])
    return pa.Table.from_arrays(arrays, schema=nullable)


def _column(field: pa.Field, prop: Property | None, values: Sequence[Any]) -> pa.Array:
    if prop is not None and prop.type.is_blob:
        return lance.blob_array([blob_cell(prop.name, value) for value in values])
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        wanted = field.type if prop is None else prop.type.required()
        raise BadValue(f"a value of {field.name} does not fit {wanted}") from error


def blob_cell(name: str, value: Any) -> bytes | str | None:
    """The bytes of a Blob cell, from bytes or from `base64:…`; any other text is the address of bytes elsewhere,
    which a reader of records replaces by them, or refuses."""
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise BadValue(f"{name}: a blob is a text; give the bytes as `{BLOB_PREFIX}…`")
    if not value.startswith(BLOB_PREFIX):
        return value
    try:
        return base64.b64decode(value.removeprefix(BLOB_PREFIX), validate=True)
    except binascii.Error as error:
        raise BadValue(f"{name}: not valid base64: {error}") from error


def addresses_of(blobs: pa.Array) -> pa.Array:
    """The addresses among the cells of a Blob column; null for cells that have bytes, or nothing."""
    return blobs.storage.field("uri")


def blob_text(value: bytes | bytearray | memoryview) -> str:
    """The text of a Blob cell in a record, from which `blob_cell` reads the bytes."""
    return BLOB_PREFIX + base64.b64encode(value).decode()
