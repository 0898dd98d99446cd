"""Candidates for the nearest vectors from an index: whether it can be asked, and how far it has to be searched."""

from __future__ import annotations

from math import ceil, log, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.errors import ObjectDamaged, StorageUnavailable
from omnigraph.lang.query import ir
from omnigraph.read.data.rows import Rows, WholeTable
from omnigraph.read.run.search.scorers import NearestScorer
from omnigraph.read.values.columns import Array, Bools, Ints
from omnigraph.records import dataclass
from omnigraph.settings import ReadSettings
from omnigraph.storage.rows.nearest import Near, VectorIndex

if TYPE_CHECKING:
    from omnigraph.read.vectors.search import PartitionedVectors

_SPARE: Final = 16
"""Partitions in memory are searched until only one in so many of those that may be missed is."""

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


@dataclass(frozen=True, slots=True)
class PartitionedSearch:
    """How vectors in memory are searched: in how many partitions of them."""

    vectors: PartitionedVectors
    probes: int

    def near(self, scorer: NearestScorer, wanted: int, among: Array | None, share: float) -> Ints:
        """The candidates for so many rows, of all or of those at some positions, which are a share of all."""
        return self.vectors.near(scorer.vector, wanted, ceil(self.probes / sqrt(share)), among)

    def __str__(self) -> str:
        return f"{self.probes} of {self.vectors.count} partitions"


def probes_for(recall: float, partitions: int, spare: int = 2) -> int:
    """In how many partitions to look for that share of the nearest vectors, if only one in ``spare`` of those that
    may be missed is: data differ."""
    start, slope = _LOSS
    share = (-log((1 - recall) / spare) - start) / slope
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


def partitioned_search(table: WholeTable, score: ir.Nearest, settings: ReadSettings) -> PartitionedSearch | None:
    """How to search the vectors of a property in memory, where those of an index would be searched; None if they
    are not in partitions yet."""
    vectors = table.partitioned(score.property, score.metric, score.dimension)
    if vectors is None:
        return None
    return PartitionedSearch(vectors, probes_for(settings.recall, vectors.count, _SPARE))


def candidates_by_index(
    score: ir.Nearest, scorer: NearestScorer, rows: Rows, wanted: int, among: Array | None, settings: ReadSettings
) -> Ints | None:
    """Positions that contain nearly all of the nearest so many entities, of all or of those at some positions,
    which ascend; at least so many, or all. None if all of them have to be compared."""
    search = indexed_search(rows, score, wanted, settings) if isinstance(rows, WholeTable) else None
    if search is None or not scorer.vector.any():
        return None
    assert isinstance(rows, WholeTable)  # noqa: S101  only they have indexes
    share, kept = 1.0, rows.keeps_vectors(score.property, score.dimension)
    if among is not None:
        share = len(among) / rows.count
        if not kept and len(among) <= settings.lookup_rows:
            return among
        if kept and (_FEW * share < 1 or (4 * share < 1 and len(among) * score.dimension <= _QUICK)):
            return None
    partitioned = partitioned_search(rows, score, settings) if kept else None
    if partitioned is not None:
        return partitioned.near(scorer, wanted, among, share)
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
