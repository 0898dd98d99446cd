"""CSV files in slices: the same rows, errors and lines as in one piece, whatever their values hold."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.bulk.loading import InlineRunner
from tests.sampling import examples

import omnigraph
from omnigraph.bulk.load.sources import reading
from omnigraph.bulk.load.sources.cutting import certain_cuts, likely_cuts
from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.reading import blocks_of
from omnigraph.bulk.load.sources.slices import Slice, slices_of
from omnigraph.bulk.runner import TaskResult
from omnigraph.errors import ConstraintViolation, RecordError, SourceUnusable
from omnigraph.formats import quoting
from omnigraph.formats.dialect import Dialect
from omnigraph.formats.format import Format
from omnigraph.formats.quoting import record_lines
from omnigraph.lang.schema.catalog import load_catalog
from omnigraph.settings import BulkSettings, Settings

CATALOG = load_catalog("node Thing { name: String?  size: I32? }")
COLUMNS = {"name": "name", "size": "size"}
TINY = BulkSettings(small_load=0, slice_bytes=16, smallest_slice=4)

Found = tuple[list[tuple[int, Any, Any]], list[tuple[int, str]], int]
"""Rows with their lines, errors with theirs, and the number of lines."""


def found_in(slices: list[Slice]) -> Found:
    """What slices hold, one after the other."""
    rows: list[tuple[int, Any, Any]] = []
    bad: list[tuple[int, str]] = []
    before = 0
    for part in slices:
        for block in blocks_of(part, CATALOG):
            for records in block.records.values():
                columns = (records.rows["name"].to_pylist(), records.rows["size"].to_pylist())
                rows += zip((records.lines + before).tolist(), *columns, strict=True)
            bad += [(one.line + before, one.reason) for one in block.unreadable]
            before += block.lines
    return rows, bad, before


def ends_with_a_record(part: Slice) -> bool:
    return all(block.is_closed for block in blocks_of(part, CATALOG))


def expected_lines(text: str) -> list[int]:
    """The line on which each record begins that is not blank, letter by letter."""
    lines, line, start, state = [], 1, 1, "start"
    at, body = 0, False
    while at < len(text):
        letter = text[at]
        if state == "quoted":
            if letter == '"' and text[at + 1 : at + 2] == '"':
                at += 1
            elif letter == '"':
                state = "value"
            elif letter == "\n":
                line += 1
        elif letter in "\r\n":
            if text[at : at + 2] == "\r\n":
                at += 1
            if body:
                lines.append(start)
            line += 1
            start, state, body = line, "start", False
            at += 1
            continue
        elif letter == '"' and state == "start":
            state = "quoted"
        else:
            state = "start" if letter == "," else "value"
        body, at = True, at + 1
    return [*lines, start] if body else lines


def is_closed(text: str) -> bool:
    """Does the text end outside of a value in quotes?"""
    return len(expected_lines(f"{text}\nx,1")) > len(expected_lines(text))


cells = st.text(st.sampled_from('ab", \n1'), max_size=6).map(
    lambda value: '"' + value.replace('"', '""') + '"' if set(value) & set('",\n') else value
)
plain_rows = st.tuples(cells, st.sampled_from(["1", "22", "", '"3"', "x"])).map(",".join)
odd_rows = st.sampled_from(["", "one", "a,1,2", 'in"ch,3', '"a"b,4', '"",', 'x",5', '"\r",6', '""",",7'])
texts = st.lists(st.tuples(st.one_of(plain_rows, odd_rows), st.sampled_from(["\n", "\r\n", "\n\n"]))).map(
    lambda rows: "name,size\n" + "".join(row + end for row, end in rows)
)


@settings(deadline=None, max_examples=examples(50, of=150))
@given(text=texts, chunk=st.integers(1, 40), slice_bytes=st.integers(4, 60))
@example(text='name,size\n"a\n\nb",1\nc,2\n', chunk=3, slice_bytes=4)
@example(text='\ufeff"name",size\na,1\n\n"b\n",x\nc,3', chunk=5, slice_bytes=8)
def test_slices_and_portions_of_a_file_read_as_the_whole(text: str, chunk: int, slice_bytes: int) -> None:
    if not is_closed(text):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "things.csv"
        path.write_bytes(text.encode())
        size = path.stat().st_size
        file = SourceFile(
            str(path), size, Format.CSV, table_key="node:Thing", columns=COLUMNS, names=("name", "size")
        )
        whole = found_in([Slice(0, file, 0, size)])
        sizes = BulkSettings(slice_bytes=slice_bytes, smallest_slice=4)
        parts = slices_of([file], 2, sizes, certain_cuts(InlineRunner(), [file], sizes))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading, "_CHUNK_BYTES", chunk)
            assert found_in([Slice(0, file, 0, size)]) == whole
            assert found_in(parts) == whole
            likely = slices_of([file], 2, sizes, likely_cuts(InlineRunner(), [file], sizes))
            assert found_in(likely) == whole or not all(map(ends_with_a_record, likely[:-1]))
    lines = sorted([line for line, _, _ in whole[0]] + [line for line, _ in whole[1]])
    assert lines == expected_lines(text.removeprefix("\ufeff"))[1:]


