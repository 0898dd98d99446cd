"""The first rows of CSV as texts, with the delimiter and the marks of missing values that a file seems to use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from omnigraph.bulk.load.inference.types import guess_type
from omnigraph.errors import SourceUnusable
from omnigraph.formats.delimited import header_of
from omnigraph.formats.dialect import DELIMITERS, PLAIN, Dialect

_HEAD_BYTES: Final = 1 << 20
_MARKS: Final = ("NA", "N/A", "NULL", "null", "NaN", "nan", "None", "\\N", "-", "?")
"""What people write where a number or a day is missing."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Reads the first rows of a CSV file; ``dialect`` is the one that its header and its cells tell."""

    reader: Any
    dialect: Dialect


def open_texts(stream: pa.NativeFile, delimiter: str, path: str) -> Texts:
    """Begin to read CSV. Rows with another number of cells than the header are left out."""
    head = stream.read(_HEAD_BYTES)
    whole = head.rfind(b"\n") + 1
    dialect = Dialect(delimiter)
    start = head[:whole] if whole else head
    names = header_of(start, dialect, path)
    other = next((mark for mark in DELIMITERS if len(names) == 1 and mark in names[0]), None)
    if other is not None:
        dialect = Dialect(other)
        names = header_of(start, dialect, path)
    if len(set(names)) < len(names):
        raise SourceUnusable(path, f"a column is there twice: {', '.join(names)}")
    parsing = pv.ParseOptions(
        delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=lambda _: "skip"
    )
    converting = pv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=list(PLAIN.nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    text = pa.PythonFile(_Joined(head if whole else head + b"\n", stream), mode="r")
    return Texts(pv.open_csv(text, pv.ReadOptions(use_threads=False), parsing, converting), dialect)


def marks_of(rows: pa.Table) -> tuple[str, ...]:
    """The marks of missing values: texts without which a column would be one of numbers, days or truth values."""
    marks = pa.array(_MARKS)
    found: set[str] = set()
    for column in rows.columns:
        present = pc.unique(column.filter(pc.is_in(column, value_set=marks))).to_pylist()
        if present and len(rest := column.filter(pc.invert(pc.is_in(column, value_set=marks))).drop_null()):
            found |= set(present) if guess_type(rest, is_text=True).type != "String" else set()
    return tuple(mark for mark in _MARKS if mark in found)


def without_marks(rows: pa.Table, marks: tuple[str, ...]) -> pa.Table:
    """The rows with nothing where one of the marks is."""
    nothing, given = pa.scalar(None, pa.string()), pa.array(marks, pa.string())
    columns = {
        name: pc.if_else(pc.is_in(rows[name], value_set=given), nothing, rows[name]) for name in rows.column_names
    }
    return pa.table(columns) if marks and columns else rows


class _Joined:
    """A stream with the part of it that was read before."""

    closed = False

    def __init__(self, head: bytes, stream: pa.NativeFile) -> None:
        self._head = head
        self._stream = stream

    def read(self, count: int = -1) -> bytes:
        if self._head:
            part, self._head = self._head[:count], self._head[count:] if count >= 0 else b""
            return part
        return bytes(self._stream.read(count if count >= 0 else None))

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self.closed = True
