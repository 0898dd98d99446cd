"""Batches of columns, from Parquet or a DataFrame, into rows of a type; errors name the cell."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import SourceUnusable
from omnigraph.formats.cells import Conversion, RowErrors, convert_column, decoded, is_text, sound_texts
from omnigraph.formats.columns import table_schema
from omnigraph.formats.jsonl.blocks import Block, TypedRecords, Unreadable
from omnigraph.formats.jsonl.columns import key_ids
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.lang.values import INTEGERS, Scalar

_ENDS: Final = {"from": "src", "to": "dst"}


def check_columns(entity: EntityType, names: Sequence[str], source: str) -> None:
    """Refuse columns that a type has no property for, and an edge without its ends."""
    own = [_ENDS.get(name, name) if isinstance(entity, EdgeType) else name for name in names]
    for name, original in zip(own, names, strict=True):
        if name not in entity.columns:
            known = ", ".join(entity.columns)
            raise SourceUnusable(source, f"{entity.name} has no property '{original}'; its columns are {known}")
    if len(set(own)) < len(own):
        raise SourceUnusable(source, f"a column is there twice: {', '.join(names)}")
    if isinstance(entity, EdgeType) and not {"src", "dst"} <= set(own):
        raise SourceUnusable(source, f"rows of edge {entity.name} need the columns src and dst (or from and to)")


def read_columns(
    entity: EntityType,
    batch: pa.RecordBatch,
    numbered: Collection[str] = (),
    errors: RowErrors | None = None,
) -> Block:
    """The rows of a batch as records; line numbers are row numbers, from 1.

    ``numbered`` are the ends of edges that integers may name, as the keys of their nodes are integers; ``errors``
    are those of rows that are unreadable already.
    """
    errors = RowErrors(batch.num_rows) if errors is None else errors
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    if isinstance(entity, EdgeType):
        columns = {_ENDS.get(name, name): values for name, values in columns.items()}
    arrays: list[pa.Array] = []
    for wanted in table_schema(entity):
        prop = entity.properties.get(wanted.name)
        values = columns.get(wanted.name, pa.nulls(batch.num_rows))
        if prop is None:
            arrays.append(_id_column(wanted.name, values, errors, is_numbered=wanted.name in numbered))
            continue
        conversion = Conversion(f"{entity.name}.{prop.name} is {prop.type}", values.type)
        column = convert_column(prop.name, prop.type, wanted.type, values, conversion, errors)
        if not prop.type.nullable and prop.embed is None:
            reason = f"non-nullable property '{prop.name}' has null or invalid values"
            errors.add_where(pc.is_null(column), reason)
        arrays.append(column)
    nullable = pa.schema([wanted.with_nullable(True) for wanted in table_schema(entity)])
    rows = pa.Table.from_arrays(arrays, schema=nullable)
    if entity.key:
        rows = _with_key(entity, rows, errors)
    good = np.flatnonzero(~errors.mask)
    bad = [Unreadable(position + 1, 1, reason) for position, reason in sorted(errors.reasons.items())]
    kept = rows if len(good) == batch.num_rows else rows.take(pa.array(good))
    return Block({entity.table_key: TypedRecords(entity, kept, good + 1)}, bad, batch.num_rows)


def numbered_ends(catalog: Catalog, entity: EntityType) -> frozenset[str]:
    """The ends of an edge type whose nodes have an integer as their key, so that integers may name them."""
    if not isinstance(entity, EdgeType):
        return frozenset()
    ends = {"src": catalog.nodes[entity.source], "dst": catalog.nodes[entity.target]}
    return frozenset(
        end
        for end, node in ends.items()
        if len(node.key) == 1 and node.properties[node.key[0]].type.scalar in INTEGERS
    )


def _id_column(name: str, values: pa.Array, errors: RowErrors, *, is_numbered: bool) -> pa.Array:
    """A column of ids: of the row itself, or of an end of an edge."""
    values = sound_texts(decoded(values), f"'{name}'", errors)
    if is_numbered and pa.types.is_integer(values.type):
        values = values.cast(pa.string())
    reason = "'id' is a string" if name == "id" else f"'{name}' is the id of a node, a string"
    if is_text(values.type) or values.null_count == len(values):
        texts = values.cast(pa.string())
    else:
        errors.add_where(values.is_valid(), reason)
        texts = pa.nulls(len(values), pa.string())
    errors.add_where(pc.fill_null(pc.equal(texts, ""), False) if name == "id" else texts.is_null(), reason)
    return texts


def _with_key(entity: EntityType, rows: pa.Table, errors: RowErrors) -> pa.Table:
    """The rows with the ids of their keys. A row that brings another id is an error."""
    if len(entity.key) == 1 and entity.key_type(entity.key[0]).scalar is Scalar.STRING:
        canonical = rows[entity.key[0]].combine_chunks()
    else:
        canonical = _key_ids(entity, rows, errors)
    ids = rows["id"].combine_chunks()
    different = pc.fill_null(pc.not_equal(ids, canonical), False)
    for position in pc.indices_nonzero(different).to_pylist():
        errors.add([position], f"id '{ids[position]}' is not the id its key gives, '{canonical[position]}'")
    return rows.set_column(0, rows.schema.field(0), canonical)


def _key_ids(entity: EntityType, rows: pa.Table, errors: RowErrors) -> pa.Array:
    ids = key_ids(entity, {name: rows[name].combine_chunks() for name in entity.key})
    for position in pc.indices_nonzero(ids.is_null()).to_pylist():
        try:
            entity.id_of(rows.select(list(entity.key)).slice(position, 1).to_pylist()[0])
        except ValueError as error:
            errors.add([position], f"the key of {entity.name}: {error}")
    return ids
