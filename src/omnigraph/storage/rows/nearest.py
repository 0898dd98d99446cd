"""Indexes of vectors: which of them answers for a column of a table, and the rows it finds near a vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.records import dataclass
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.unavailable import translated
from omnigraph.storage.versions import TableRef, TableVersions

_ROW: Final = "_rowid"
_ADDRESS: Final = "_rowaddr"


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An index over the vectors of a column: its measure of distance, in how many partitions its largest segment
    keeps them, and how many rows of the table it answers for."""

    name: str
    metric: str
    partitions: int
    rows: int


def vector_index(tables: TableVersions, ref: TableRef, column: str) -> VectorIndex | None:
    """The index of a column of vectors in one version of a table; None if there is none. No data is read."""
    from omnigraph.storage.stage.indexes import VECTOR_KINDS, existing_indexes, partitions_of

    for found in existing_indexes(tables.open(ref)):
        if found.column == column and found.kind in VECTOR_KINDS and found.rows:
            largest = max(segment.rows for segment in found.segments)
            metric = str(found.options.get("metric_type", "")).lower()
            return VectorIndex(found.name, metric, partitions_of(largest), found.rows)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Near:
    """A search: the column, the vector, the measure of distance, how many rows to find, and in how many partitions
    of each segment to look for them. If those have too few rows, more partitions are searched."""

    column: str
    vector: npt.NDArray[np.float32]
    metric: str
    count: int
    probes: int


def rows_near(tables: TableVersions, ref: TableRef, near: Near, columns: Sequence[str]) -> pa.Table:
    """The rows of one version that an index finds near a vector, each once. Rows that the index lacks are compared
    one by one."""
    found = _search(tables, ref, near, [*columns, _ROW])
    _, firsts = np.unique(found[_ROW].to_numpy(), return_index=True)
    return found.drop_columns([_ROW]).take(pa.array(np.sort(firsts)))


def addresses_near(tables: TableVersions, ref: TableRef, near: Near) -> npt.NDArray[np.int64]:
    """The same rows by their addresses: the number of the fragment, and below it the row's offset."""
    return np.unique(_search(tables, ref, near, [_ADDRESS])[_ADDRESS].to_numpy().astype(np.int64))


def _search(tables: TableVersions, ref: TableRef, near: Near, columns: Sequence[str]) -> pa.Table:
    handle = tables.verified(ref, LOOKUP_BYTES)
    nearest: dict[str, Any] = {
        "column": near.column,
        "q": near.vector,
        "k": near.count,
        "metric": near.metric,
        "minimum_nprobes": near.probes,
    }
    with translated(tables.shown(ref.location)):
        return handle.scanner(
            columns=list(columns), nearest=nearest, disable_scoring_autoprojection=True
        ).to_table()
