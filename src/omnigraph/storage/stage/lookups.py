"""Finding the rows with some ids: by the index on ids, or by a pass over all ids of the table.

The index has the ids in their order, in pages of some thousand. A look-up reads every page that one of the ids
would be in, and then the rows that it found; that takes about twice as long as a pass over as many rows as those
pages have. So it matters into how many pages the ids fall: ten thousand ids side by side are in three pages, and
as many that are spread over a million rows are in all of them.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.file import LanceFileReader

PROBE_LIMIT: Final = 5_000
"""How many values one filter names."""

MOST_PROBES: Final = 8
"""More values than so many filters name are found by a pass."""

_SMALL_PART: Final = 64
"""More values than one filter names are looked up only if they are so small a part of the rows: one in so many."""

_FEW: Final = 64
"""So few ids are looked up one by one wherever they are, with or without an index."""

_PAGE_ROWS: Final = 4_096
_LOOKUP_COST: Final = 2
"""How many times longer the rows of a page of the index take than as many rows of a pass."""


def locate_rows(handle: LanceDataset, ids: pa.Array, probe_limit: int = PROBE_LIMIT) -> dict[str, pa.Array]:
    """Where the rows with these ids are: arrays `id`, `row_id` and `row_address`, one entry per row found."""
    if are_looked_up(handle, ids, probe_limit):
        filters = (_in_list(part) for part in slices(ids, probe_limit))
        found = pa.concat_tables(
            handle.scanner(columns=["id"], filter=each, with_row_id=True, with_row_address=True).to_table()
            for each in filters
        )
    else:
        every = handle.scanner(columns=["id"], with_row_id=True, with_row_address=True).to_table()
        found = every.filter(pc.is_in(every["id"], value_set=ids))
    return {
        "id": found["id"].combine_chunks(),
        "row_id": found["_rowid"].combine_chunks(),
        "row_address": found["_rowaddr"].combine_chunks(),
    }


def are_looked_up(handle: LanceDataset, ids: pa.Array, limit: int = PROBE_LIMIT) -> bool:
    """Are these ids looked up one by one? Yes if they are few, or if that reads less than a pass over all ids."""
    if len(ids) > MOST_PROBES * limit:
        return False
    return len(ids) <= _FEW or _LOOKUP_COST * _rows_of_pages(handle, ids) <= handle.count_rows()


def is_probed(values: int, rows: int, limit: int = PROBE_LIMIT) -> bool:
    """Are values of any column looked up one by one? Yes if they are few, or a small part of a large table."""
    return values <= limit or (values <= MOST_PROBES * limit and rows >= _SMALL_PART * values)


def slices(values: pa.Array, size: int) -> list[pa.Array]:
    """Values in slices of a size, at least one."""
    step = max(1, size)
    return [values.slice(start, step) for start in range(0, max(1, len(values)), step)]


def _rows_of_pages(handle: LanceDataset, ids: pa.Array) -> float:
    """About how many rows the pages have that a look-up of these ids reads. Rows behind the index are all read."""
    rows = {fragment.fragment_id: fragment.count_rows() for fragment in handle.get_fragments()}
    read, wanted = float(sum(rows.values())), np.array(ids.to_pylist(), dtype=object)
    for index in handle.describe_indices():
        if index.field_names == ["id"] and index.index_type.upper() == "BTREE":
            for segment in index.segments:
                indexed = sum(rows.get(number, 0) for number in segment.fragment_ids)
                read -= indexed * (1 - _share(handle, str(segment.uuid), indexed, wanted))
    return read


def _share(handle: LanceDataset, segment: str, rows: int, ids: npt.NDArray[np.object_]) -> float:
    """The share of the pages of a segment of the index, with so many rows, that one of the ids would be in."""
    path = f"{handle.uri}/_indices/{segment}/page_lookup.lance"
    try:
        first = _first_ids(path, tuple(sorted((handle.initial_storage_options or {}).items())))
    except (OSError, ValueError, KeyError):
        # The pages are those of another branch, or unknown to us: the ids may be anywhere.
        pages = max(1.0, rows / _PAGE_ROWS)
        return 1 - math.exp(-len(ids) / pages)
    touched = np.unique(np.searchsorted(first, ids, side="right"))
    return int(np.count_nonzero(touched)) / max(1, len(first))  # no page has the ids before the first one


@lru_cache(maxsize=64)
def _first_ids(path: str, options: tuple[tuple[str, str], ...]) -> npt.NDArray[np.object_]:
    """The first id of each page of an index, in order. Files of indexes never change."""
    reader = LanceFileReader(path, storage_options=dict(options) or None)
    first = reader.read_all().to_table()["min"].drop_null().to_pylist()
    return np.array(sorted(first), dtype=object)


def _in_list(ids: pa.Array) -> str:
    """`id in (…)` in the dialect of Lance's filters."""
    if not len(ids):
        return "false"
    quoted = ",".join("'" + value.replace("'", "''") + "'" for value in ids.to_pylist())
    return f"id in ({quoted})"
