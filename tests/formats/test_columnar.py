"""Rows that come as columns: every type that fits, and each cell that does not."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph.errors import SourceUnusable
from omnigraph.formats.columnar import check_columns, read_columns
from omnigraph.formats.jsonl.blocks import Block, read_block
from omnigraph.lang.schema.catalog import load_catalog

CATALOG = load_catalog("""
node Thing {
  s: String?  flag: Bool?  i: I32?  l: I64?  u: U32?  h: U64?  f: F32?  g: F64?  day: Date?  at: DateTime?
  kind: enum(red, green)?  words: [String]?  nums: [I32]?  weights: [F64]?  flags: [Bool]?  days: [Date]?
  ats: [DateTime]?  v: Vector(2)?  blob: Blob?
}
node Person { name: String @key  age: I32 }
node Seat { row: U32  on: Date  @key(row, on) }
node Doc { title: String?  meaning: Vector(2) @embed("title") }
edge Knows: Person -> Person { since: Date? }
""")
UTC = zoneinfo.ZoneInfo("UTC")
NEW_YEAR = dt.datetime(2024, 1, 1, tzinfo=UTC)
FIRST, LAST = -62_135_596_800_000, 253_402_300_799_999


def read(name: str, /, **columns: pa.Array) -> Block:
    entity = CATALOG.nodes.get(name) or CATALOG.edges[name]
    return read_columns(entity, pa.RecordBatch.from_pydict(columns))


def values(name: str, array: pa.Array) -> list[Any]:
    """What a column of Things becomes; all of it must fit."""
    block = read("Thing", **{name: array})
    assert block.unreadable == []
    found: list[Any] = block.records["node:Thing"].rows[name].to_pylist()
    return found


def refused(name: str, array: pa.Array) -> tuple[list[int], set[str]]:
    """The rows of a column of Things that do not fit, and why; the other rows must be there."""
    block = read("Thing", **{name: array})
    lines = [bad.line for bad in block.unreadable]
    kept = block.records["node:Thing"].lines.tolist()
    assert sorted(lines + kept) == list(range(1, len(array) + 1))
    assert block.lines == len(array)
    return lines, {bad.reason for bad in block.unreadable}


@pytest.mark.parametrize(
    ("name", "array", "expected"),
    [
        ("s", pa.array(["a", None, ""]), ["a", None, ""]),
        ("s", pa.array(["a", None], pa.large_string()), ["a", None]),
        ("s", pa.array(["a", None], pa.string_view()), ["a", None]),
        ("s", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
        ("flag", pa.array([True, None, False]), [True, None, False]),
        ("i", pa.array([1, None, -(2**31)], pa.int64()), [1, None, -(2**31)]),
        ("i", pa.array([255], pa.uint8()), [255]),
        ("i", pa.array([Decimal("7.00"), None], pa.decimal128(10, 2)), [7, None]),
        ("l", pa.array([2**63 - 1], pa.uint64()), [2**63 - 1]),
        ("u", pa.array([2**32 - 1, None], pa.int64()), [2**32 - 1, None]),
        ("h", pa.array([Decimal(2**64 - 1), None], pa.decimal128(20, 0)), [2**64 - 1, None]),
        ("f", pa.array([1, None], pa.int64()), [1.0, None]),
        ("f", pa.array([0.1, None], pa.float64()), [float(np.float32(0.1)), None]),
        ("f", pa.array([-0.0, 1.5], pa.float16()), [-0.0, 1.5]),
        ("g", pa.array([2**53 + 1, None], pa.int64()), [float(2**53), None]),
        ("g", pa.array([Decimal("1.25")], pa.decimal128(5, 2)), [1.25]),
        ("day", pa.array([dt.date(2024, 2, 29), None]), [dt.date(2024, 2, 29), None]),
        ("day", pa.array([dt.date(2024, 2, 29), None], pa.date64()), [dt.date(2024, 2, 29), None]),
        ("day", pa.array([19782, None], pa.int64()), [dt.date(2024, 2, 29), None]),
        ("day", pa.array([1], pa.uint8()), [dt.date(1970, 1, 2)]),
        ("day", pa.array(["2024-02-29", None]), [dt.date(2024, 2, 29), None]),
        ("day", pa.array([NEW_YEAR, None], pa.timestamp("us", "UTC")), [dt.date(2024, 1, 1), None]),
        ("day", pa.array([-719_162, 2_932_896], pa.int32()), [dt.date.min, dt.date.max]),
        ("at", pa.array([NEW_YEAR, None], pa.timestamp("ns", "UTC")), [NEW_YEAR, None]),
        ("at", pa.array([NEW_YEAR.replace(tzinfo=None)], pa.timestamp("us")), [NEW_YEAR]),
        ("at", pa.array([NEW_YEAR], pa.timestamp("s", "Europe/Berlin")), [NEW_YEAR]),
        ("at", pa.array([dt.date(2024, 1, 1), None]), [NEW_YEAR, None]),
        ("at", pa.array([dt.date(2024, 1, 1)], pa.date64()), [NEW_YEAR]),
        ("at", pa.array([0, None], pa.int32()), [dt.datetime(1970, 1, 1, tzinfo=UTC), None]),
        ("at", pa.array(["2024-01-01", "2024-01-01T01:00+01:00", None]), [NEW_YEAR, NEW_YEAR, None]),
        ("kind", pa.array(["red", None]), ["red", None]),
        ("words", pa.array([["a", ""], None, []]), [["a", ""], None, []]),
        ("words", pa.array([["a"], None], pa.large_list(pa.large_string())), [["a"], None]),
        ("nums", pa.array([[1], None, [], [2, 3]], pa.list_(pa.int64()))[1:], [None, [], [2, 3]]),
        ("nums", pa.array([[1, 2], None], pa.list_(pa.int16(), 2)), [[1, 2], None]),
        ("weights", pa.array([[1, 2], None], pa.list_(pa.int64())), [[1.0, 2.0], None]),
        ("flags", pa.array([[True], None]), [[True], None]),
        ("days", pa.array([["2024-02-29"], None]), [[dt.date(2024, 2, 29)], None]),
        ("ats", pa.array([[NEW_YEAR], None], pa.list_(pa.timestamp("us", "UTC"))), [[NEW_YEAR], None]),
        ("v", pa.array([[1, 2], None], pa.list_(pa.int64())), [[1.0, 2.0], None]),
        ("v", pa.array([[1, 2], None, [0.5, -0.0]], pa.list_(pa.float32(), 2)), [[1.0, 2.0], None, [0.5, -0.0]]),
        ("v", pa.array([[1, 2], [3, 4]], pa.list_(pa.field("element", pa.float64()))), [[1.0, 2.0], [3.0, 4.0]]),
        ("s", pa.nulls(2), [None, None]),
        ("v", pa.nulls(2), [None, None]),
        ("words", pa.nulls(2), [None, None]),
        ("i", pa.array([None, None], pa.string()), [None, None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_values_that_fit(name: str, array: pa.Array, expected: list[Any]) -> None:
    assert repr(values(name, array)) == repr(expected)


def test_instants_are_cut_to_the_millisecond_downwards() -> None:
    """As in JSON, also before 1970."""
    array = pa.array([-1, -1_000_000, -1_000_001, 1_999_999], pa.timestamp("ns", "UTC"))
    cut = values("at", array)
    texts = ["1969-12-31T23:59:59.999999999Z", "1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.998999999Z"]
    lines = "\n".join(f'{{"type": "Thing", "data": {{"at": "{text}"}}}}' for text in texts)
    assert cut[:3] == read_block(lines.encode(), CATALOG).records["node:Thing"].rows["at"].to_pylist()
    assert cut[3].microsecond == 1_000


TEXTS = pa.array(["b", None, "a", "b"])


@pytest.mark.parametrize(
    "array",
    [
        TEXTS.cast(pa.string_view()),
        TEXTS.dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, None, 0, 1]), pa.array(["a", "b"], pa.string_view())),
        pc.run_end_encode(TEXTS),
        pa.ExtensionArray.from_storage(pa.json_(), TEXTS),
    ],
    ids=lambda array: str(array.type),
)
def test_texts_however_arrow_holds_them(array: pa.Array) -> None:
    block = read("Thing", s=array)
    assert block.records["node:Thing"].rows["s"].to_pylist() == TEXTS.to_pylist()
    known = read("Knows", src=array, dst=array).records["edge:Knows"]
    assert known.rows["src"].to_pylist() == known.rows["dst"].to_pylist() == ["b", "a", "b"]


def test_uuids_are_texts() -> None:
    block = read("Thing", s=pa.array([bytes(range(16)), None], pa.uuid()))
    assert block.records["node:Thing"].rows["s"].to_pylist() == ["00010203-0405-0607-0809-0a0b0c0d0e0f", None]


@pytest.mark.parametrize("kind", [pa.list_view(pa.int32()), pa.large_list_view(pa.int32())], ids=str)
def test_views_of_lists(kind: pa.DataType) -> None:
    """Arrow's own cast of them to lists loses items where their offsets do not rise."""
    lists = [[1], [2, 3], None, [], [4]]
    views = pa.chunked_array([pa.array(lists, kind), pa.array(lists, kind)]).combine_chunks()
    assert read("Thing", nums=views).records["node:Thing"].rows["nums"].to_pylist() == lists * 2
    vectors = pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_view(pa.float32()))
    assert read("Thing", v=vectors).records["node:Thing"].rows["v"].to_pylist() == vectors.to_pylist()


