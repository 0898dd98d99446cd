"""The Arrow form of types: what column each property becomes."""

from __future__ import annotations

from typing import Final

import lance
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import EntityType, NodeType
from omnigraph.lang.values import Scalar, ValueType

_SCALARS: Final = {
    Scalar.STRING: pa.string(),
    Scalar.BOOL: pa.bool_(),
    Scalar.I32: pa.int32(),
    Scalar.I64: pa.int64(),
    Scalar.U32: pa.uint32(),
    Scalar.U64: pa.uint64(),
    Scalar.F32: pa.float32(),
    Scalar.F64: pa.float64(),
    Scalar.DATE: pa.date32(),
    Scalar.DATETIME: pa.timestamp("ms", tz="UTC"),
}


def column(name: str, value_type: ValueType) -> pa.Field:
    """The column that stores a property."""
    if value_type.is_blob:
        return lance.blob_field(name, nullable=value_type.nullable)
    if value_type.dimension is not None:
        stored = pa.list_(pa.float32(), value_type.dimension)
    elif value_type.is_list:
        stored = pa.list_(_SCALARS[value_type.scalar])
    else:
        stored = _SCALARS[value_type.scalar]
    return pa.field(name, stored, nullable=value_type.nullable)


def in_type(values: pa.Array | pa.ChunkedArray, stored: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Values in a wider type; a date is the instant at which it begins."""
    if _begins_an_instant(values.type, stored):
        return pc.assume_timezone(values.cast(pa.timestamp("ms")), "UTC")
    return values if values.type == stored else values.cast(stored)


def can_be_in_type(values: pa.DataType, stored: pa.DataType) -> bool:
    """Can `in_type` give values of one type another one?"""
    if pa.types.is_list(values) and pa.types.is_list(stored):
        return can_be_in_type(values.value_type, stored.value_type)
    is_number = _is_number(values) and _is_number(stored)
    return bool(values == stored or is_number or _begins_an_instant(values, stored))


def _is_number(stored: pa.DataType) -> bool:
    return bool(pa.types.is_integer(stored) or pa.types.is_floating(stored))


def _begins_an_instant(values: pa.DataType, stored: pa.DataType) -> bool:
    return bool(pa.types.is_date(values) and pa.types.is_timestamp(stored))


def table_schema(entity: EntityType) -> pa.Schema:
    """The columns of a type's table: ids first, then properties by name."""
    own = ["id"] if isinstance(entity, NodeType) else ["id", "src", "dst"]
    fields = [pa.field(name, pa.string(), nullable=False) for name in own]
    return pa.schema(fields + [column(p.name, p.type) for p in entity.properties.values()])
