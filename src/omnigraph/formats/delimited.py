"""Rows of CSV into records of one type, block by block, at about the speed of Arrow's own reader."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv

from omnigraph.errors import SourceUnusable
from omnigraph.formats.cells import RowErrors
from omnigraph.formats.columnar import read_columns
from omnigraph.formats.dialect import Dialect
from omnigraph.formats.jsonl.blocks import Block, Unreadable
from omnigraph.formats.quoting import Content, header_end, is_open, last_end, record_lines
from omnigraph.formats.texts import plain_type, typed_batch
from omnigraph.lang.schema.catalog import EntityType

_LONGEST_RECORD: Final = 64 << 20
_SHOWN_BYTES: Final = 40
_UNCLOSED: Final = (
    "a quote opens a value of this row and is never closed, so that the rest of the file belongs to it"
)
_MARKS: Final = {
    b"\x1f\x8b": "it is packed with gzip, and its name does not end in .gz",
    b"\x28\xb5\x2f\xfd": "it is packed with zstd, and its name does not end in .zst",
    b"\xff\xfe": "it is UTF-16; convert it, as by `iconv -f UTF-16 -t UTF-8`",
    b"\xfe\xff": "it is UTF-16; convert it, as by `iconv -f UTF-16 -t UTF-8`",
    b"PAR1": "it is Parquet, and its name does not end in .parquet",
    b"ARROW1": "it is Arrow IPC, and its name does not end in .arrow",
    b"PK\x03\x04": "it is a ZIP file, perhaps a spreadsheet; save it as CSV",
}
"""How files begin that are no text, and what is said about them."""
_SOMETHING: Final = re.compile(rb"[^\r\n]")
_HEXADECIMAL: Final = np.uint16(int.from_bytes(b"0x", "little"))
_LOWER_CASE: Final = np.uint16(0x2000)
"""The bit in which the second letters of 0X and 0x differ."""
_PAIRS_AT_A_TIME: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Delimited:
    """How the rows of a CSV file become rows of a type.

    ``names`` are all columns of the file, and ``columns`` the one that each column of the table is read from.
    """

    entity: EntityType
    dialect: Dialect
    names: tuple[str, ...]
    columns: Mapping[str, str]


@dataclass(slots=True)
class _Refused:
    """The rows with another number of cells, which Arrow leaves out: their numbers, from 1, and why."""

    rows: dict[int, str] = field(default_factory=dict)

    def refuse(self, row: pv.InvalidRow) -> str:
        """Note a row that Arrow cannot use; it goes on without it."""
        cells = "cell" if row.actual_columns == 1 else "cells"
        reason = f"the row has {row.actual_columns} {cells}, and the header {row.expected_columns}"
        self.rows[row.number or 1] = reason
        return "skip"


def header_of(start: bytes, dialect: Dialect, source: str) -> tuple[str, ...]:
    """The names of the columns of a CSV file, from its first bytes."""
    if dialect.names is not None:
        return dialect.names
    data = start.removeprefix(BOM_UTF8)
    header = data[: header_end(data, dialect)].strip(b"\r\n")
    if not header.strip():
        raise SourceUnusable(source, "it is empty; a CSV file begins with the names of its columns")
    if not _is_text(header):
        raise SourceUnusable(source, _no_text(start))
    if is_open(header, dialect):
        raise SourceUnusable(source, "a quote opens the name of a column and is never closed")
    reading = pv.ReadOptions(use_threads=False, block_size=len(header) + 2)
    parsing = pv.ParseOptions(delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=True)
    try:
        return tuple(pv.read_csv(pa.BufferReader(header + b"\n"), reading, parsing).schema.names)
    except pa.ArrowInvalid as error:
        raise SourceUnusable(source, f"it cannot be read as CSV: {error}") from error


def _is_text(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


def _no_text(start: bytes) -> str:
    """What the first bytes of a file seem to be that is not UTF-8, and what to do about it."""
    for mark, remedy in _MARKS.items():
        if start.startswith(mark):
            return remedy
    return "its first line is not UTF-8; convert it, as by `iconv -f LATIN1 -t UTF-8`"


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of whole records. One that is not ``is_closed`` is the last record of a file, with an open quote."""

    data: Content
    is_closed: bool = True


def whole_records(chunks: Iterable[bytes], dialect: Dialect, source: str) -> Iterator[Piece]:
    """The bytes of CSV, cut anew so that every piece consists of whole records."""
    held = bytearray()
    for chunk in chunks:
        held += chunk
        del chunk  # as large as all that is held
        end = last_end(held, dialect)
        if end:
            whole, held = held, held[end:]
            del whole[end:]
            yield Piece(whole)
        if len(held) > _LONGEST_RECORD:
            shown = repr(held[:_SHOWN_BYTES].decode(errors="replace"))
            reason = f"the row that begins with {shown} has more than {_LONGEST_RECORD >> 20} MB"
            raise SourceUnusable(source, f"{reason}; is a quote open that is never closed?")
    if held:
        yield Piece(held, not is_open(held, dialect))


