"""The nearest vectors of a column that has grown: every stretch of it is searched by partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from omnigraph.read.values.columns import Array, Bools, Floats, Ints
from omnigraph.read.values.segments import Segment
from omnigraph.read.values.sorting import smallest
from omnigraph.read.vectors.partitions import Partitions

_ERRORS: Final = 3.0
"""An estimate is rarely off by more than so many usual errors."""


class PartitionedVectors:
    """The vectors of a property by position and partition; ``live`` tells which positions have rows."""

    def __init__(self, segments: Sequence[Segment[Partitions]], size: int, live: Bools | None) -> None:
        self._segments = tuple(segment for segment in segments if segment.start < size)
        self._size, self._live = size, live

    @property
    def nbytes(self) -> int:
        return sum(segment.made.nbytes for segment in self._segments)

    @property
    def count(self) -> int:
        """How many partitions the stretch with the most has."""
        return max((len(segment.made) for segment in self._segments), default=1)

    def near(self, query: Floats, wanted: int, probes: int, among: Array | None = None) -> Ints:
        """Positions, ascending, that contain so many of the nearest vectors, of all or of those at some positions,
        as far as so many partitions have them; at least so many positions, unless there are less. They include
        everything that estimates could be wrong about: exact distances decide."""
        allowed = self._allowed(among)
        while True:
            positions, chosen = self._searched(query, wanted, probes, allowed)
            if chosen >= wanted or probes >= self.count:
                return positions
            probes *= 4

    def _allowed(self, among: Array | None) -> Bools | None:
        """Which positions may be chosen; None if all may."""
        end = self._segments[-1].stop if self._segments else 0
        if among is None and self._live is None and end == self._size:
            return None
        allowed = np.zeros(max(end, self._size), dtype=np.bool_)
        if among is not None:
            allowed[among] = True
        else:
            allowed[: self._size] = True if self._live is None else self._live
        return allowed

    def _searched(self, query: Floats, wanted: int, probes: int, allowed: Bools | None) -> tuple[Ints, int]:
        """What is found in so many partitions of each stretch, and among how many vectors."""
        found = []
        for segment in self._segments:
            own = None if allowed is None else allowed[segment.start : segment.stop]
            found.append(segment.made.estimates(query, probes, own))
        values = np.concatenate([one.values for one in found]) if len(found) > 1 else found[0].values
        border = float(smallest(values, wanted)) if 0 < wanted < len(values) else np.inf
        tail, rounding = max(one.tail for one in found), max(one.rounding for one in found)
        border += 2 * (_ERRORS * tail + rounding)
        parts = [
            one.places[one.values <= border].astype(np.int64) + segment.start
            for one, segment in zip(found, self._segments, strict=True)
        ]
        return np.sort(np.concatenate(parts)), len(values)
