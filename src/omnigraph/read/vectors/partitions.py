"""One stretch of a column of vectors by partition: heads that are near together lie together."""

from __future__ import annotations

from math import isqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.values.columns import Bools, Floats, Ints, Positions
from omnigraph.read.values.vectors import Matrix, Metric
from omnigraph.read.vectors.clusters import centres_of, grouped, half_squares, nearest_centres, products
from omnigraph.read.vectors.heads import Heads
from omnigraph.records import dataclass

_MOST: Final = 1_024
"""No stretch has more partitions."""
_SAMPLE: Final = 20_000
"""From about so many vectors it is learned how they differ."""
_ROUNDING: Final = 1e-5
"""How far an estimate in 32 bits may be off, relative to the squares of the vectors."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimates:
    """Half of the squared distance of some vectors to a query, as far as heads tell, and how far it may be off."""

    places: Positions
    values: npt.NDArray[np.float32]
    tail: float
    """The usual error, because of what heads leave out, …"""
    rounding: float
    """… and what rounding may add to it."""


class Partitions:
    """The vectors of a stretch, by partition; fewer than ``least`` are one. Directions are compared if the measure
    is the cosine: half of the squared distance between vectors of length one is their cosine distance."""

    def __init__(self, matrix: Matrix, valid: Bools | None, metric: Metric, least: int) -> None:
        there = np.arange(len(matrix)) if valid is None else np.flatnonzero(valid)
        vectors = matrix if valid is None else matrix[there]
        self._metric = metric
        self._heads = _heads_for(vectors, metric, least)
        heads = np.empty((len(vectors), self._heads.width), dtype=np.float32)
        halves = np.empty(len(vectors), dtype=np.float32)
        for where, moved, own in self._heads.blocks(vectors):
            halves[where], heads[where] = half_squares(moved), own
            if metric == "cosine":
                lengths = np.sqrt(2 * halves[where])
                heads[where] /= np.where(lengths == 0, np.float32(1), lengths)[:, None]
                halves[where] = 0.5
        count = 1 if len(vectors) < least else min(isqrt(len(vectors)), _MOST)
        self._centres = np.zeros((1, self._heads.width), dtype=np.float32)
        order, self._bounds = np.arange(len(vectors)), np.array([0, len(vectors)])
        if count > 1:
            self._centres = centres_of(heads, count)
            order, self._bounds = grouped(nearest_centres(heads, self._centres), count)
            heads, halves = heads.take(order, axis=0), halves.take(order)
        self._centre_halves = half_squares(self._centres)
        self._places: Positions = there[order].astype(np.int32)
        self._vectors, self._halves = heads, halves
        self._longest = 2 * float(halves.max(initial=0))

    @property
    def nbytes(self) -> int:
        parts = (self._centres, self._bounds, self._places, self._vectors, self._halves)
        return self._heads.nbytes + sum(int(part.nbytes) for part in parts)

    def __len__(self) -> int:
        """How many partitions there are."""
        return len(self._centres)

    def estimates(self, query: Floats, probes: int, allowed: Bools | None) -> Estimates:
        """Estimates for the vectors in so many of the nearest partitions, or for those of them at places that are
        allowed."""
        vector = query if self._metric == "l2" else query / np.sqrt(query @ query)
        head, tail_error = self._heads.query(vector.astype(np.float32))
        moved = vector - self._heads.middle
        square = float(moved @ moved)
        rounding = _ROUNDING * (self._longest + square)
        lows, highs = self._probed(head, probes)
        values = np.empty(int((highs - lows).sum()), dtype=np.float32)
        places = np.empty(len(values), dtype=np.int32)
        at = 0
        for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
            own = values[at : at + high - low]
            products(self._vectors[low:high], head, own)
            np.subtract(self._halves[low:high], own, out=own)
            places[at : at + high - low] = self._places[low:high]
            at += high - low
        values += np.float32(square / 2)
        if allowed is not None:
            chosen = np.flatnonzero(allowed[places])
            places, values = places[chosen], values[chosen]
        return Estimates(places, values, tail_error, rounding)

    def _probed(self, head: Matrix, probes: int) -> tuple[Ints, Ints]:
        """Where the nearest partitions begin and end, in the order in which they lie."""
        if probes >= len(self):
            return self._bounds[:1], self._bounds[-1:]
        nearness = products(self._centres, head)
        nearness -= self._centre_halves
        chosen = np.argpartition(nearness, -probes)[-probes:]
        chosen.sort()
        return self._bounds[chosen], self._bounds[chosen + 1]


def _heads_for(vectors: Matrix, metric: Metric, least: int) -> Heads:
    """Heads for vectors as they are compared. Distances do not change if all vectors are moved, but directions do,
    so these are not."""
    sample = vectors[:: max(1, len(vectors) // _SAMPLE)].astype(np.float64)
    middle = np.zeros(vectors.shape[1])
    if metric == "l2" and len(sample):
        middle = sample.mean(axis=0)
    elif metric == "cosine":
        lengths = np.sqrt(np.einsum("ij,ij->i", sample, sample))
        sample /= np.where(lengths == 0, 1.0, lengths)[:, None]
    if len(vectors) < least:
        return Heads.plain(middle.astype(np.float32))
    return Heads.of(sample - middle, middle.astype(np.float32))