def read_delimited(pieces: Iterable[Piece], form: Delimited, *, has_header: bool) -> Iterator[Block]:
    """The records of pieces of CSV that consist of whole records. The line of a record is the one on which it
    begins, counted in line ends, of which values in quotes may hold some."""
    for number, piece in enumerate(pieces):
        data = piece.data.removeprefix(BOM_UTF8) if has_header and not number else piece.data
        if not piece.is_closed:
            lines = record_lines(data, form.dialect, 0)[1]
            yield Block({}, [Unreadable(1, 1, _UNCLOSED)], lines, is_closed=False)
            continue
        header = header_end(data, form.dialect) if has_header else 0
        before = record_lines(data[:header], form.dialect, 0)[1]
        has_header = has_header and not header
        yield _block(form, data[header:] if header else data, before)


def _block(form: Delimited, data: Content, before: int) -> Block:
    """The records of some bytes, after that many lines of a header."""
    batch, refused = _batch(form, data)
    at, lines = record_lines(data, form.dialect, batch.num_rows + len(refused))
    at = at + before
    bad = [Unreadable(int(at[number - 1]), 1, reason) for number, reason in refused.items()]
    if not batch.num_rows:
        return Block({}, bad, lines + before)
    numbers = np.delete(at, [number - 1 for number in refused])
    errors = RowErrors(batch.num_rows)
    cells = {name: _texts(batch[column], column, errors) for name, column in form.columns.items()}
    read = read_columns(form.entity, typed_batch(form.entity, cells, form.dialect, errors), errors=errors)
    records = {key: replace(found, lines=numbers[found.lines - 1]) for key, found in read.records.items()}
    bad += [replace(one, line=int(numbers[one.line - 1])) for one in read.unreadable]
    return Block(records, sorted(bad, key=lambda one: one.line), lines + before)


def _batch(form: Delimited, data: Content) -> tuple[pa.RecordBatch, dict[int, str]]:
    """The cells of some bytes, with their types if Arrow can read all of them for sure, else as bytes."""
    wanted = list(dict.fromkeys(form.columns.values()))
    if _SOMETHING.search(data) is None:
        return pa.RecordBatch.from_pydict({name: pa.array([], pa.binary()) for name in wanted}), {}
    try:
        return _parsed(form, data, wanted, _cell_types(form, data))
    except pa.ArrowInvalid:
        return _parsed(form, data, wanted, dict.fromkeys(wanted, pa.binary()))


def _parsed(
    form: Delimited, data: Content, wanted: list[str], types: Mapping[str, pa.DataType]
) -> tuple[pa.RecordBatch, dict[int, str]]:
    refused = _Refused()
    if data.startswith(BOM_UTF8):
        data = b"\n" + data  # Arrow takes the mark for that of a file, and leaves it out
    table = pv.read_csv(
        pa.BufferReader(data),
        pv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(form.names)),
        _parsing(form.dialect, refused),
        pv.ConvertOptions(
            column_types=types,
            include_columns=wanted,
            null_values=list(form.dialect.nulls),
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return pa.RecordBatch.from_pydict({name: _whole(table[name]) for name in wanted}), refused.rows


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _cell_types(form: Delimited, data: Content) -> dict[str, pa.DataType]:
    """The types that Arrow may give to cells: its numbers and days are read as those of texts, later, would be.

    Arrow takes 0x10 for an integer as well, so integers stay texts where there is such a text in any column.
    """
    types: dict[str, pa.DataType] = {}
    is_doubtful = has_hexadecimal(data)
    for name, cell in form.columns.items():
        own = plain_type(form.entity, name)
        own = pa.string() if is_doubtful and pa.types.is_integer(own) else own
        types[cell] = own if types.get(cell, own) == own else pa.string()
    return types


def has_hexadecimal(data: Content) -> bool:
    """Is there 0x or 0X? Pairs of bytes are compared, which takes a tenth of the time of searching for a text."""
    for start in range(min(len(data), 2)):
        pairs = np.frombuffer(data, "<u2", offset=start, count=(len(data) - start) // 2)
        for low in range(0, len(pairs), _PAIRS_AT_A_TIME):
            if ((pairs[low : low + _PAIRS_AT_A_TIME] | _LOWER_CASE) == _HEXADECIMAL).any():
                return True
    return False


def _parsing(dialect: Dialect, refused: _Refused) -> pv.ParseOptions:
    return pv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote,
        newlines_in_values=True,
        invalid_row_handler=refused.refuse,
    )


def _texts(values: pa.Array, column: str, errors: RowErrors) -> pa.Array:
    """Bytes as texts; those that are no UTF-8 become null, and are added to the errors."""
    if not pa.types.is_binary(values.type):
        return values
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    found: list[str | None] = []
    for position, value in enumerate(values.to_pylist()):
        try:
            found.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            errors.add([position], f"column '{column}' is not UTF-8")
            found.append(None)
    return pa.array(found, pa.string())
