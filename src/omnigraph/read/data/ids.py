"""The positions of the ids of a table, for millions of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Bools, Positions
from omnigraph.read.values.exact import ExactIndex
from omnigraph.read.values.segments import Segment


class Ids:
    """The ids of a table by position, in one segment or in several."""

    def __init__(self, segments: Sequence[Segment[ExactIndex]]) -> None:
        self.segments = tuple(segments)

    @property
    def nbytes(self) -> int:
        return sum(segment.made.nbytes for segment in self.segments)

    def places(self, wanted: pa.Array, size: int, live: Bools | None) -> Positions:
        """The position of each wanted id in a version that has so many positions; -1 where it has no such id.

        An id may have several positions, of which one at most is ``live``.
        """
        if len(self.segments) == 1 and self.segments[0].stop == size:
            return self.segments[0].made.places(wanted, live)
        found = np.full(len(wanted), -1, dtype=np.int32)
        live = np.ones(size, dtype=np.bool_) if live is None else live
        for segment in reversed(self.segments):
            missing = np.flatnonzero(found < 0)
            if segment.start >= size or not len(missing):
                continue
            own = np.zeros(segment.stop - segment.start, dtype=np.bool_)
            part = live[segment.start : segment.stop]
            own[: len(part)] = part
            places = segment.made.places(wanted.take(to_arrow(missing)), own)
            found[missing] = np.where(places < 0, -1, places + segment.start)
        return found
