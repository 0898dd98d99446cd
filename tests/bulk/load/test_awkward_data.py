"""What a stranger's files, DataFrames and dictionaries are like, and what a load says about them."""

from __future__ import annotations

import datetime as dt
import gzip
import uuid
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.loading import new_graph

import omnigraph
from omnigraph.errors import BadValue, InvalidArgument, OmniError, RecordError, SourceUnusable
from omnigraph.settings import BulkSettings

SCHEMA = """
node T { code: String @key  s: String?  i: I32?  l: I64?  f: F64?  d: Date?  t: DateTime?  e: enum(red, green)? }
edge R: T -> T { w: I32? }
"""
STAGED = BulkSettings(small_load=0)


def said(home: Path, given: Any, **options: Any) -> str:
    """The error of a load, which has to be ours."""
    graph = new_graph(home / "g", SCHEMA, **options)
    with pytest.raises(OmniError) as caught:
        graph.load(nodes={"T": given}, mode="append")
    return str(caught.value)


def loaded(home: Path, given: Any) -> list[dict[str, Any]]:
    """The rows of a load, without what has no value."""
    graph = new_graph(home / "g", SCHEMA)
    graph.load(nodes={"T": given}, mode="append")
    found = graph.query("query q() { match { $t: T } return { $t.* } order { $t.code } }").rows
    return [{k: v for k, v in row["t"].items() if v is not None and k != "id"} for row in found]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("código,s\n1,b\n".encode("latin-1"), "its first line is not UTF-8"),
        ("code,s\n1,b\n".encode("utf-16"), "it is UTF-16"),
        (gzip.compress(b"code,s\n1,b\n", mtime=0), "packed with gzip, and its name does not end in .gz"),
        (b"PK\x03\x04\x00\x00", "perhaps a spreadsheet"),
        (b'code,"s\n1,b\n', "a quote opens the name of a column and is never closed"),
        (b"code;s\n1;b\n", "`delimiter: \";\"` in a mapping file, or Source(…, delimiter=';')"),
        (b"code\ts\n1\tb\n", '`delimiter: "\\t"` in a mapping file'),
        (b"code,s,\n1,b,\n", "no property for a column without a name"),
        (b"", "it is empty"),
        (b"\xef\xbb\xbf\n", "it is empty"),
    ],
)
def test_files_that_are_no_csv_of_the_type(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert reason in said(tmp_path, path)


@pytest.mark.parametrize("content", [b"code,s", b"code,s\r\n", b'\xef\xbb\xbf\n"code",s\n\n', b"code,s\r"])
def test_a_header_without_rows_is_an_empty_load(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    assert new_graph(tmp_path / "g", SCHEMA).load(nodes={"T": path}, mode="append").commit is None


@pytest.mark.parametrize("settings", [BulkSettings(), STAGED], ids=["in memory", "staged"])
@pytest.mark.parametrize("end", [b"", b"\n", b'\n3,"",\n'])
def test_a_quote_that_is_never_closed_swallows_no_rows(tmp_path: Path, end: bytes, settings: BulkSettings) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b'code,s\n1,"a\nb"\n2,"open\n3,c' + end)
    graph = new_graph(tmp_path / "g", SCHEMA, settings=settings)
    with pytest.raises(RecordError) as caught:
        graph.load(nodes={"T": path}, mode="append")
    [problem] = caught.value.problems
    assert (problem.line, problem.message[:38]) == (4, "a quote opens a value of this row and ")
    done = graph.load(nodes={"T": path}, mode="append", skip_bad=True)
    assert dict(done.nodes) == {"T": 1}


def test_bad_dates_and_numbers_are_shown(tmp_path: Path) -> None:
    rows = [{"code": "1", "d": "01/02/2020"}, {"code": "2", "t": "2020-01-01 noon"}, {"code": "3", "i": 2**31}]
    frame = pd.DataFrame(rows)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_json(tmp_path / "t.jsonl", orient="records", lines=True)
    for given in (tmp_path / "t.csv", tmp_path / "t.jsonl", pa.Table.from_pandas(frame.astype({"i": "Int64"}))):
        lines = said(tmp_path / type(given).__name__ / str(given)[-4:-1], given).splitlines()
        assert len(lines) == 3
        for line, value in zip(lines, ("01/02/2020", "2020-01-01 noon", "2147483648"), strict=True):
            assert value in line


def test_edges_without_ends_are_told_how_to_name_them(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("origin,dest,w\n1,2,3\n", encoding="utf-8")
    graph = new_graph(tmp_path / "g", SCHEMA)
    with pytest.raises(SourceUnusable, match=r"it has origin, dest, w: .*:from=COLUMN,to=COLUMN"):
        graph.load(edges={"R": tmp_path / "r.csv"}, mode="append")


POLARS = pl.DataFrame(
    {
        "code": pl.Series(["a", "b"], dtype=pl.Categorical),
        "s": pl.Series([None, "x"], dtype=pl.Categorical),
        "e": pl.Series(["red", None], dtype=pl.Enum(["red", "green"])),
        "f": pl.Series([Decimal("1.25"), None], dtype=pl.Decimal(10, 2)),
    }
)


def test_categories_of_polars(tmp_path: Path) -> None:
    expected = [{"code": "a", "e": "red", "f": 1.25}, {"code": "b", "s": "x"}]
    assert loaded(tmp_path, POLARS) == expected
    more = POLARS.with_columns(code=pl.Series(["c", "d"], dtype=pl.Categorical))
    assert len(loaded(tmp_path / "more", pl.concat([POLARS, more], rechunk=False))) == 4


def test_categories_of_pandas_and_its_missing_values(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "code": pd.Categorical(["1", "2"]),
            "e": pd.Categorical(["red", None]),
            "i": [3.0, np.nan],
            "l": pd.array([2**60, None], dtype="Int64"),
            "t": [pd.NaT, pd.Timestamp("2020-01-01 10:00", tz="Europe/Madrid")],
            "s": [None, pd.NA],
        }
    )
    instant = dt.datetime(2020, 1, 1, 9, tzinfo=dt.UTC)
    assert loaded(tmp_path, frame) == [{"code": "1", "e": "red", "i": 3, "l": 2**60}, {"code": "2", "t": instant}]
    assert loaded(tmp_path / "dictionaries", frame.drop(columns=["e", "i"]).to_dict("records")) == [
        {"code": "1", "l": 2**60},
        {"code": "2", "t": instant},
    ]


def test_one_fraction_in_a_column_of_pandas_is_the_error_of_its_row(tmp_path: Path) -> None:
    frame = pd.DataFrame({"code": ["1", "2", "3"], "i": [3.0, 3.5, None]})
    assert said(tmp_path, frame).endswith(":2:1: T.i is I32?: 3.5 is not an exact integer")
    graph = new_graph(tmp_path / "rest", SCHEMA)
    assert dict(graph.load(nodes={"T": frame}, mode="append", skip_bad=True).nodes) == {"T": 2}


FRAMES: dict[str, Any] = {
    "Arrow cannot read it: Expected bytes, got a 'int' object": pd.DataFrame({"code": ["1", 2]}),
    "a column is there twice: code, s, s": pd.DataFrame([["1", "a", "b"]], columns=["code", "s", "s"]),
    "a text has U+D800, half of a character": pd.DataFrame({"code": ["1"], "s": ["a\ud800"]}),
    "Conversion failed for column f": pd.DataFrame({"code": ["1"], "f": [1j]}),
    "Arrow cannot read it: Invalid": pl.DataFrame({"code": ["1"], "l": pl.Series([1], dtype=pl.Int128)}),
}


@pytest.mark.parametrize("reason", FRAMES)
def test_frames_that_cannot_be_rows(tmp_path: Path, reason: str) -> None:
    found = said(tmp_path, FRAMES[reason])
    assert found.startswith("cannot load <DataFrame of T>: ")
    assert reason in found


def test_the_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    frame = pd.DataFrame({"s": ["a"]}, index=pd.Index(["1"], name="code"))
    assert "reset_index()" in said(tmp_path, frame)
    assert loaded(tmp_path / "reset", frame.reset_index()) == [{"code": "1", "s": "a"}]


def test_columns_of_pandas_that_leave_zeros_out(tmp_path: Path) -> None:
    frame = pd.DataFrame({"code": ["1", "2"], "i": pd.arrays.SparseArray([0, 7])})
    assert loaded(tmp_path, frame) == [{"code": "1", "i": 0}, {"code": "2", "i": 7}]


def not_utf8(kind: pa.DataType) -> pa.Array:
    """Three texts, of which the second is not UTF-8."""
    raw = pa.array([b"a", b"b\xff", b"c"], pa.large_binary() if kind == pa.large_string() else pa.binary())
    return pa.Array.from_buffers(kind, len(raw), raw.buffers())


BYTES: dict[str, tuple[str, pa.Array]] = {
    "text": ("T.s is String?", not_utf8(pa.string())),
    "key": ("T.code is String", not_utf8(pa.string())),
    "long": ("T.s is String?", not_utf8(pa.large_string())),
    "category": ("T.s is String?", pa.DictionaryArray.from_arrays([0, 1, 2], not_utf8(pa.string()))),
    "list": ("T.w is [String]?", pa.ListArray.from_arrays([0, 1, 2, 3], not_utf8(pa.string()))),
    "day": ("T.d is Date?", not_utf8(pa.string())),
}


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (kind, form)
        for kind in BYTES
        for form in ("table", "parquet", "arrow")
        if (kind, form) != ("category", "parquet")  # Arrow itself refuses that
    ],
)
def test_texts_that_are_not_utf8_are_bad_records(tmp_path: Path, kind: str, form: str) -> None:
    """Arrow and Parquet hand them on as texts; a table with one of them could not be read any more."""
    (target, column) = BYTES[kind]
    name = target.partition(".")[2].partition(" ")[0]
    table = pa.table({"code": pa.array(["1", "2", "3"])} | {name: column})
    given: Any = table
    if form == "parquet":
        given = tmp_path / "t.parquet"
        pq.write_table(table, given)
    elif form == "arrow":
        given = tmp_path / "t.arrow"
        with pa.ipc.new_file(given, table.schema) as writer:
            writer.write_table(table)
    schema = SCHEMA.replace("e: enum", "w: [String]?  e: enum")
    graph = new_graph(tmp_path / "g", schema)
    with pytest.raises(RecordError) as caught:
        graph.load(nodes={"T": given}, mode="append", max_errors=9)
    assert f":2:1: {target}: a text is not UTF-8: byte 0xff" in str(caught.value)
    if kind != "day":
        assert dict(graph.load(nodes={"T": given}, mode="append", skip_bad=True).nodes) == {"T": 2}
        assert len(graph.query("query q() { match { $t: T } return { $t.* } }").rows) == 2


