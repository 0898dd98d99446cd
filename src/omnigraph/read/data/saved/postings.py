"""The postings of a text property as bytes: what the first search of a process would make from all its texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import lance
import numpy as np

from omnigraph.read.data.layout import Placement
from omnigraph.read.data.saved.container import Parts, packed_parts, unpacked
from omnigraph.read.data.saved.versions import SavedTable, described_table, table_described
from omnigraph.read.text.analysis import ANALYSIS
from omnigraph.read.text.postings import PostingArrays, Postings
from omnigraph.read.values.columns import Array
from omnigraph.read.values.segments import Segment
from omnigraph.records import dataclass

_MARK: Final = b"OMNIWORD"
_FORMAT: Final = 1


@dataclass(frozen=True, slots=True, eq=False)
class SavedPostings:
    """The postings of a column, which files know by its number, and the version of the table they are of."""

    table: SavedTable
    column: int
    postings: Postings


def encoded(saved: SavedPostings, root: str) -> Parts | None:
    """Saved postings as bytes; None if a folder of their table is not below the root of the graph."""
    arrays: list[Array] = list(saved.postings.arrays)
    try:
        table = described_table(saved.table, root, arrays)
    except ValueError:
        return None
    described = {"format": _FORMAT, "analysis": _analysis(), "table": table, "column": saved.column}
    return packed_parts(_MARK, described, arrays)


def decoded(content: memoryview, root: str) -> SavedPostings | None:
    """What was saved; None if that is not what the bytes are, or if texts become other terms now."""
    found = unpacked(_MARK, content)
    if found is None:
        return None
    described, arrays = found
    try:
        if (described["format"], described["analysis"]) != (_FORMAT, _analysis()):
            return None
        table = table_described(described["table"], root, arrays)
        own = PostingArrays(*arrays[: len(PostingArrays._fields)])
    except (KeyError, TypeError, ValueError):
        return None
    return SavedPostings(table, described["column"], Postings(own))


def _analysis() -> Mapping[str, Any]:
    """What decides how texts become terms."""
    return {**ANALYSIS, "lance": lance.__version__}


def segment_in(saved: SavedPostings, placement: Placement) -> Segment[Postings] | None:
    """The postings in the positions of a version, as far as it has their texts. None if it has none of them, has
    them in another order, or has other rows in between."""
    stretches = [placement.by_files.get(piece.files) for piece in saved.table.pieces]
    known = frozenset(stretch.piece.files for stretch in stretches if stretch is not None)
    stop = max((stretch.stop for stretch in stretches if stretch is not None), default=0)
    if not stop or placement.unknown(known, 0, stop):
        return None
    begins = np.cumsum([0, *(piece.rows for piece in saved.table.pieces)]).tolist()
    if begins[-1] == stop and all(
        stretch is not None and not stretch.is_scattered and stretch.start == begin
        for stretch, begin in zip(stretches, begins[:-1], strict=True)
    ):
        return Segment(0, stop, saved.postings, known)
    positions = np.concatenate(
        [
            np.full(piece.rows, -1, dtype=np.int32) if stretch is None else stretch.positions
            for piece, stretch in zip(saved.table.pieces, stretches, strict=True)
        ]
    )
    there = positions[positions >= 0]
    if bool((there[1:] <= there[:-1]).any()):
        return None
    return Segment(0, stop, saved.postings.moved(positions, stop), known)
