"""What a query returns: rows, data frames, JSON, and what people see of it."""

from __future__ import annotations

import datetime as dt
import json
import math
import pickle
import sys
from dataclasses import FrozenInstanceError
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from omnigraph.errors import RequestError
from omnigraph.read.result import result as results
from omnigraph.read.result.result import Result, Target, javascript_safe, with_distinct_names

MAIN = Target("main", None)
BORN = dt.date(1815, 12, 10)
SEEN = dt.datetime(2024, 2, 29, 13, 5, 6, 70_000, tzinfo=dt.UTC)
INSTANT = pa.timestamp("ms", tz="UTC")


def result(**columns: pa.Array) -> Result:
    """A result with these columns."""
    return Result("q", MAIN, "01C", pa.table(columns))


def column(*values: object, kind: pa.DataType) -> Result:
    """A result with one column `x`."""
    return result(x=pa.array(values, kind))


def json_of(*values: object, kind: pa.DataType) -> list[Any]:
    """What the values of a column are in JSON."""
    return [row["x"] for row in column(*values, kind=kind).json_rows()]


class TestTarget:
    def test_it_is_a_branch_or_a_snapshot(self) -> None:
        assert MAIN.as_json() == {"branch": "main"}
        assert Target("main", "01C").as_json() == {"snapshot": "01C"}
        assert Target(None, 7).as_json() == {"snapshot": 7}
        assert [str(t) for t in (MAIN, Target(None, 7))] == ["branch main", "snapshot 7"]


class TestRows:
    def test_values_are_pythons_own(self) -> None:
        found = result(
            name=pa.array(["Ada", None]),
            age=pa.array([36, None], pa.uint64()),
            ratio=pa.array([0.5, None], pa.float32()),
            born=pa.array([BORN, None]),
            seen=pa.array([SEEN, None], INSTANT),
            tags=pa.array([["a", None], None]),
            days=pa.array([[BORN], []], pa.list_(pa.date32())),
            times=pa.array([[SEEN, None], None], pa.list_(INSTANT)),
            vector=pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            right=pa.array([True, None]),
        )
        assert found.rows == [
            {
                "name": "Ada",
                "age": 36,
                "ratio": 0.5,
                "born": BORN,
                "seen": SEEN,
                "tags": ["a", None],
                "days": [BORN],
                "times": [SEEN, None],
                "vector": [1.0, 2.0],
                "right": True,
            },
            dict.fromkeys(found.columns) | {"days": []},
        ]
        assert found.rows[0]["seen"].tzinfo is dt.UTC
        assert list(found) == found.rows
        assert found.rows is found.rows

    def test_of_columns_with_the_same_name_the_last_one_stays(self) -> None:
        table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], names=["b", "a", "b"])
        found = Result("q", MAIN, None, table)
        assert found.columns == ["b", "a", "b"]
        assert found.rows == [{"b": 3, "a": 2}]
        assert found.json_rows() == [{"a": 2, "b": 3}]
        assert found.to_arrow() is table

    def test_many_rows_come_in_parts_that_fit_together(self) -> None:
        count = 2 * results.BATCH_ROWS + 5
        numbers = pa.chunked_array([pa.array(range(1000)), pa.array(range(1000, count))])
        vectors = pa.array([[float(n)] * 2 if n % 3 else None for n in range(count)], pa.list_(pa.float32(), 2))
        found = result(n=numbers, v=vectors)
        assert len(found) == count
        assert [row["n"] for row in found] == list(range(count))
        assert [row["v"] for row in found.json_rows()] == vectors.to_pylist()
        assert [len(part) for part in found.parts()] == [results.BATCH_ROWS, results.BATCH_ROWS, 5]

    def test_nothing_found_is_a_result_too(self) -> None:
        found = column(kind=pa.list_(pa.float32(), 4))
        assert (len(found), found.rows, found.columns, bool(found)) == (0, [], ["x"], False)
        assert found.as_json()["rows"] == []

    def test_it_cannot_be_changed_and_can_be_pickled(self) -> None:
        found = column(1, 2, kind=pa.int32())
        with pytest.raises(FrozenInstanceError):
            found.query_name = "other"  # type: ignore[misc]
        again: Result = pickle.loads(pickle.dumps(found))
        assert (again.rows, again.target, again.to_arrow().schema) == (found.rows, MAIN, found.to_arrow().schema)