@settings(deadline=None, max_examples=examples(80, of=300))
@given(st.text(st.sampled_from('a",\n\r'), max_size=30))
def test_lines_of_records_are_those_of_a_reader_that_goes_letter_by_letter(text: str) -> None:
    expected = expected_lines(text)
    assert record_lines(text.encode(), Dialect(), len(expected))[0].tolist() == expected


@settings(deadline=None, max_examples=examples(80, of=300))
@given(st.text(st.sampled_from('a",\n'), max_size=40), st.integers(0, 3), st.integers(0, 3))
def test_quotes_that_are_searched_one_by_one_are_those_that_are_found_at_once(
    text: str, before: int, after: int
) -> None:
    found = []
    for sparse in (1, 3, 1 << 10):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(quoting, "_SPARSE_BYTES", sparse)
            patch.setattr(quoting, "_COUNTED_BYTES", 7)
            lines, count = record_lines(text.encode(), Dialect(), 0)
            low = min(before, len(text))
            scan = quoting.scanned(text.encode(), low, max(low, len(text) - after), 100, Dialect())
            found.append((scan, quoting.last_end(text.encode(), Dialect()), lines.tolist(), count))
    assert found[0] == found[1] == found[2]


def test_a_plain_file_is_cut_and_one_with_a_quote_within_a_value_is_not(tmp_path: Path) -> None:
    def parts(row: str) -> int:
        path = tmp_path / "things.csv"
        path.write_text("name,size\n" + f"{row},1\n" * 50)
        size = path.stat().st_size
        file = SourceFile(str(path), size, Format.CSV, table_key="node:Thing", columns=COLUMNS)
        sizes = BulkSettings(slice_bytes=64, smallest_slice=4)
        return len(slices_of([file], 2, sizes, certain_cuts(InlineRunner(), [file], sizes)))

    assert parts("plain") > 4
    assert parts('"two\nlines"') > 4
    assert parts('5" nail') == 1


def test_a_file_is_cut_by_the_beginnings_of_its_ranges_alone(tmp_path: Path) -> None:
    path = tmp_path / "things.csv"
    path.write_text("name,size\n" + '"two\nlines",1\n' * 200_000)
    size = path.stat().st_size
    file = SourceFile(str(path), size, Format.CSV, table_key="node:Thing", columns=COLUMNS)
    sizes = BulkSettings(slice_bytes=1 << 20)
    runner = CountingRunner()
    assert likely_cuts(runner, [file], sizes) == certain_cuts(InlineRunner(), [file], sizes)
    assert sum(runner.bytes) <= size // 3


