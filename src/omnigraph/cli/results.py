"""The forms in which a result is printed or written to a file."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final

import typer

from omnigraph.cli.output import counted, table_lines
from omnigraph.cli.scope.config import read_config
from omnigraph.errors import RequestError

if TYPE_CHECKING:
    from omnigraph.read.result.result import Result


class Format(StrEnum):
    """The forms a result can take."""

    TABLE = "table"
    KV = "kv"
    CSV = "csv"
    JSONL = "jsonl"
    JSON = "json"
    ARROW = "arrow"
    PARQUET = "parquet"


ResultFormat = Annotated[
    Format | None,
    typer.Option(
        "--format", help="The form of the rows. Default: table. arrow is an IPC stream.", show_default=False
    ),
]
OutFile = Annotated[
    Path | None, typer.Option("--out", dir_okay=False, writable=True, help="Write the rows to this file.")
]
Metadata = Annotated[
    bool,
    typer.Option("--metadata", help="With --format jsonl: begin with a line about the query and its state."),
]
BINARY: Final = frozenset({Format.ARROW, Format.PARQUET})


def chosen_format(wanted: Format | None, as_json: bool, out: Path | None) -> Format:
    """The form the user asked for, if it can be written where the user wants it."""
    if as_json and wanted not in (None, Format.JSON):
        raise typer.BadParameter(f"give --json or --format {wanted}, not both")
    chosen = Format.JSON if as_json else wanted or Format(read_config().output or Format.TABLE)
    if out is None and chosen in BINARY and sys.stdout.isatty():
        raise typer.BadParameter(
            f"{chosen} is binary, and standard output is a terminal; add --out FILE, or pipe it on"
        )
    if out is not None and not out.absolute().parent.is_dir():
        raise typer.BadParameter(f"--out {out}: there is no directory {out.parent}")
    return chosen


def write_result(result: Result, form: Format, out: Path | None, *, metadata: bool = False) -> None:
    """Write a result to a file, or to standard output. Text is UTF-8 everywhere."""
    if metadata and form is not Format.JSONL:
        raise typer.BadParameter("--metadata goes with --format jsonl")
    lines = {**_LINES, Format.JSONL: _described_json_lines} if metadata else _LINES
    if out is None:
        _write(result, form, sys.stdout.buffer, lines)
        sys.stdout.buffer.flush()
        return
    try:
        with out.open("wb") as file:
            _write(result, form, file, lines)
    except OSError as error:
        raise RequestError(f"cannot write {out}: {error.strerror or error}") from None


def _write(result: Result, form: Format, sink: BinaryIO, lines: _Lines) -> None:
    if form in BINARY:
        _write_binary(result, form, sink)
    else:
        sink.writelines(f"{line}\n".encode() for line in lines[form](result))


def _write_binary(result: Result, form: Format, sink: BinaryIO) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from omnigraph.read.result.result import with_distinct_names

    if form is Format.ARROW:
        with pa.ipc.new_stream(sink, result.to_arrow().schema) as stream:
            stream.write_table(result.to_arrow())
        return
    pq.write_table(with_distinct_names(result.to_arrow()), sink)


def _header(result: Result) -> str:
    return f"{counted(len(result), 'row')} from {result.target} via {result.query_name}"


def _text_rows(result: Result) -> Iterator[tuple[str, ...]]:
    """The rows as texts, all columns in order, also those whose name repeats."""
    from omnigraph.read.result.cells import json_values
    from omnigraph.read.result.display import cell_text

    for part in result.parts():
        yield from zip(*(map(cell_text, json_values(column)) for column in part.columns), strict=True)


def _table(result: Result) -> Iterator[str]:
    from omnigraph.read.result.cells import json_values

    yield _header(result)
    yield from table_lines(result.columns, [json_values(column) for column in result.to_arrow().columns])


def _key_values(result: Result) -> Iterator[str]:
    from omnigraph.read.result.display import on_one_line

    yield _header(result)
    names = [on_one_line(name) for name in result.columns]
    for number, row in enumerate(_text_rows(result), 1):
        yield f"row {number}"
        yield from (f"{name}: {on_one_line(text)}" for name, text in zip(names, row, strict=True))
    if not len(result):
        yield "(no rows)"


def _csv(result: Result) -> Iterator[str]:
    # Only with its default line ending does the writer quote both \r and \n on every version of Python.
    writer = csv.writer(_Echo())
    for row in chain([result.columns], _text_rows(result)):
        yield writer.writerow(row).removesuffix("\r\n")


class _Echo:
    """A file for `csv.writer`, which then returns each line it writes."""

    def write(self, line: str) -> str:
        return line


def _json_lines(result: Result) -> Iterator[str]:
    from omnigraph.read.result.display import to_compact_json

    yield from map(to_compact_json, result.iter_json_rows())


def _described_json_lines(result: Result) -> Iterator[str]:
    from omnigraph.read.result.display import to_compact_json

    metadata = {"kind": "metadata", "query_name": result.query_name, "target": result.target.as_json()}
    yield to_compact_json(metadata | {"row_count": len(result)})
    yield from _json_lines(result)


def _json(result: Result) -> Iterator[str]:
    """The result as one object; each row has a line of its own, however long its lists and vectors are."""
    rows, last = result.iter_json_rows(), len(result)
    members = {
        "query_name": result.query_name,
        "target": result.target.as_json(),
        "row_count": last,
        "columns": result.columns,
    }
    yield "{"
    yield from (f"  {_pretty(name)}: {_pretty(value)}," for name, value in members.items())
    yield '  "rows": [' if last else '  "rows": [],'
    yield from (f"    {_pretty(row)}{',' if number < last else ''}" for number, row in enumerate(rows, 1))
    if last:
        yield "  ],"
    yield f'  "graph_commit_id": {_pretty(result.graph_commit_id)}'
    yield "}"


_pretty: Final[Callable[[Any], str]] = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
_Lines = Mapping[Format, Callable[["Result"], Iterator[str]]]
_LINES: Final[_Lines] = {
    Format.TABLE: _table,
    Format.KV: _key_values,
    Format.CSV: _csv,
    Format.JSONL: _json_lines,
    Format.JSON: _json,
}
