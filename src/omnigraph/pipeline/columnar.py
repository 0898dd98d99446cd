"""Rows that come as columns, from Parquet or a DataFrame, into the columns of a type; each bad cell is named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import SourceUnusable
from omnigraph.lang.schema.catalog import EdgeType, NodeType, Property
from omnigraph.lang.values import FLOATS, INTEGERS, Scalar
from omnigraph.storage.columns import column as stored_column
from omnigraph.storage.columns import table_schema
from omnigraph.write.blocks import Block, TypedRecords, Unreadable
from omnigraph.write.rows import BadValue, blob_bytes

_ENDS: Final = {"from": "src", "to": "dst"}
_NUMBERS: Final = INTEGERS | FLOATS


class _Rejected:
    """The rows of a batch that cannot be read, each with its first reason."""

    def __init__(self, rows: int) -> None:
        self.mask = np.zeros(rows, bool)
        self.reasons: dict[int, str] = {}

    def add(self, positions: Sequence[int], reason: str) -> None:
        for position in positions:
            if not self.mask[position]:
                self.mask[position] = True
                self.reasons[position] = reason

    def add_where(self, mask: pa.Array, reason: str) -> None:
        self.add(pc.indices_nonzero(mask).to_pylist(), reason)


def check_columns(entity: NodeType | EdgeType, names: Sequence[str], source: str) -> None:
    """Refuse columns that a type has no property for, and an edge without its ends."""
    own = [_ENDS.get(name, name) if isinstance(entity, EdgeType) else name for name in names]
    for name, given in zip(own, names, strict=True):
        if name not in entity.columns:
            known = ", ".join(entity.columns)
            raise SourceUnusable(source, f"{entity.name} has no property '{given}'; its columns are {known}")
    if len(set(own)) < len(own):
        raise SourceUnusable(source, f"a column is there twice: {', '.join(names)}")
    if isinstance(entity, EdgeType) and not {"src", "dst"} <= set(own):
        raise SourceUnusable(source, f"rows of edge {entity.name} need the columns src and dst (or from and to)")


def read_columns(entity: NodeType | EdgeType, batch: pa.RecordBatch) -> Block:
    """The rows of a batch as records; line numbers are row numbers, from 1."""
    rejected = _Rejected(batch.num_rows)
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    if isinstance(entity, EdgeType):
        given = {_ENDS.get(name, name): values for name, values in given.items()}
    arrays: list[pa.Array] = []
    for wanted in table_schema(entity):
        prop = entity.properties.get(wanted.name)
        values = given.get(wanted.name, pa.nulls(batch.num_rows))
        if prop is None:
            arrays.append(_own(wanted.name, values, rejected))
            continue
        converted = _converted(entity, prop, values, rejected)
        if not prop.type.nullable and prop.embed is None:
            reason = f"non-nullable property '{prop.name}' has null or invalid values"
            rejected.add_where(pc.is_null(converted), reason)
        arrays.append(converted)
    nullable = pa.schema([wanted.with_nullable(True) for wanted in table_schema(entity)])
    rows = pa.Table.from_arrays(arrays, schema=nullable)
    if isinstance(entity, NodeType) and entity.key:
        rows = _with_key(entity, rows, rejected)
    good = np.flatnonzero(~rejected.mask)
    bad = [Unreadable(position + 1, 1, reason) for position, reason in sorted(rejected.reasons.items())]
    kept = rows if len(good) == batch.num_rows else rows.take(pa.array(good))
    return Block({entity.table_key: TypedRecords(entity, kept, good + 1)}, bad, batch.num_rows)


def _own(name: str, values: pa.Array, rejected: _Rejected) -> pa.Array:
    """A column of ids: of the row itself, or of the ends of an edge."""
    texts = _cast(values, pa.string(), f"'{name}' is a string", rejected)
    if name == "id":
        rejected.add_where(pc.fill_null(pc.equal(texts, ""), False), "'id' is a string")
    else:
        rejected.add_where(pc.is_null(texts), f"'{name}' is the id of a node, a string")
    return texts


def _with_key(node: NodeType, rows: pa.Table, rejected: _Rejected) -> pa.Table:
    """The rows with the ids that their keys give; an id that came with a row must be that one."""
    if len(node.key) == 1 and node.properties[node.key[0]].type.scalar is Scalar.STRING:
        canonical = rows[node.key[0]].combine_chunks()
    else:
        values = rows.select(list(node.key)).to_pylist()
        canonical = pa.array([_key_id(node, row) for row in values], pa.string())
    given = rows["id"].combine_chunks()
    different = pc.fill_null(pc.not_equal(given, canonical), False)
    for position in pc.indices_nonzero(different).to_pylist():
        said = f"id '{given[position]}' is not the id its key gives, '{canonical[position]}'"
        rejected.add([position], said)
    return rows.set_column(0, rows.schema.field(0), canonical)


def _key_id(node: NodeType, values: dict[str, object]) -> str | None:
    try:
        return node.id_of(values)
    except ValueError:
        return None


def _converted(entity: NodeType | EdgeType, prop: Property, values: pa.Array, rejected: _Rejected) -> pa.Array:
    wanted = prop.type
    said = f"{entity.name}.{prop.name} is {wanted}: a value of type {values.type} does not fit"
    if wanted.is_blob:
        return _blobs(prop, values, rejected)
    target = stored_column(prop.name, wanted).type
    if values.type == target:
        converted = values
    elif _is_number(values.type) != (wanted.scalar in _NUMBERS) and not _is_nested(values.type) and len(values):
        converted = _texts(values, target, said, rejected)
    else:
        converted = _cast(values, target, said, rejected)
    if wanted.is_list or wanted.is_vector:
        _refuse_null_items(converted, said, rejected)
        flat = converted.flatten() if not wanted.is_vector else None
        if flat is not None and wanted.scalar in FLOATS and not _all_finite(flat):
            _refuse_lists(converted, said, rejected)
        return converted
    if wanted.scalar in FLOATS:
        rejected.add_where(pc.fill_null(pc.invert(pc.is_finite(converted)), False), f"{said} (out of range)")
    return converted


def _texts(values: pa.Array, target: pa.DataType, said: str, rejected: _Rejected) -> pa.Array:
    """Values that are no numbers where numbers are wanted, or the reverse: only dates and times may come as text
    or as numbers."""
    temporal = pa.types.is_date(target) or pa.types.is_timestamp(target)
    if temporal or pa.types.is_null(values.type) or pa.types.is_decimal(values.type):
        return _cast(values, target, said, rejected)
    rejected.add_where(pc.is_valid(values), said)
    return pa.nulls(len(values), target)


def _cast(values: pa.Array, target: pa.DataType, said: str, rejected: _Rejected) -> pa.Array:
    """The values with another type; those that do not fit are rejected one by one."""
    try:
        return _cast_all(values, target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        pass
    kept = np.ones(len(values), bool)
    for position in range(len(values)):
        try:
            _cast_all(values.slice(position, 1), target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            kept[position] = False
    rejected.add(np.flatnonzero(~kept).tolist(), said)
    fitting = pc.if_else(pa.array(kept), values, pa.scalar(None, values.type))
    return pa.nulls(len(values), target) if not kept.any() else _cast_all(fitting, target)


def _cast_all(values: pa.Array, target: pa.DataType) -> pa.Array:
    source = values.type
    if pa.types.is_floating(source) and pa.types.is_integer(target):
        raise pa.ArrowInvalid("a number with a fraction is no integer")
    if pa.types.is_boolean(source) != pa.types.is_boolean(target) and not pa.types.is_null(source):
        raise pa.ArrowInvalid("a truth value is only that")
    if pa.types.is_string(target) and not _is_text(source) and not pa.types.is_null(source):
        raise pa.ArrowInvalid("only text is text")
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        in_utc = values if source.tz is not None else pc.assume_timezone(values, "UTC")
        return in_utc.cast(target, safe=False)
    return values.cast(target, safe=not pa.types.is_floating(target))


def _blobs(prop: Property, values: pa.Array, rejected: _Rejected) -> pa.Array:
    found: list[bytes | None] = []
    for position, value in enumerate(values.to_pylist()):
        try:
            found.append(blob_bytes(prop.name, value))
        except BadValue as error:
            rejected.add([position], error.reason)
            found.append(None)
    return lance.blob_array(found)


def _refuse_null_items(lists: pa.Array, said: str, rejected: _Rejected) -> None:
    if lists.flatten().null_count:
        _refuse_lists(lists, said, rejected)


def _refuse_lists(lists: pa.Array, said: str, rejected: _Rejected) -> None:
    """Reject the lists that hold something which is no value of their type."""
    for position, items in enumerate(lists.to_pylist()):
        if items is not None and any(
            item is None or item in (float("inf"), float("-inf")) or item != item for item in items
        ):
            rejected.add([position], said)


def _is_value(item: object) -> bool:
    return item is not None and not (isinstance(item, float) and not math.isfinite(item))


def _all_finite(values: pa.Array) -> bool:
    return bool(pc.all(pc.is_finite(values), min_count=0).as_py())


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _is_nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind))


def _is_text(kind: pa.DataType) -> bool:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(inner) or pa.types.is_large_string(inner) or inner == pa.string_view())
