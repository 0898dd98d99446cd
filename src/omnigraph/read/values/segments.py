"""What is made from a growing column segment by segment: a large one, and smaller ones for what came later.

Segments that are small beside what comes behind them are made again together with it, so there are few, and each
row is worked on a few times however long the column grows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from typing import Final, Generic, TypeVar

from omnigraph.records import dataclass

Made = TypeVar("Made")
_RATIO: Final = 2


@dataclass(frozen=True, slots=True)
class Segment(Generic[Made]):
    """What was made from the rows of a column between two positions, and the pieces of the table they were of."""

    start: int
    stop: int
    made: Made
    known: Set[Hashable] = frozenset()


def covering(
    segments: Sequence[Segment[Made]], stop: int, make: Callable[[int, int], Segment[Made]]
) -> tuple[Segment[Made], ...]:
    """The segments, and one more up to ``stop``. It takes in those before it that are not much larger."""
    kept = list(segments)
    start = kept[-1].stop if kept else 0
    if start >= stop:
        return tuple(kept)
    while kept and kept[-1].stop - kept[-1].start <= _RATIO * (stop - start):
        start = kept.pop().start
    return (*kept, make(start, stop))