class CountingRunner(InlineRunner):
    """Notes how many bytes its tasks have read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: list[int] = []

    def run(self, step: str, work: Callable[[Any], TaskResult[Any]], tasks: Sequence[Any]) -> list[Any]:
        def counted(task: Any) -> TaskResult[Any]:
            result = work(task)
            self.bytes.append(result.bytes)
            return result

        return [counted(task).value for task in tasks]


@pytest.mark.parametrize("small_load", [0, 32 << 20], ids=["in slices", "in memory"])
@pytest.mark.parametrize("max_errors", [None, 1])
def test_a_file_whose_ranges_begin_like_records_but_are_parts_of_values_is_loaded(
    tmp_path: Path, max_errors: int | None, small_load: int
) -> None:
    sizes = BulkSettings(small_load=small_load, slice_bytes=1 << 20, smallest_slice=1 << 20)
    graph = omnigraph.init(
        tmp_path / "g.omni", "node Thing { name: String?  size: I32? }", settings=Settings(bulk=sizes)
    )
    path = tmp_path / "things.csv"
    long = "line,1\n" * 300_000
    path.write_text(f'name,size\na,1\n"{long}",2\nb,3\n')
    graph.load(nodes={"Thing": path}, mode="append", engine="local", max_errors=max_errors)
    rows = graph.query("query q() { match { $t: Thing } return { $t.name as name, $t.size as size } }").rows
    assert sorted((row["size"], row["name"]) for row in rows) == [(1, "a"), (2, long), (3, "b")]
    path.write_text(path.read_text() + "c,x\n")
    with pytest.raises(RecordError) as refused:
        graph.load(nodes={"Thing": path}, mode="append", engine="local", max_errors=max_errors)
    assert [problem.line for problem in refused.value.problems] == [300_005]


@pytest.mark.parametrize("sizes", [BulkSettings(), TINY], ids=["in memory", "in slices"])
def test_errors_name_the_line_of_the_file_on_which_a_row_begins(tmp_path: Path, sizes: BulkSettings) -> None:
    graph = omnigraph.init(
        tmp_path / "g.omni",
        "node City { name: String @key  note: String?  size: I32? @range(size, 0..9) }\nedge Road: City -> City",
        settings=Settings(bulk=sizes),
    )
    cities = tmp_path / "cities.csv"
    cities.write_text('name,note,size\nA,"two\nlines",1\n\nB,,12\nC,"three\n\nlines",x\nD,,2\n')
    with pytest.raises(RecordError) as unreadable:
        graph.load(nodes={"City": cities}, mode="append", engine="local")
    assert [problem.line for problem in unreadable.value.problems] == [6]
    cities.write_text(cities.read_text().replace(",x\n", ",3\n"))
    with pytest.raises(ConstraintViolation) as invalid:
        graph.load(nodes={"City": cities}, mode="append", engine="local")
    assert [violation.line for violation in invalid.value.violations] == [5]
    cities.write_text(cities.read_text().replace(",12\n", ",5\n"))
    roads = tmp_path / "roads.csv"
    roads.write_text('from,to\n\n"A",B\nA,Z\n')
    with pytest.raises(ConstraintViolation) as dangling:
        graph.load(nodes={"City": cities}, edges={"Road": roads}, mode="append", engine="local")
    assert [violation.line for violation in dangling.value.violations] == [4]
    roads.write_text("from,to\nA,B\n")
    loaded = graph.load(nodes={"City": cities}, edges={"Road": roads}, mode="append", engine="local")
    assert loaded.nodes == {"City": 4}


def test_a_quote_that_is_never_closed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnigraph.formats.delimited._LONGEST_RECORD", 1_000)
    monkeypatch.setattr(reading, "_CHUNK_BYTES", 100)
    graph = omnigraph.init(tmp_path / "g.omni", "node City { name: String @key }")
    cities = tmp_path / "cities.csv"
    cities.write_text('name\nA\n"B\n' + "C\n" * 1_000)
    with pytest.raises(SourceUnusable, match="never closed"):
        graph.load(nodes={"City": cities}, mode="append", engine="local")


def test_cells_with_types_and_cells_as_texts_give_the_same_values(tmp_path: Path) -> None:
    schema = "node Thing { name: String @key  size: I64?  weight: F64?  born: Date? }"
    sure = "name,size,weight,born\na,-7,1e3,2020-02-29\nb,,,\n"
    doubtful = sure + 'c," 8 ",+.5,2021-01-01\n'
    found = []
    for number, text in enumerate((sure, doubtful)):
        graph = omnigraph.init(tmp_path / f"{number}.omni", schema)
        graph.load(nodes={"Thing": Path(_written(tmp_path / f"{number}.csv", text))}, mode="append")
        query = (
            "query q() { match { $t: Thing } return { $t.name, $t.size, $t.weight, $t.born } order { $t.name } }"
        )
        found.append(graph.query(query).rows)
    assert found[1][:2] == found[0]
    assert [list(row.values())[1] for row in found[1]] == [-7, None, 8]


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_a_column_that_gives_two_properties_is_read_for_both(tmp_path: Path) -> None:
    graph = omnigraph.init(tmp_path / "g.omni", "node Thing { code: String @key  number: I32? }")
    path = _written(tmp_path / "things.csv", "code\n7\n8\n")
    columns = {"code": "code", "number": "code"}
    graph.load(nodes={"Thing": omnigraph.Source(path, columns=columns)}, mode="append")
    found = graph.query("query q() { match { $t: Thing } return { $t.code, $t.number } order { $t.code } }").rows
    assert [list(row.values()) for row in found] == [["7", 7], ["8", 8]]
