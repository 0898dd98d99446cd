"""Rows of CSV into records of one type, block by block, at about the speed of Arrow's own reader."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pv

from omnigraph.errors import SourceUnusable
from omnigraph.formats.cells import RowErrors
from omnigraph.formats.columnar import read_columns
from omnigraph.formats.dialect import Dialect
from omnigraph.formats.jsonl.blocks import Block, Unreadable
from omnigraph.formats.texts import typed_batch
from omnigraph.lang.schema.catalog import EntityType

_BLOCK_BYTES: Final = 8 << 20
_HEADER_BYTES: Final = 1 << 20


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
class _Rows:
    """The numbers of rows: those with another number of cells are left out by Arrow, and are counted here."""

    refused: list[tuple[int, str]] = field(default_factory=list)
    counted: int = 0

    def refuse(self, row: pv.InvalidRow) -> str:
        """Note a row that Arrow cannot use; it goes on without it."""
        cells = "cell" if row.actual_columns == 1 else "cells"
        reason = f"the row has {row.actual_columns} {cells}, and the header {row.expected_columns}"
        self.refused.append((row.number or 0, reason))
        return "skip"

    def numbers(self, count: int) -> npt.NDArray[np.int64]:
        """The numbers of the next rows."""
        refused = [number for number, _ in self.refused]
        span = np.arange(self.counted + 1, self.counted + count + len(refused) + 1)
        return span[~np.isin(span, refused)][:count]

    def refused_until(self, last: int | None) -> list[tuple[int, str]]:
        """The refused rows up to a number, which are forgotten; all of them if it is None."""
        found = [entry for entry in self.refused if last is None or entry[0] <= last]
        self.refused = self.refused[len(found) :]
        return found


def header_of(start: bytes, dialect: Dialect, source: str) -> tuple[str, ...]:
    """The names of the columns of a CSV file, from its first bytes."""
    if dialect.names is not None:
        return dialect.names
    if not start.strip():
        raise SourceUnusable(source, "it is empty; a CSV file begins with the names of its columns")
    reading = pv.ReadOptions(use_threads=False, block_size=max(len(start), 1) + 1)
    try:
        return tuple(pv.open_csv(pa.BufferReader(start), reading, _parsing(dialect, _Rows())).schema.names)
    except pa.ArrowInvalid as error:
        raise SourceUnusable(source, f"it cannot be read as CSV: {error}") from error


def read_delimited(stream: pa.NativeFile, form: Delimited, *, has_header: bool) -> Iterator[Block]:
    """The records of a stream of CSV. Line numbers are those of rows, of which the header is the first."""
    rows = _Rows(counted=int(has_header))
    names = None if has_header else list(form.names)
    reading = pv.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES, column_names=names)
    wanted = list(dict.fromkeys(form.columns.values()))
    converting = pv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.binary()),
        include_columns=wanted,
        null_values=list(form.dialect.nulls),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    before = 0
    try:
        batches: Any = pv.open_csv(stream, reading, _parsing(form.dialect, rows), converting)
    except pa.ArrowInvalid as error:
        if "Empty CSV" not in str(error):
            raise
        return
    for batch in batches:
        numbers = rows.numbers(batch.num_rows)
        rows.counted = int(numbers[-1]) if len(numbers) else rows.counted
        yield _block(form, batch, numbers - before, rows.refused_until(rows.counted), before, rows.counted)
        before = rows.counted
    if rows.refused or rows.counted > before:
        last = max([rows.counted, *(number for number, _ in rows.refused)])
        yield _block(form, None, np.array([], np.int64), rows.refused_until(None), before, last)


def _parsing(dialect: Dialect, rows: _Rows) -> pv.ParseOptions:
    return pv.ParseOptions(
        delimiter=dialect.delimiter,
        quote_char=dialect.quote,
        newlines_in_values=True,
        invalid_row_handler=rows.refuse,
    )


def _block(
    form: Delimited,
    batch: pa.RecordBatch | None,
    numbers: npt.NDArray[np.int64],
    refused: list[tuple[int, str]],
    before: int,
    last: int,
) -> Block:
    """The records of some rows, whose lines are counted from the start of the block."""
    bad = [Unreadable(number - before, 1, reason) for number, reason in refused]
    if batch is None or not batch.num_rows:
        return Block({}, bad, last - before)
    errors = RowErrors(batch.num_rows)
    cells = {name: _texts(batch[column], column, errors) for name, column in form.columns.items()}
    read = read_columns(form.entity, typed_batch(form.entity, cells, form.dialect, errors), errors=errors)
    records = {key: replace(found, lines=numbers[found.lines - 1]) for key, found in read.records.items()}
    bad += [replace(one, line=int(numbers[one.line - 1])) for one in read.unreadable]
    return Block(records, sorted(bad, key=lambda one: one.line), last - before)


def _texts(values: pa.Array, column: str, errors: RowErrors) -> pa.Array:
    """Bytes as texts; those that are no UTF-8 become null, and are added to the errors."""
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