class TestJson:
    def test_the_envelope(self) -> None:
        found = result(b=pa.array([1, 2]), a=pa.array(["x", None]))
        said = found.as_json()
        assert list(said) == ["query_name", "target", "row_count", "columns", "rows", "graph_commit_id"]
        assert said == {
            "query_name": "q",
            "target": {"branch": "main"},
            "row_count": 2,
            "columns": ["b", "a"],
            "rows": [{"a": "x", "b": 1}, {"a": None, "b": 2}],
            "graph_commit_id": "01C",
        }
        assert list(said["rows"][0]) == ["a", "b"]

    def test_integers_are_exact_and_booleans_stay(self) -> None:
        assert json_of(2**64 - 1, None, kind=pa.uint64()) == [2**64 - 1, None]
        assert json_of(-(2**63), kind=pa.int64()) == [-(2**63)]
        assert json_of(True, None, kind=pa.bool_()) == [True, None]

    def test_floats_are_numbers_unless_json_has_none(self) -> None:
        assert json.dumps(json_of(30, None, -0.0, kind=pa.float64())) == "[30.0, null, -0.0]"
        assert json_of(0.1, kind=pa.float32()) == [0.10000000149011612]
        odd = (math.nan, math.inf, -math.inf, None, 1.5)
        assert json_of(*odd, kind=pa.float64()) == ["NaN", "Infinity", "-Infinity", None, 1.5]
        assert json_of(odd, None, (2.0,), kind=pa.list_(pa.float32())) == [
            ["NaN", "Infinity", "-Infinity", None, 1.5],
            None,
            [2.0],
        ]

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (dt.date(1, 1, 1), "0001-01-01"),
            (BORN, "1815-12-10"),
            (dt.date(9999, 12, 31), "9999-12-31"),
        ],
    )
    def test_dates(self, value: dt.date, text: str) -> None:
        assert json_of(value, None, kind=pa.date32()) == [text, None]
        assert json_of([value, None], kind=pa.list_(pa.date32())) == [[text, None]]

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (SEEN, "2024-02-29T13:05:06.070Z"),
            (dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC), "1969-12-31T23:59:59.999Z"),
            (dt.datetime(1, 1, 1, tzinfo=dt.UTC), "0001-01-01T00:00:00.000Z"),
            (dt.datetime(9999, 12, 31, 23, 59, 59, tzinfo=dt.UTC), "9999-12-31T23:59:59.000Z"),
        ],
    )
    def test_instants(self, value: dt.datetime, text: str) -> None:
        assert json_of(value, None, kind=INSTANT) == [text, None]
        assert json_of([None, value], kind=pa.list_(INSTANT)) == [[None, text]]

    def test_slices_of_lists_keep_their_own_items(self) -> None:
        vectors = pa.array([[1, 2], None, [3, 4], [5, 6]], pa.list_(pa.float32(), 2)).slice(1, 2)
        lists = pa.array([["a"], ["b", "c"], [], ["d"]]).slice(1, 2)
        assert result(v=vectors, t=lists).json_rows() == [
            {"t": ["b", "c"], "v": None},
            {"t": [], "v": [3.0, 4.0]},
        ]

    def test_javascript_gets_large_integers_as_text(self) -> None:
        largest = 2**53 - 1
        value = {"rows": [{"n": largest, "m": largest + 1}, {"n": [-largest - 1, True, 1.5, None]}], "t": "x"}
        assert javascript_safe(value) == {
            "rows": [{"n": largest, "m": "9007199254740992"}, {"n": ["-9007199254740992", True, 1.5, None]}],
            "t": "x",
        }