def test_ends_of_edges_that_are_not_utf8_are_bad_records(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    rows = pa.table({"src": not_utf8(pa.string()), "dst": ["a", "b", "c"]})
    with pytest.raises(RecordError, match=r":2:1: 'src': a text is not UTF-8: byte 0xff"):
        graph.load(edges={"R": rows}, mode="append")


def test_files_of_arrow_whose_parts_do_not_fit_are_named(tmp_path: Path) -> None:
    path, table = tmp_path / "t.arrow", pa.table({"code": ["first", "second", "third"]})
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    whole, ends = path.read_bytes(), np.array([0, 5, 11, 16], np.int32).tobytes()
    assert whole.count(ends) == 1
    path.write_bytes(whole.replace(ends, np.array([0, 5, 9_999, 16], np.int32).tobytes()))
    found = said(tmp_path, path)
    assert "t.arrow: it cannot be read as Arrow IPC: Offset invariant failure" in found


def test_values_of_databases_in_dictionaries(tmp_path: Path) -> None:
    key = uuid.uuid4()
    row = {
        "code": key,
        "f": Decimal("1.5"),
        "i": Decimal("2.0"),
        "t": np.datetime64("2020-01-01T10:00:00.5", "ns"),
        "d": np.datetime64("2020-01-01"),
    }
    instant = dt.datetime(2020, 1, 1, 10, 0, 0, 500_000, tzinfo=dt.UTC)
    [found] = loaded(tmp_path, [row])
    assert found == {"code": str(key), "f": 1.5, "i": 2, "t": instant, "d": dt.date(2020, 1, 1)}


@pytest.mark.parametrize("value", [dt.timedelta(1), {("a",): 1}])
def test_values_that_no_record_holds_are_told_with_their_record(tmp_path: Path, value: object) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    with pytest.raises(BadValue, match=r"^record 2: a record cannot"):
        graph.load(nodes={"T": [{"code": "1"}, {"code": "2", "s": value}]}, mode="append")


def test_tables_without_a_type_are_told_where_they_go(tmp_path: Path) -> None:
    graph = new_graph(tmp_path / "g", SCHEMA)
    with pytest.raises(InvalidArgument, match=r"as nodes=.* and edges="):
        graph.load(pa.table({"code": ["1"]}), mode="append")


def test_errors_of_the_caller_stay_his_own(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", SCHEMA)
    with pytest.raises(ZeroDivisionError):
        graph.load(nodes={"T": ({"code": "1", "i": 1 // i} for i in (1, 0))}, mode="append")
    assert graph.load(nodes={"T": [{"code": "1"}]}, mode="append").total_entities == 1
