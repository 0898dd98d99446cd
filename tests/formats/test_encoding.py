"""What exports write is what loads read: every value of every type, bit for bit."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.bulk.everything import CATALOG, Row, batch_of, bits, rows
from tests.sampling import examples

from omnigraph.errors import ExportRefused
from omnigraph.formats.encoding import grouped, json_lines, parquet_schema, row_bytes, write_parquet
from omnigraph.formats.jsonl.blocks import read_block
from omnigraph.formats.jsonl.records import read_line
from omnigraph.lang.schema.catalog import EntityType, load_catalog

THING, PLAIN, TOUCHES = CATALOG.nodes["Thing"], CATALOG.nodes["Plain"], CATALOG.edges["Touches"]


def lines_of(entity: EntityType, batch: pa.RecordBatch) -> bytes:
    return b"".join(json_lines(entity, batch))


def same(entity: EntityType, found: Row, wanted: Row) -> bool:
    """Do two rows have the same values, where null is as good as missing?"""
    for name in entity.columns:
        prop = entity.properties.get(name)
        scalar = None if prop is None else prop.type.scalar
        if bits(found.get(name), scalar) != bits(wanted.get(name), scalar):
            return False
    return True


@pytest.mark.parametrize("entity", [THING, PLAIN, TOUCHES], ids=lambda entity: entity.name)
@settings(max_examples=examples(20, of=60), deadline=None)
@given(data=st.data())
def test_records_come_back_bit_for_bit(entity: EntityType, data: st.DataObject) -> None:
    wanted = data.draw(rows(entity))
    text = lines_of(entity, batch_of(entity, wanted))
    read = [read_line(line, CATALOG) for line in text.split(b"\n")[:-1]]
    assert len(read) == len(wanted)
    for record, row in zip(read, wanted, strict=True):
        assert record is not None
        assert record[0] is entity
        assert same(entity, record[1], row)


@settings(max_examples=examples(20, of=60), deadline=None)
@given(wanted=rows(THING))
def test_the_fast_reader_reads_the_same(wanted: list[Row]) -> None:
    batch = batch_of(THING, wanted)
    block = read_block(lines_of(THING, batch), CATALOG)
    assert block.unreadable == []
    if wanted:
        found = block.records["node:Thing"].rows
        plain = [name for name in THING.columns if name != "blob"]
        assert (
            found.select(plain)
            .cast(pa.schema([batch.schema.field(name) for name in plain]))
            .equals(pa.Table.from_batches([batch]).select(plain))
        )


def test_nulls_are_left_out_and_members_have_an_order() -> None:
    batch = batch_of(
        TOUCHES, [{"id": "e", "src": "a", "dst": 'b"', "weight": 1.0}, {"id": "f", "src": "", "dst": ""}]
    )
    assert lines_of(TOUCHES, batch).decode().splitlines() == [
        '{"edge":"Touches","from":"a","to":"b\\"","data":{"id":"e","weight":1.0}}',
        '{"edge":"Touches","from":"","to":"","data":{"id":"f"}}',
    ]


def test_a_number_whose_shortest_form_leads_elsewhere_through_64_bits_is_written_longer() -> None:
    """7.038531e-26 is the nearest to one 32-bit number, but as a 64-bit number it lies between two."""
    entity = load_catalog("node N { x: F32 }").nodes["N"]
    number = struct.unpack("<f", struct.pack("<I", 0x15AE43FD))[0]
    batch = pa.RecordBatch.from_pydict({"id": ["a", "b"], "x": pa.array([number, 0.1], pa.float32())})
    written = [json.loads(line)["data"]["x"] for line in lines_of(entity, batch).splitlines()]
    assert np.array(written).astype(np.float32).tobytes() == np.array([number, 0.1], np.float32).tobytes()
    assert written[1] == 0.1


def test_floats_always_have_a_decimal_point() -> None:
    entity = load_catalog("node N { x: F64?  y: F32?  v: Vector(3)?  l: [F64]?  n: I64? }").nodes["N"]
    numbers = [1.0, -0.0, 0.5, 1e30, -2.5e-300, 5e-324, 123456789012345680.0, None]
    some = [{"id": str(i), "x": x, "y": 2.0, "v": [1, 0, -3], "l": [x], "n": 1} for i, x in enumerate(numbers)]
    batch = batch_of(entity, some)
    written = [
        line.decode().partition('"x":')[2].partition(",")[0] for line in lines_of(entity, batch).splitlines()
    ]
    assert written == ["1.0", "-0.0", "0.5", "1.0e+30", "-2.5e-300", "5.0e-324", "1.2345678901234568e+17", ""]
    first = lines_of(entity, batch.slice(0, 1)).decode()
    assert first == '{"type":"N","data":{"id":"0","l":[1.0],"n":1,"v":[1.0,0.0,-3.0],"x":1.0,"y":2.0}}\n'


@settings(max_examples=examples(50, of=300), deadline=None)
@given(st.sampled_from([32, 64]), st.data())
def test_every_float_has_a_point_and_comes_back(width: Literal[32, 64], data: st.DataObject) -> None:
    catalog = load_catalog(f"node N {{ x: F{width} }}")
    floats = st.floats(allow_nan=False, allow_infinity=False, width=width)
    stored = np.array(data.draw(st.lists(floats)), dtype=f"float{width}")
    batch = pa.RecordBatch.from_pydict({"id": list(map(str, range(len(stored)))), "x": pa.array(stored)})
    text = lines_of(catalog.nodes["N"], batch)
    assert all("." in line.partition('"x":')[2] for line in text.decode().splitlines())
    block = read_block(text, catalog)
    found = block.records["node:N"].rows["x"].to_numpy() if len(stored) else stored
    assert found.tobytes() == stored.tobytes()


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_numbers_that_json_has_not_are_refused(number: float) -> None:
    batch = batch_of(TOUCHES, [{"id": "e", "src": "a", "dst": "b", "weight": number}])
    with pytest.raises(ExportRefused, match=r"Touches\.weight.*use Parquet"):
        lines_of(TOUCHES, batch)


def test_slices_and_halves_give_the_same_lines() -> None:
    found = [{"name": f"n{i}", "id": f"n{i}", "texts": ["x"] * i, "vector": [i, 0, 1]} for i in range(20)]
    batch = batch_of(THING, found)
    whole = lines_of(THING, batch)
    assert b"".join(lines_of(THING, batch.slice(start, 7)) for start in range(0, 20, 7)) == whole
    assert b"".join(json_lines(THING, batch, limit=1)) == whole


def cut(batch: pa.RecordBatch, places: Sequence[int]) -> list[pa.RecordBatch]:
    edges = [0, *sorted(place % (batch.num_rows + 1) for place in places), batch.num_rows]
    return [batch.slice(low, high - low) for low, high in pairwise(edges)]


@settings(max_examples=examples(20, of=60), deadline=None)
@given(
    wanted=rows(THING), places=st.lists(st.integers(0, 9)), most_rows=st.integers(1, 4), most=st.integers(1, 900)
)
def test_groups_do_not_depend_on_how_rows_come(
    wanted: list[Row], places: list[int], most_rows: int, most: int
) -> None:
    batch = batch_of(THING, wanted)
    once = [group.to_pylist() for group in grouped([batch], most_rows, most)]
    again = [group.to_pylist() for group in grouped(cut(batch, places), most_rows, most)]
    assert repr(once) == repr(again)
    assert repr([row for group in once for row in group]) == repr(batch.to_pylist())
    assert all(len(group) <= most_rows for group in once)
    sizes = row_bytes(batch).tolist()
    for group in once:
        taken, sizes = sizes[: len(group)], sizes[len(group) :]
        assert len(group) == 1 or sum(taken) <= most


def test_parquet_has_the_same_bytes_however_rows_come() -> None:
    found = [
        {"name": f"n{i}", "id": f"n{i}", "blob": b"b" * i, "texts": ["x"] * i, "u64": 2**64 - 1} for i in range(20)
    ]
    batch = batch_of(THING, found)
    files = []
    for batches in ([batch], cut(batch, [3, 4, 11])):
        sink = io.BytesIO()
        assert write_parquet(THING, batches, sink, rows_per_group=8) == 20
        files.append(sink.getvalue())
    assert files[0] == files[1]
    file = pq.ParquetFile(io.BytesIO(files[0]))
    assert file.metadata.num_row_groups == 3
    assert file.metadata.metadata[b"omnigraph.table"] == b"node:Thing"
    assert file.schema_arrow.equals(parquet_schema(THING))
    assert file.read()["blob"].to_pylist() == [row["blob"] for row in found]
