"""The forms in which results are written, from tables made by hand."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer

from omnigraph.cli.results import Format, chosen_format, write_result
from omnigraph.errors import RequestError
from omnigraph.read.result.result import Result, Target

PEOPLE = pa.table(
    {
        "p.name": ["Ada", 'Bo "the\nbat", Jr', None],
        "age": pa.array([36, None, 5], pa.int32()),
        "tags": [["a", "b"], [], None],
        "score": [1.0, float("nan"), None],
    }
)
NOBODY = PEOPLE.slice(0, 0)
TWICE = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])


def written(table: pa.Table, form: Format, folder: Path, target: Target | None = None) -> bytes:
    """What ends up in a file."""
    out = folder / "out"
    write_result(Result("people", target or Target("main", None), "01C", table), form, out)
    return out.read_bytes()


def text(table: pa.Table, form: Format, folder: Path, target: Target | None = None) -> str:
    return written(table, form, folder, target).decode()


def test_table(tmp_path: Path) -> None:
    assert text(PEOPLE, Format.TABLE, tmp_path).splitlines() == [
        "3 rows from branch main via people",
        "p.name            | age  | tags      | score",
        "------------------+------+-----------+------",
        'Ada               | 36   | ["a","b"] | 1.0',
        'Bo "the\\nbat", Jr | null | []        | NaN',
        "null              | 5    | null      | null",
    ]
    assert text(NOBODY, Format.TABLE, tmp_path, Target(None, 7)).splitlines() == [
        "0 rows from snapshot 7 via people",
        "p.name | age | tags | score",
        "-------+-----+------+------",
    ]


def test_table_cuts_wide_columns(tmp_path: Path) -> None:
    lines = text(pa.table({"a": ["x" * 80, "y" * 81], "b": [1, 2]}), Format.TABLE, tmp_path).splitlines()
    assert lines[3] == "x" * 80 + " | 1"
    assert lines[4] == "y" * 79 + "… | 2"


def test_kv(tmp_path: Path) -> None:
    assert text(PEOPLE.slice(1, 2), Format.KV, tmp_path).splitlines() == [
        "2 rows from branch main via people",
        "row 1",
        'p.name: Bo "the\\nbat", Jr',
        "age: null",
        "tags: []",
        "score: NaN",
        "row 2",
        "p.name: null",
        "age: 5",
        "tags: null",
        "score: null",
    ]
    assert text(NOBODY, Format.KV, tmp_path) == "0 rows from branch main via people\n(no rows)\n"


def test_csv(tmp_path: Path) -> None:
    shown = text(PEOPLE, Format.CSV, tmp_path)
    assert shown.splitlines()[:2] == ["p.name,age,tags,score", 'Ada,36,"[""a"",""b""]",1.0']
    assert list(csv.reader(io.StringIO(shown, newline=""))) == [
        ["p.name", "age", "tags", "score"],
        ["Ada", "36", '["a","b"]', "1.0"],
        ['Bo "the\nbat", Jr', "null", "[]", "NaN"],
        ["null", "5", "null", "null"],
    ]
    assert text(NOBODY, Format.CSV, tmp_path) == "p.name,age,tags,score\n"


@pytest.mark.parametrize("cell", ["", " a ", "a;b", "a\rb", "a\nb", 'a"b', ",", "'", "\ufeffx", "é"])
def test_csv_cells_are_read_back(cell: str, tmp_path: Path) -> None:
    shown = text(pa.table({"x": [cell, "end"]}), Format.CSV, tmp_path)
    assert list(csv.reader(io.StringIO(shown, newline=""))) == [["x"], [cell], ["end"]]


def test_json_is_one_object_with_a_line_per_row(tmp_path: Path) -> None:
    for table in (PEOPLE, PEOPLE.slice(0, 1), NOBODY, TWICE):
        shown = text(table, Format.JSON, tmp_path)
        assert json.loads(shown) == Result("people", Target("main", None), "01C", table).as_json()
        assert list(json.loads(shown))[-2:] == ["rows", "graph_commit_id"]
    assert text(PEOPLE.slice(0, 1), Format.JSON, tmp_path).splitlines()[5:8] == [
        '  "rows": [',
        '    {"age": 36, "p.name": "Ada", "score": 1.0, "tags": ["a", "b"]}',
        "  ],",
    ]


def test_jsonl(tmp_path: Path) -> None:
    lines = text(PEOPLE, Format.JSONL, tmp_path, Target(None, "01C")).splitlines()
    assert lines[0] == '{"age":36,"p.name":"Ada","score":1.0,"tags":["a","b"]}'
    assert json.loads(lines[1])["score"] == "NaN"
    assert len(lines) == 3


def test_repeated_names_keep_their_columns_where_there_are_columns(tmp_path: Path) -> None:
    assert text(TWICE, Format.CSV, tmp_path) == "x,x\n1,2\n"
    assert text(TWICE, Format.TABLE, tmp_path).splitlines()[1:] == ["x | x", "--+--", "1 | 2"]
    assert text(TWICE, Format.KV, tmp_path).splitlines()[2:] == ["x: 1", "x: 2"]
    assert text(TWICE, Format.JSONL, tmp_path).splitlines() == ['{"x":2}']
    assert pa.ipc.open_stream(written(TWICE, Format.ARROW, tmp_path)).read_all().equals(TWICE)
    parquet = pq.read_table(io.BytesIO(written(TWICE, Format.PARQUET, tmp_path)))
    assert parquet.to_pylist() == [{"x": 1, "x_2": 2}]


def test_binary_forms_keep_types_and_values(tmp_path: Path) -> None:
    for table in (PEOPLE.slice(0, 1), NOBODY):
        assert pa.ipc.open_stream(written(table, Format.ARROW, tmp_path)).read_all().equals(table)
        assert pq.read_table(io.BytesIO(written(table, Format.PARQUET, tmp_path))).equals(table)


def test_json_and_another_form_contradict_each_other() -> None:
    assert chosen_format(None, False, None) is Format.TABLE
    assert chosen_format(Format.JSON, True, None) is Format.JSON
    with pytest.raises(typer.BadParameter, match="not both"):
        chosen_format(Format.CSV, True, None)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    nowhere = tmp_path / "missing" / "x.csv"
    with pytest.raises(typer.BadParameter, match="there is no directory"):
        chosen_format(Format.CSV, False, nowhere)
    with pytest.raises(RequestError, match=r"cannot write .*x\.csv: No such file"):
        write_result(Result("q", Target("main", None), None, PEOPLE), Format.CSV, nowhere)
