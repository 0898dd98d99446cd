"""Making rows: typed values into the columns of a table, ids and vectors included."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import DataError, EmbeddingUnavailable
from omnigraph.lang.schema.catalog import EdgeType, NodeType, Property
from omnigraph.storage.columns import table_schema

_MANAGED = "base64:"
_LETTERS = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ" * 8
"""The letter of an id for each byte: eight times the 32 there are."""
_ID_LENGTH = 26


class BadValue(DataError):
    """A value that its column cannot hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def fresh_id() -> str:
    """A new id for something without a key."""
    return str(ULID())


def fresh_ids(count: int) -> pa.Array:
    """That many new ids: the letters of all of them are made at once, from a generator with a seed of its own."""
    letters = np.empty((count, _ID_LENGTH), np.uint8)
    letters[:, :10] = np.frombuffer(str(ULID())[:10].encode(), np.uint8)
    random = np.random.default_rng().bytes(16 * count).translate(_LETTERS)
    letters[:, 10:] = np.frombuffer(random, np.uint8).reshape(count, 16)
    offsets = np.arange(0, _ID_LENGTH * count + 1, _ID_LENGTH, dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])


def with_fresh_ids(rows: pa.Table) -> pa.Table:
    """The rows with new ids where they have none."""
    ids = rows["id"]
    missing = ids.null_count
    if not missing:
        return rows
    filled = fresh_ids(missing)
    if missing < rows.num_rows:
        given = ids.combine_chunks()
        filled = pc.replace_with_mask(given, given.is_null(), filled)
    index = rows.schema.get_field_index("id")
    return rows.set_column(index, rows.schema.field(index), filled)


def rows_of(entity: NodeType | EdgeType, columns: Mapping[str, Sequence[Any]], length: int) -> pa.Table:
    """A table with all columns of a type from Python values; a column that is not given is null."""
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
        return lance.blob_array([blob_bytes(prop.name, value) for value in values])
    try:
        return pa.array(values, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError) as error:
        raise BadValue(f"a value of {field.name} does not fit {field.type}: {error}") from error


def blob_bytes(name: str, value: Any) -> bytes | None:
    """The bytes of a Blob cell: given as bytes or as `base64:…`; addresses of bytes elsewhere are refused."""
    if value is None or isinstance(value, bytes):
        return value
    if not isinstance(value, str) or not value.startswith(_MANAGED):
        raise BadValue(f"{name}: external blobs are not allowed here; give the bytes as `{_MANAGED}…`")
    try:
        return base64.b64decode(value.removeprefix(_MANAGED), validate=True)
    except binascii.Error as error:
        raise BadValue(f"{name}: not valid base64: {error}") from error


def fill_vectors(
    node: NodeType, rows: pa.Table, given: Mapping[str, bool], client: EmbeddingClient | None
) -> tuple[pa.Table, list[str]]:
    """Compute the vectors of `@embed` properties that rows do not bring; the names of those left null.

    ``given`` says for a property whether its values came with the rows and are to be kept where present.
    """
    skipped: list[str] = []
    for name, embed in node.embeds.items():
        if not given.get(name, False):
            rows = _without_values(rows, name)
        sources = rows[embed.source]
        wanted = pc.and_(pc.is_valid(sources), pc.is_null(rows[name]))
        positions = pc.indices_nonzero(wanted)
        if not len(positions):
            continue
        prop = node.properties[name]
        if client is None:
            if not prop.type.nullable:
                raise EmbeddingUnavailable(
                    f"{node.name}.{name} is required and computed from {embed.source}, but no embedding provider "
                    "is configured; set OMNIGRAPH_EMBED_PROVIDER, or give the vector"
                )
            skipped.append(f"{node.name}.{name}")
            continue
        require_model(node, name, client)
        rows = with_vectors(rows, prop, positions, sources, client)
    return rows, skipped


def require_model(node: NodeType, name: str, client: EmbeddingClient) -> None:
    """Refuse a client of another model than the schema names for a vector."""
    wanted = node.embeds[name].model
    if wanted is not None and wanted != client.model:
        raise EmbeddingUnavailable(
            f"{node.name}.{name} is computed by model {wanted}, and the configured one is {client.model}"
        )


def _without_values(rows: pa.Table, name: str) -> pa.Table:
    """The rows with one column emptied."""
    index = rows.schema.get_field_index(name)
    field = rows.schema.field(index)
    return rows.set_column(index, field, pa.nulls(rows.num_rows, field.type))


def with_vectors(
    rows: pa.Table, prop: Property, positions: pa.Array, sources: pa.ChunkedArray, client: EmbeddingClient
) -> pa.Table:
    """The rows with new vectors at some positions, computed from their sources."""
    dimension = prop.type.dimension or 0
    texts = sources.take(positions).to_pylist()
    vectors = client.embed(texts, dimension, "document")
    flat = pa.array(vectors.reshape(-1), pa.float32())
    computed = pa.FixedSizeListArray.from_arrays(flat, dimension)
    index = rows.schema.get_field_index(prop.name)
    present = rows.column(index).combine_chunks()
    where = pa.array(np.arange(rows.num_rows))
    pick = pc.index_in(where, value_set=positions.cast(pa.int64()))
    both = pa.concat_arrays([computed, present])
    chosen = both.take(pc.coalesce(pick.cast(pa.int64()), pc.add(where, len(computed))))
    return rows.set_column(index, rows.schema.field(index), chosen)