def test_blobs() -> None:
    for array in (
        pa.array([b"\x00", None, b""]),
        pa.array([b"\x00", None, b""], pa.large_binary()),
        pa.array(["base64:AA==", None, "base64:"]),
    ):
        block = read("Thing", blob=array)
        rows = block.records["node:Thing"].rows["blob"].combine_chunks()
        assert [None if row is None else row["data"] for row in rows.to_pylist()] == [b"\x00", None, b""]
    assert refused("blob", pa.array(["base64:A", None, "base64:?"]))[0] == [1, 3]


@pytest.mark.parametrize(
    ("name", "array", "lines", "said"),
    [
        ("s", pa.array([1, None]), [1], "Thing.s is String?: a value of type int64 does not fit"),
        ("s", pa.array([b"a", None]), [1], "type binary does not fit"),
        ("s", pa.array([True]), [1], "type bool does not fit"),
        ("flag", pa.array([1, None, 0]), [1, 3], "type int64 does not fit"),
        ("flag", pa.array(["true"]), [1], "type string does not fit"),
        ("i", pa.array([1, 2**31, None, -(2**31) - 1]), [2, 4], "exceeds I32 range"),
        ("i", pa.array([1.0, None]), [1], "type double does not fit"),
        ("i", pa.array(["1", None]), [1], "type string does not fit"),
        ("i", pa.array([True, None]), [1], "type bool does not fit"),
        ("i", pa.array([Decimal("1.5"), Decimal("2.0")], pa.decimal128(3, 1)), [1], "1.5 is not an integer"),
        ("u", pa.array([-1, 0]), [1], "-1 exceeds U32 range"),
        ("h", pa.array([Decimal(-1), Decimal(2**64)], pa.decimal128(21, 0)), [1, 2], "exceeds U64 range"),
        ("f", pa.array([3.5e38, float("nan"), 1.0]), [1, 2], "not finite, or exceeds F32 range"),
        ("g", pa.array([float("inf"), 1e308, None]), [1], "not finite, or exceeds F64 range"),
        ("f", pa.array(["1"]), [1], "type string does not fit"),
        ("day", pa.array(["2024-02-30", "2024-02-29", "29.2.2024"]), [1, 3], None),
        ("day", pa.array(["2024-02-30"]), [1], '"2024-02-30" does not fit: day is out of range for month'),
        ("day", pa.array([NEW_YEAR, NEW_YEAR.replace(hour=1)]), [2], "a time of day is no part of a date"),
        ("day", pa.array([-719_163, 0, 2_932_897]), [1, 3], "outside the years 1 to 9999"),
        ("day", pa.array([2**64 - 1, 0], pa.uint64()), [1], "outside the years 1 to 9999"),
        ("day", pa.array([1.5]), [1], "type double does not fit"),
        ("at", pa.array(["noon", "2024-01-01T00:00:00Z"]), [1], "a datetime is written"),
        ("at", pa.array([FIRST - 1, FIRST, LAST, LAST + 1]), [1, 4], "outside the years 1 to 9999"),
        ("at", pa.array([2**62, 0], pa.timestamp("s")), [1], "outside the years 1 to 9999"),
        ("at", pa.array([True]), [1], "type bool does not fit"),
        ("words", pa.array([["a", None], ["b"], None]), [1], "an item is null"),
        ("words", pa.array([[1], None]), [1], "type list<item: int64> does not fit"),
        ("words", pa.array(["a", None]), [1], "type string does not fit"),
        ("nums", pa.array([["1"], None]), [1], "does not fit"),
        ("nums", pa.array([[1.0], None]), [1], "does not fit"),
        ("nums", pa.array([[1, 2], [3, 2**31], [], None]), [2], "2147483648 exceeds I32 range"),
        ("nums", pa.array([[True]]), [1], "does not fit"),
        ("weights", pa.array([[1.0], [float("nan")], None]), [2], "not finite"),
        ("days", pa.array([["2024-02-30"], ["2024-02-29"]]), [1], None),
        ("v", pa.array([[1.0], [1.0, 2.0], [1.0, 2.0, 3.0], []]), [1, 3, 4], None),
        ("v", pa.array([[1.0, float("nan")], [1.0, 2.0]], pa.list_(pa.float32(), 2)), [1], "not finite"),
        ("v", pa.array([[1.0, None], [1.0, 2.0], None], pa.list_(pa.float32(), 2)), [1], "an item is null"),
        ("v", pa.array([["a", "b"]]), [1], "does not fit"),
        ("v", pa.array([1.0]), [1], "type double does not fit"),
        ("i", pa.array([{"a": 1}, None]), [1], "does not fit"),
        ("nums", pa.array([{"a": 1}, None]), [1], "does not fit"),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else None,
)
def test_cells_that_do_not_fit(name: str, array: pa.Array, lines: list[int], said: str | None) -> None:
    found, reasons = refused(name, array)
    assert found == lines
    assert all(reason.startswith(f"Thing.{name} is ") for reason in reasons)
    if said is not None:
        assert all(said in reason for reason in reasons)


def test_a_vector_of_the_wrong_length_is_told_as_in_json() -> None:
    block = read_block(b'{"type": "Thing", "data": {"v": [1, 2, 3]}}', CATALOG)
    assert refused("v", pa.array([[1.0, 2.0, 3.0]]))[1] == {bad.reason for bad in block.unreadable}


def test_keys_and_ids() -> None:
    block = read(
        "Person",
        name=pa.array(["a", None, "c", "d"]),
        age=pa.array([1, 2, None, 4]),
        id=pa.array([None, None, "c", "x"]),
    )
    assert [(bad.line, bad.reason) for bad in block.unreadable] == [
        (2, "non-nullable property 'name' has null or invalid values"),
        (3, "non-nullable property 'age' has null or invalid values"),
        (4, "id 'x' is not the id its key gives, 'd'"),
    ]
    assert block.records["node:Person"].rows["id"].to_pylist() == ["a"]
    seats = read("Seat", row=pa.array([1, 2, -1]), on=pa.array(["2024-02-29", None, "2024-02-29"]))
    assert seats.records["node:Seat"].rows["id"].to_pylist() == ['["19782","1"]']
    assert [bad.line for bad in seats.unreadable] == [2, 3]


def test_rows_without_keys_bring_ids_or_get_some() -> None:
    block = read("Thing", id=pa.array(["a", None, ""]))
    assert block.records["node:Thing"].rows["id"].to_pylist() == ["a", None]
    assert [(bad.line, bad.reason) for bad in block.unreadable] == [(3, "'id' is a string")]
    assert [bad.reason for bad in read("Thing", id=pa.array([7])).unreadable] == ["'id' is a string"]


def test_edges_name_their_ends_in_either_way() -> None:
    for source, target in (("src", "dst"), ("from", "to")):
        ends = {source: pa.array(["a", None, "c"]), target: pa.array(["b", "b", "b"])}
        block = read("Knows", **ends, since=pa.array(["2024-01-01", None, None]))
        rows = block.records["edge:Knows"].rows
        assert rows.select(["src", "dst"]).to_pylist() == [{"src": "a", "dst": "b"}, {"src": "c", "dst": "b"}]
        assert [(bad.line, bad.reason) for bad in block.unreadable] == [(2, "'src' is the id of a node, a string")]
    numbers = read("Knows", src=pa.array([1]), dst=pa.array(["b"]))
    assert [bad.reason for bad in numbers.unreadable] == ["'src' is the id of a node, a string"]


def test_a_vector_that_will_be_computed_may_be_missing() -> None:
    assert read("Doc", title=pa.array(["a", None])).unreadable == []


def test_columns_that_a_type_does_not_have() -> None:
    thing, knows = CATALOG.nodes["Thing"], CATALOG.edges["Knows"]
    check_columns(thing, ["s", "id"], "x")
    check_columns(knows, ["from", "to", "since"], "x")
    for entity, names, said in (
        (thing, ["s", "S"], "Thing has no property 'S'; its columns are id, "),
        (thing, ["from"], "Thing has no property 'from'"),
        (knows, ["src"], "need the columns src and dst"),
        (knows, ["src", "from", "to"], "a column is there twice"),
    ):
        with pytest.raises(SourceUnusable, match=said):
            check_columns(entity, names, "x")