class TestDataFrames:
    def test_pandas_keeps_integers_exact_beside_nulls(self) -> None:
        found = result(
            n=pa.array([2**62 + 1, None]),
            u=pa.array([2**64 - 1, None], pa.uint64()),
            b=pa.array([True, None]),
            t=pa.array(["x", None]),
            seen=pa.array([SEEN, None], INSTANT),
        )
        frame = found.to_pandas()
        assert list(frame.columns) == found.columns
        assert frame["n"].iloc[0] == 2**62 + 1
        assert frame["u"].iloc[0] == 2**64 - 1
        assert frame["b"].to_list() == [True, pd.NA]
        assert frame["seen"].iloc[0] == pd.Timestamp(SEEN)
        assert list(frame.isna().iloc[1]) == [True] * 5

    def test_polars_has_the_same_rows(self) -> None:
        found = result(
            n=pa.array([2**62 + 1, None]),
            born=pa.array([BORN, None]),
            v=pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
        )
        frame = found.to_polars()
        assert isinstance(frame, pl.DataFrame)
        assert frame.to_dicts() == found.rows

    def test_repeated_names(self) -> None:
        arrays = [pa.array([n]) for n in range(4)]
        table = pa.Table.from_arrays(arrays, names=["a", "a", "a_2", "a"])
        assert with_distinct_names(table).column_names == ["a", "a_3", "a_2", "a_4"]
        found = Result("q", MAIN, None, table)
        assert found.to_polars().to_dicts() == [{"a": 0, "a_3": 1, "a_2": 2, "a_4": 3}]
        assert list(found.to_pandas().columns) == ["a", "a", "a_2", "a"]

    @pytest.mark.parametrize("package", ["pandas", "polars"])
    def test_a_missing_library_is_named_with_its_extra(
        self, package: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(RequestError, match=rf"needs {package}.*pip install 'omnigraph\[{package}\]'"):
            getattr(column(1, kind=pa.int32()), f"to_{package}")()


class TestDisplay:
    def test_repr_shows_the_first_rows_aligned(self) -> None:
        found = result(name=pa.array(["Ada", "Grace\nHopper", "李"]), age=pa.array([36, None, 5]))
        assert repr(found).splitlines() == [
            "<Result of q on branch main: 3 rows>",
            "name          | age",
            "--------------+-----",
            "Ada           | 36",
            "Grace\\nHopper | null",
            "李            | 5",
        ]

    def test_repr_of_much_is_short(self) -> None:
        found = result(text=pa.array(["x" * 1000] * 50))
        lines = repr(found).splitlines()
        assert (len(lines), lines[0], lines[-1]) == (14, "<Result of q on branch main: 50 rows>", "… and 40 more")
        assert lines[3] == "x" * 39 + "…"
        assert repr(column(kind=pa.string())) == "<Result of q on branch main: 0 rows>"

    def test_a_terminal_receives_no_control_characters(self) -> None:
        shown = repr(column("a\x1b[31mb\x07\x9bc\td", kind=pa.string()))
        assert shown.endswith("a\\x1b[31mb\\x07\\x9bc\\td")

    def test_wide_characters_count_twice(self) -> None:
        shown = repr(column("李" * 40, kind=pa.string())).splitlines()
        assert shown[-1] == "李" * 19 + "…"

    def test_html_is_escaped_and_counts_its_rows(self) -> None:
        table = pa.Table.from_arrays([pa.array(["<script>alert(1)</script>", "a&b"])], names=["<b>"])
        shown = Result("q<i>", Target("x&y", None), None, table)._repr_html_()
        assert "<script>" not in shown
        assert "<th>&lt;b&gt;</th>" in shown
        assert "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in shown
        assert "<p>2 rows from branch x&amp;y via q&lt;i&gt;</p>" in shown

    def test_html_of_much_says_how_much_it_shows(self) -> None:
        shown = result(n=pa.array(range(100)))._repr_html_()
        assert shown.count("<td>") == 20
        assert "100 rows from branch main via q, the first 20 shown" in shown
        assert "1 row from" in column(1, kind=pa.int32())._repr_html_()


class TestIndexing:
    def test_rows_by_number_and_slice(self) -> None:
        found = result(n=pa.array([1, 2, 3]))
        assert (found[0], found[-1], found[1:]) == ({"n": 1}, {"n": 3}, [{"n": 2}, {"n": 3}])
        with pytest.raises(IndexError):
            found[3]

    def test_a_column_by_its_name(self) -> None:
        found = result(n=pa.array([1, None]), seen=pa.array([SEEN, None], INSTANT))
        assert (found["n"], found["seen"]) == ([1, None], [SEEN, None])
        with pytest.raises(KeyError, match="there is no column 'm'; there are n, seen"):
            found["m"]

    def test_of_columns_with_one_name_the_last_as_in_rows(self) -> None:
        twice = Result("q", MAIN, None, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"]))
        assert (twice["n"], twice[0]) == ([2], {"n": 2})


def test_other_libraries_take_it_as_an_arrow_stream() -> None:
    found = result(n=pa.array([1, 2]), t=pa.array(["a", None]))
    assert pa.table(found).equals(found.to_arrow())
    assert pa.RecordBatchReader.from_stream(found).read_all().equals(found.to_arrow())
    assert pl.DataFrame(found).rows() == [(1, "a"), (2, None)]
