"""Candidates for the nearest vectors from an index: whether it can be asked, and how far it has to be searched."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import Final

import numpy as np

from omnigraph.errors import ObjectDamaged, StorageUnavailable
from omnigraph.lang.query import ir
from omnigraph.read.data.rows import Rows, WholeTable
from omnigraph.read.run.search.scorers import NearestScorer
from omnigraph.read.values.columns import Array, Bools, Ints
from omnigraph.records import dataclass
from omnigraph.settings import ReadSettings
from omnigraph.storage.rows.nearest import Near, VectorIndex

REFINE: Final = 4
"""An index knows vectors by a few bits for each number, so it is asked for so many times the rows that are wanted;
their exact distances decide."""

_FEW: Final = 10
"""Where less than one in so many rows of a table can be chosen, all of them are compared, …"""

_QUICK: Final = 1 << 25
"""… and where so few numbers have to be, up to one in four rows."""

_LOSS: Final = (1.2, 1.3)
"""How many of the nearest are missed: e^-(a + b·p/√n) of them if p of n partitions are searched."""


@dataclass(frozen=True, slots=True)
class IndexedSearch:
    """How an index is searched: in how many partitions of a segment, and for how many candidates for each row that
    the query returns."""

    index: VectorIndex
    probes: int
    refine: int = REFINE

    def near(self, scorer: NearestScorer, wanted: int, share: float = 1.0) -> Near:
        """The search for the candidates of so many rows, of which only a share can be chosen."""
        count, probes = ceil(wanted * self.refine / share), ceil(self.probes / sqrt(share))
        vector = scorer.vector.astype(np.float32)
        return Near(scorer.property, vector, scorer.metric, count, min(probes, self.index.partitions))

    def __str__(self) -> str:
        index = self.index
        return (
            f"index {index.name}, {self.probes} of {index.partitions} partitions, "
            f"{self.refine} candidates for each row"
        )


def probes_for(recall: float, partitions: int) -> int:
    """In how many partitions to look for that share of the nearest vectors, and half of what may be missed to
    spare: data differ."""
    start, slope = _LOSS
    share = (-log((1 - recall) / 2) - start) / slope
    return max(1, min(partitions, ceil(share * sqrt(partitions))))


def indexed_search(
    table: WholeTable, score: ir.Nearest, wanted: int, settings: ReadSettings
) -> IndexedSearch | None:
    """How to search the index of a vector property for so many rows; None if all vectors are compared: because the
    table is small, exact search or too many rows are asked for, or the index is missing or lacks too many rows."""
    if settings.recall >= 1 or table.count < settings.search_from:
        return None
    if not 0 < wanted * REFINE <= settings.lookup_rows:
        return None
    index = table.vector_index(score.property)
    if index is None or index.metric != score.metric or table.count - index.rows > settings.search_from:
        return None
    return IndexedSearch(index, probes_for(settings.recall, index.partitions))


def candidates_by_index(
    score: ir.Nearest, scorer: NearestScorer, rows: Rows, wanted: int, among: Array | None, settings: ReadSettings
) -> Ints | None:
    """Positions that contain nearly all of the nearest so many entities, of all or of those at some positions,
    which ascend; at least so many, or all. None if all of them have to be compared."""
    search = indexed_search(rows, score, wanted, settings) if isinstance(rows, WholeTable) else None
    if search is None or not scorer.vector.any():
        return None
    assert isinstance(rows, WholeTable)  # noqa: S101  only they have indexes
    share = 1.0
    if among is not None:
        share = len(among) / rows.count
        fetched = not rows.keeps_vectors(score.property, score.dimension)
        if fetched and len(among) <= settings.lookup_rows:
            return among
        if not fetched and (_FEW * share < 1 or (4 * share < 1 and len(among) * score.dimension <= _QUICK)):
            return None
    while True:
        near = search.near(scorer, wanted, share)
        if near.count > settings.lookup_rows:
            return None
        try:
            found = rows.near(near)
        except (StorageUnavailable, ObjectDamaged):
            return None
        chosen = found if among is None else found[_is_among(found, among)]
        if len(chosen) >= wanted:
            return chosen
        share /= 4


def _is_among(found: Ints, among: Array) -> Bools:
    """Which numbers are among some that ascend."""
    wanted = found.astype(among.dtype, copy=False)  # searching for another type than there is would copy all
    places = np.minimum(np.searchsorted(among, wanted), len(among) - 1)
    return np.asarray(among[places] == wanted)
