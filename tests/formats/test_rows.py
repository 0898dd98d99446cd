"""Making rows: Python values into the columns of a table, blobs and vectors included."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from ulid import ULID

from omnigraph.errors import BadValue
from omnigraph.formats.columns import table_schema
from omnigraph.formats.rows import addresses_of, blob_cell, fresh_id, fresh_ids, rows_of, with_fresh_ids
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.write.delta import last_per_id, without

CATALOG = load_catalog("""
node Thing {
  key: String @key
  i: I32?  u: U64?  f: F32?  b: Bool?  day: Date?  at: DateTime?  words: [String]?  v: Vector(2)?  blob: Blob?
}
edge Knows: Thing -> Thing { since: Date? }
""")
THING = CATALOG.nodes["Thing"]


def test_columns_that_are_not_given_are_null() -> None:
    rows = rows_of(THING, {"id": ["a", "b"], "i": [1, None]}, 2)
    assert rows.schema.names == table_schema(THING).names
    assert rows["i"].to_pylist() == [1, None]
    assert rows["v"].null_count == rows["blob"].null_count == rows["key"].null_count == 2


def test_no_rows_have_the_columns_too() -> None:
    assert rows_of(CATALOG.edges["Knows"], {}, 0).schema.names == ["id", "src", "dst", "since"]


def test_every_type() -> None:
    values: dict[str, Any] = {
        "id": "a",
        "key": "a",
        "i": -(2**31),
        "u": 2**64 - 1,
        "f": 0.5,
        "b": False,
        "day": dt.date(1, 1, 1),
        "at": dt.datetime(2024, 2, 29, 10, tzinfo=dt.timezone(dt.timedelta(hours=1))),
        "words": ["", "é"],
        "v": [1, -0.5],
    }
    rows = rows_of(THING, {name: [value] for name, value in values.items()}, 1)
    assert {name: rows[name][0].as_py() for name in values} == values
    assert rows["at"].type == pa.timestamp("ms", tz="UTC")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("i", 2**31),
        ("i", 10**30),
        ("i", "1"),
        ("u", -1),
        ("b", 1),
        ("key", 5),
        ("key", "\ud800"),
        ("v", [1]),
        ("v", [1, 2, 3]),
        ("words", ["\ud800"]),
        ("day", "2024-01-01"),
    ],
)
def test_what_a_column_cannot_hold(name: str, value: Any) -> None:
    with pytest.raises(BadValue, match=name):
        rows_of(THING, {"id": ["a"], name: [value]}, 1)


def test_blobs_are_bytes_or_base64() -> None:
    rows = rows_of(THING, {"id": ["a", "b", "c"], "blob": [b"\0\1", "base64:AAE=", None]}, 3)
    assert rows["blob"].null_count == 1
    assert [cell and cell["data"] for cell in rows["blob"].to_pylist()] == [b"\0\1", b"\0\1", None]


@pytest.mark.parametrize("value", ["base64:?", "base64:A", 5, ["x"]])
def test_other_blobs_are_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="photo: "):
        blob_cell("photo", value)


def test_other_texts_are_addresses() -> None:
    assert blob_cell("photo", "https://example.org/x") == "https://example.org/x"
    rows = rows_of(CATALOG.nodes["Thing"], {"key": ["a", "b"], "blob": ["file.png", b""]}, 2)
    assert addresses_of(rows["blob"].combine_chunks()).to_pylist() == ["file.png", None]


def test_empty_blobs_are_there() -> None:
    assert blob_cell("photo", "base64:") == b""
    assert blob_cell("photo", None) is None


def test_new_ids_are_different_and_have_26_characters() -> None:
    made = fresh_ids(10_000)
    made.validate(full=True)
    ids = [fresh_id(), *made.to_pylist()]
    assert len(set(ids)) == 10_001
    assert all(str(ULID.from_str(value)) == value for value in ids)
    age = dt.datetime.now(dt.UTC) - ULID.from_str(ids[-1]).datetime
    assert dt.timedelta(seconds=-1) < age < dt.timedelta(minutes=5)
    assert len(set("".join(value[10:] for value in ids))) == 32
    assert ids[1:] == sorted(ids[1:])
    assert not {value[:20] for value in ids} & {value[:20] for value in fresh_ids(1).to_pylist()}
    assert fresh_ids(0).equals(pa.array([], pa.string()))


def test_ids_made_in_one_millisecond_differ() -> None:
    """The ULIDs of one process count on within a millisecond; ids of two calls then had the same beginning."""
    made = [value for _ in range(2000) for value in fresh_ids(3).to_pylist()]
    assert len(set(made)) == len(made)


@pytest.mark.parametrize("given", [["a", None, "b", None], [None, None], ["a"], []])
def test_new_ids_for_rows_without_one(given: list[str | None]) -> None:
    rows = pa.table({"id": pa.array(given, pa.string()), "n": pa.array(range(len(given)))})
    for table in (rows, pa.concat_tables([rows.slice(0, 1), rows.slice(1)])):
        filled = with_fresh_ids(table)
        assert filled.schema == rows.schema
        assert filled["n"].to_pylist() == rows["n"].to_pylist()
        ids = filled["id"].to_pylist()
        assert len({*ids}) == len(ids)
        assert all(len(made) == 26 if was is None else made == was for was, made in zip(given, ids, strict=True))


def test_the_last_row_of_an_id_stays_where_it_is() -> None:
    rows = pa.table({"id": ["a", "b", "a", "c", "b", "b"], "n": [1, 2, 3, 4, 5, 6]})
    assert last_per_id(rows).to_pydict() == {"id": ["a", "c", "b"], "n": [3, 4, 6]}
    assert last_per_id(rows.slice(1, 3)).to_pydict() == {"id": ["b", "a", "c"], "n": [2, 3, 4]}
    assert last_per_id(rows.slice(0, 0)).num_rows == 0
    chunked = pa.concat_tables([rows.slice(0, 2), rows.slice(2)])
    assert last_per_id(chunked).to_pydict() == last_per_id(rows).to_pydict()


def test_rows_without_some() -> None:
    rows = pa.table({"id": ["a", "b", "c"], "src": ["x", "y", "x"]})
    assert without(rows, pa.array(["b", "z"]))["id"].to_pylist() == ["a", "c"]
    assert without(rows, pa.array(["x"]), "src")["id"].to_pylist() == ["b"]
    assert without(rows, pa.array([], pa.string())) is rows
