"""Indexes: those that large tables lack, those that lag behind, and those that give wrong answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import OmniError
from omnigraph.maintenance.doctor.examination import Examination, ExaminedTable
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.maintenance.index_plan import DEFAULT_LAG, VECTOR_ROWS, wanted_indexes
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.storage.stage.indexes import VECTOR_KINDS, ExistingIndex, existing_indexes
from omnigraph.storage.unavailable import translated

_PLACES: Final = 4
_ROWS_PER_PLACE: Final = 4
_CLOSE: Final = 1e-3
LARGE: Final = 10_000
"""A table of more rows should have the indexes that the schema asks for."""


def check_indexes(exam: Examination) -> Iterator[Finding]:
    """Look at the indexes of every table; what they answer is compared on a sample with what a scan finds."""
    for table in exam.heads("indexes"):
        if table.entity is None or table.pin.ref in exam.unreadable:
            continue
        try:
            handle = exam.repository.tables.open(table.pin.ref)
            indexes = existing_indexes(handle)
        except OmniError as error:
            yield _wrong(table, "its indexes", str(error))
            continue
        yield from _coverage(table, handle, indexes)
        if not exam.quick and handle.count_rows():
            for index in indexes:
                yield from _answers(exam, table, handle, index)


def _coverage(table: ExaminedTable, handle: LanceDataset, indexes: list[ExistingIndex]) -> Iterator[Finding]:
    """The indexes that the schema asks for and that a table of this size should have."""
    assert table.entity is not None  # noqa: S101  only tables with a type are looked at
    rows = handle.count_rows()
    index = f"run `omnigraph index --branch {table.shown}`"
    for wanted in wanted_indexes(table.entity):
        if wanted.kind is None:
            continue
        found = next((index for index in indexes if wanted.is_like(index)), None)
        if found is None:
            enough = VECTOR_ROWS if wanted.is_of_vectors else LARGE
            if rows > enough:
                yield Finding(
                    "index_missing",
                    Severity.WARNING,
                    f"{table.table_key} has no {wanted.kind} index on {wanted.column}",
                    index,
                    table.shown,
                    table.table_key,
                )
            continue
        lag = rows - found.rows
        if lag > LARGE and not DEFAULT_LAG.allows(lag, rows):
            yield Finding(
                "index_lagging",
                Severity.WARNING,
                f"{lag} of {rows} rows of {table.table_key} are not in index {found.name}, and are scanned",
                index,
                table.shown,
                table.table_key,
                count=lag,
            )


def _answers(
    exam: Examination, table: ExaminedTable, handle: LanceDataset, index: ExistingIndex
) -> Iterator[Finding]:
    """Does an index find the rows of a sample, and no others?"""
    shown = exam.repository.tables.shown(table.pin.location)
    try:
        with translated(shown):
            if index.kind == "BTREE":
                problem = _wrong_lookups(handle, index.column)
            elif index.kind in VECTOR_KINDS:
                problem = _wrong_neighbours(handle, index.column)
            else:
                problem = None
    except OmniError as error:
        problem = str(error)
    if problem is not None:
        yield _wrong(table, f"index {index.name}", problem)


def _wrong(table: ExaminedTable, what: str, problem: str) -> Finding:
    return Finding(
        "index_wrong",
        Severity.ERROR,
        f"{what} of {table.table_key}: {problem}",
        f"remove the index's folder and run `omnigraph index --branch {table.shown}`",
        table.shown,
        table.table_key,
    )


def _sample(handle: LanceDataset, column: str) -> pa.Table:
    """Values of a column from several places of a table, with their row ids; nulls are left out."""
    rows = handle.count_rows()
    offsets = sorted({place * rows // _PLACES for place in range(_PLACES)})
    parts = [
        handle.scanner(columns=[column], offset=offset, limit=_ROWS_PER_PLACE, with_row_id=True).to_table()
        for offset in offsets
    ]
    return pa.concat_tables(parts).drop_null()


def _wrong_lookups(handle: LanceDataset, column: str) -> str | None:
    values = _sample(handle, column)[column].unique()
    if not len(values):
        return None
    where = f"`{column}` in ({', '.join(map(sql_literal, values))})"
    found, expected = (_row_ids(handle, where, use_index=use_index) for use_index in (True, False))
    if found == expected:
        return None
    return f"a look-up of {len(values)} values finds {len(found)} rows, and a scan {len(expected)}"


def _row_ids(handle: LanceDataset, where: str, *, use_index: bool) -> list[int]:
    scanner = handle.scanner(columns=[], filter=where, with_row_id=True, use_scalar_index=use_index)
    return sorted(scanner.to_table()["_rowid"].to_pylist())


def _wrong_neighbours(handle: LanceDataset, column: str) -> str | None:
    """Each vector is its own nearest neighbour, unless others are equal to it."""
    for row in _sample(handle, column).to_pylist():
        vector = np.array(row[column], np.float32)
        if not np.isfinite(vector).all() or not vector.any():
            continue
        nearest: dict[str, Any] = {"column": column, "q": vector, "k": 1, "minimum_nprobes": 1_000_000}
        found = handle.scanner(columns=["_distance"], nearest=nearest).to_table()
        distance = found["_distance"][0].as_py() if found.num_rows else None
        if distance is None or distance > _CLOSE:
            return f"a search for the vector of row {row['_rowid']} does not find it"
    return None
