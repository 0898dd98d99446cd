"""Whole nodes and edges in a result: the columns of their fields, put together as structs."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.lang.query import ir


def nested(columns: Sequence[ir.Column], table: pa.Table) -> pa.Table:
    """The columns of a result from those that were computed. A struct without an id is null: there is no node."""
    if all(column.field is None for column in columns):
        return table
    names, made = [], []
    at = 0
    for fields in ir.result_columns(columns):
        parts = table.columns[at : at + len(fields)]
        at += len(fields)
        names.append(fields[0].name)
        made.append(parts[0] if fields[0].field is None else _struct(fields, parts))
    return pa.Table.from_arrays(made, names)


def _struct(fields: Sequence[ir.Column], parts: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray:
    arrays = [part.combine_chunks() if part.num_chunks != 1 else part.chunk(0) for part in parts]
    kinds = [pa.field(one.field, array.type) for one, array in zip(fields, arrays, strict=True)]
    missing = arrays[0].is_null() if arrays[0].null_count else None
    return pa.chunked_array([pa.StructArray.from_arrays(arrays, fields=kinds, mask=missing)])
