"""A schema with every type of property, and rows that are hard to write down and read back."""

from __future__ import annotations

import datetime as dt
import struct
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from omnigraph.bulk.export.parts import whole_rows
from omnigraph.bulk.pieces import pieces_of
from omnigraph.formats.rows import rows_of
from omnigraph.graph import Graph
from omnigraph.lang.schema.catalog import EdgeType, EntityType, load_catalog
from omnigraph.lang.values import INTEGER_BOUNDS, Scalar

SCHEMA = """
node Thing {
  name: String @key
  text: String?  flag: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
  day: Date?  at: DateTime?  blob: Blob?  vector: Vector(3)?
  texts: [String]?  flags: [Bool]?  i32s: [I32]?  i64s: [I64]?  u32s: [U32]?  u64s: [U64]?
  f32s: [F32]?  f64s: [F64]?  days: [Date]?  ats: [DateTime]?
}
node Plain { note: String? }
edge Touches: Thing -> Thing { weight: F64?  raw: Blob? }
"""
CATALOG = load_catalog(SCHEMA)

Row = Mapping[str, Any]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    ['"', "\\", "\\n\n", "\x00\x1f\x7f", "\u2028é😀", 'a"b\\c', "null", ""]
)
_F32 = st.integers(0, 2**32 - 1).map(lambda bits: struct.unpack("<f", struct.pack("<I", bits))[0])
_FINITE_F32 = _F32.filter(lambda number: np.isfinite(number) and abs(number) < 3.4028234e38)
_INSTANTS = st.integers(-62_135_596_800_000, 253_402_300_799_999).map(
    lambda ms: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
)
_SCALARS: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.STRING: _TEXT,
    Scalar.BOOL: st.booleans(),
    Scalar.F32: _FINITE_F32 | st.sampled_from([-0.0, 7.038530691851239e-26]),
    Scalar.F64: st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([-0.0, 5e-324, sys.float_info.max, 0.1, 1e22, 1.0]),
    Scalar.DATE: st.dates(),
    Scalar.DATETIME: _INSTANTS,
    Scalar.BLOB: st.binary(max_size=9),
    **{
        scalar: st.integers(low, high) | st.sampled_from([low, high])
        for scalar, (low, high) in INTEGER_BOUNDS.items()
    },
}


def rows(entity: EntityType) -> st.SearchStrategy[list[Row]]:
    """Rows of a type; each has an id of its own."""
    columns: dict[str, st.SearchStrategy[Any]] = {}
    for prop in entity.properties.values():
        values = _SCALARS[prop.type.scalar]
        if prop.type.dimension is not None:
            values = st.lists(values, min_size=prop.type.dimension, max_size=prop.type.dimension)
        elif prop.type.is_list:
            values = st.lists(values, max_size=3)
        columns[prop.name] = st.none() | values if prop.type.nullable else values
    if isinstance(entity, EdgeType):
        columns |= {"src": _TEXT, "dst": _TEXT}
        columns["id"] = _TEXT.filter(bool)
        return st.lists(st.fixed_dictionaries(columns), max_size=6)
    if not entity.key:
        columns["id"] = _TEXT.filter(bool)
        return st.lists(st.fixed_dictionaries(columns), max_size=6)
    return st.lists(st.fixed_dictionaries(columns), max_size=6).map(
        lambda found: [{**row, "id": entity.id_of(row)} for row in found if row["name"]]
    )


def batch_of(entity: EntityType, rows: Sequence[Row]) -> pa.RecordBatch:
    """Rows as an export reads them: blobs whole."""
    blobs = {prop.name for prop in entity.properties.values() if prop.type.is_blob}
    typed = rows_of(entity, {name: [row.get(name) for row in rows] for name in entity.columns}, len(rows))
    columns = [
        pa.array([row.get(name) for row in rows], pa.large_binary())
        if name in blobs
        else typed[name].combine_chunks()
        for name in typed.column_names
    ]
    return pa.RecordBatch.from_arrays(columns, names=typed.column_names)


def bits(value: Any, scalar: Scalar | None = None) -> Any:
    """A value of which two are equal if all their bits are."""
    if isinstance(value, list):
        return [bits(item, scalar) for item in value]
    if isinstance(value, float):
        return struct.pack("<f" if scalar is Scalar.F32 else "<d", value)
    return value


def content(graph: Graph, branch: str = "main") -> dict[str, list[dict[str, Any]]]:
    """Everything in a graph, bit for bit: rows by id, by table."""
    state = graph.snapshot(branch)
    pinned = state
    found: dict[str, list[dict[str, Any]]] = {}
    for key in state.tables:
        batches = [batch for piece in pieces_of(pinned, key) for batch in whole_rows(piece)]
        rows = pa.Table.from_batches(batches).sort_by("id").to_pylist() if batches else []
        found[key] = [{name: bits(value) for name, value in row.items()} for row in rows]
    return found


def difficult_things(count: int) -> list[dict[str, Any]]:
    """Records that use every property, most of them at its limits."""
    numbers = np.random.default_rng(7)
    low, high = INTEGER_BOUNDS[Scalar.I64]
    data = [
        {
            "name": f'{index:05d} "é\\\n\x01',
            "text": None if index % 3 else "\u2028😀\t",
            "flag": bool(index % 2),
            "i32": -(2**31) + index,
            "i64": low if index % 2 else high,
            "u32": 2**32 - 1 - index,
            "u64": 2**64 - 1 - index,
            "f32": float(np.float32(numbers.standard_normal() * 10.0 ** int(numbers.integers(-30, 30)))),
            "f64": -0.0
            if not index
            else float(numbers.standard_normal() * 10.0 ** int(numbers.integers(-300, 300))),
            "day": "0001-01-01" if index % 2 else "9999-12-31",
            "at": f"2024-02-29T23:59:59.{index % 1000:03d}Z",
            "blob": bytes(numbers.integers(0, 256, index % 7).astype(np.uint8)),
            "vector": None if index % 4 == 1 else [float(np.float32(n)) for n in numbers.standard_normal(3)],
            "texts": [] if index % 5 == 0 else ["", "a,b", '["'],
            "flags": [True, False],
            "u64s": [2**64 - 1, 0],
            "f32s": [-0.0, 1.5],
            "f64s": [0.1, -0.0, 1e300],
            "days": ["1970-01-01"],
            "ats": ["1969-12-31T23:59:59.999Z"],
        }
        for index in range(count)
    ]
    things = [{"type": "Thing", "data": {k: v for k, v in one.items() if v is not None}} for one in data]
    edges = [
        {
            "edge": "Touches",
            "from": data[index]["name"],
            "to": data[(index * 7 + 1) % count]["name"],
            "data": {"weight": index / 3, "raw": b"\x00\xff" * (index % 3)},
        }
        for index in range(count)
    ]
    plain = [{"type": "Plain", "data": {"note": f"n{index}"}} for index in range(min(3, count))]
    return things + plain + edges
