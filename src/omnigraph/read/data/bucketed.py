"""The adjacency of pairs that come in pieces, more of them than should be held and sorted at once.

Rows are taken some at a time. Their pairs go into buckets of neighbouring rows, which fit caches, and a bucket is
sorted by halves of its numbers, for which NumPy has a sort that only counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice, pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.data.adjacency import Adjacency, low_halves, packed
from omnigraph.read.values.columns import Array, Ints, Positions
from omnigraph.read.values.parallel import in_parallel, parts_of
from omnigraph.settings import READ_DEFAULTS, ReadSettings

Halves = npt.NDArray[np.uint16]
Pairs = Iterable[tuple[Positions, Positions]]
"""Pieces of near and far ends, none of which is missing."""
_HALF: Final = 16
_PIECE_PAIRS: Final = 1 << 19
_HELD_PAIRS: Final = 1 << 22
"""About how many pairs are held beside the result, …"""
_BUCKET_PAIRS: Final = 1 << 17
"""… and how many a bucket has, if rows have about equally many."""


def adjacency_of(
    pieces: Callable[[], Pairs],
    rows: int,
    width: int,
    pairs: int,
    settings: ReadSettings = READ_DEFAULTS,
    *,
    held: int = _HELD_PAIRS,
    bucket: int = _BUCKET_PAIRS,
) -> Adjacency | None:
    """The distinct pairs among so many, which ``pieces`` gives as often as it is called; None if it gives others.

    Beside the result, pairs of some rows are held, six bytes each.
    """
    halves = 2 if width > 1 << _HALF else 1
    return _adjacency(pieces, rows, width, pairs, halves, settings, held, bucket)


def turned(adjacency: Adjacency, *, held: int = _HELD_PAIRS, bucket: int = _BUCKET_PAIRS) -> Adjacency | None:
    """The same distinct pairs from the other side. They come in the order of what is the far end there."""
    rows, width, settings = adjacency.width, len(adjacency), adjacency.settings
    pieces = partial(_pieces_of, adjacency)
    found = _adjacency(pieces, rows, width, adjacency.pairs, 0, settings, held, bucket)
    if found is not None and adjacency.repeats is not None:
        found.repeats = packed(low_halves(adjacency.repeats), (adjacency.repeats >> 32).astype(np.int32))
        found.repeats.sort()
    return found


def _pieces_of(adjacency: Adjacency) -> Pairs:
    """The pairs of an adjacency from the other side, some rows at a time."""
    cuts = np.searchsorted(adjacency.starts, np.arange(0, adjacency.pairs + _PIECE_PAIRS, _PIECE_PAIRS))
    for low, high in pairwise([*np.minimum(cuts, len(adjacency)).tolist(), len(adjacency)]):
        starts = adjacency.starts[low : high + 1]
        yield (
            adjacency.targets[starts[0] : starts[-1]],
            np.repeat(np.arange(low, high, dtype="i4"), np.diff(starts)),
        )


def _adjacency(
    pieces: Callable[[], Pairs],
    rows: int,
    width: int,
    pairs: int,
    halves: int,
    settings: ReadSettings,
    held: int,
    bucket: int,
) -> Adjacency | None:
    """The distinct pairs, whose far ends are sorted by so many halves."""
    turns = max(1, -(-pairs // held))
    cuts = [rows * turn // turns for turn in range(turns + 1)]
    starts = np.zeros(rows + 1, dtype=np.int64)
    targets = np.empty(pairs, dtype=np.int32)
    repeats = [np.zeros(0, dtype=np.int64)]
    seen = used = 0
    for low, high in pairwise(cuts):
        buckets = _Buckets(low, high, halves, max(1, pairs // turns // bucket))
        left, together = iter(pieces()), parts_of(pairs, settings.parallel_from)
        while group := list(islice(left, together)):
            buckets.add(group, is_all=turns == 1)
        seen += buckets.pairs
        if seen > pairs:
            return None
        parts = parts_of(buckets.pairs, settings.parallel_from)
        used += buckets.move_to(starts, targets[used:], repeats, parts)
    if seen != pairs:
        return None
    np.cumsum(starts, out=starts)
    return Adjacency(starts, targets[:used], width, settings=settings, repeats=np.concatenate(repeats))


class _Buckets:
    """The pairs of some rows in about so many buckets."""

    def __init__(self, first: int, stop: int, halves: int, wanted: int) -> None:
        self._first, self._stop, self._halves = first, stop, halves
        rows = stop - first
        self._bits = min(_HALF, (rows // min(wanted, max(1, rows))).bit_length())
        self._count = max(1, -(-rows >> self._bits))
        self._near: list[Halves] = []
        self._far: list[Positions] = []
        self._cuts: list[Ints] = []
        self.pairs = 0

    def add(self, pieces: Sequence[tuple[Positions, Positions]], *, is_all: bool) -> None:
        """Add those pairs whose near end is one of the rows, or all; threads divide several pieces."""
        divided: dict[int, tuple[Halves, Positions, Ints]] = {}

        def divide(low: int, high: int) -> None:
            for place in range(low, high):
                divided[place] = self._divided(*pieces[place], is_all=is_all)

        in_parallel(divide, pairwise(range(len(pieces) + 1)))
        for place in range(len(pieces)):
            near, far, cuts = divided[place]
            self._near.append(near)
            self._far.append(far)
            self._cuts.append(cuts)
            self.pairs += len(near)

    def _divided(self, near: Positions, far: Positions, *, is_all: bool) -> tuple[Halves, Positions, Ints]:
        """The pairs of a piece by bucket, and where each bucket begins."""
        if not is_all:
            mine = np.flatnonzero((near >= self._first) & (near < self._stop))
            near, far = near[mine] - np.int32(self._first), far[mine]
        bucket = near >> np.int32(self._bits)
        cuts = np.zeros(self._count + 1, dtype=np.int64)
        np.cumsum(np.bincount(bucket, minlength=self._count), out=cuts[1:])
        within = (near & np.int32((1 << self._bits) - 1)).astype(np.uint16)
        order = np.argsort(bucket.astype(_counted(self._count)), kind="stable")
        return within[order], far[order], cuts

    def move_to(self, degrees: Ints, targets: Positions, repeats: list[Ints], parts: int) -> int:
        """Write how many neighbours each row has behind its place, and the neighbours; how many there are.

        ``repeats`` get the pairs that are there several times.
        """
        sizes = np.diff(np.sum(self._cuts, axis=0)) if self._cuts else np.zeros(self._count, np.int64)
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        again = [np.zeros(0, dtype=np.int64)] * self._count
        used = np.zeros(self._count, dtype=np.int64)

        def fill(low: int, high: int) -> None:
            for bucket in range(low, high):
                near, far = self._sorted(bucket)
                first = self._first + (bucket << self._bits)
                is_new = np.ones(len(near), dtype=np.bool_)
                is_new[1:] = (near[1:] != near[:-1]) | (far[1:] != far[:-1])
                if not is_new.all():
                    rows = near[~is_new].astype(np.int32) + np.int32(first)
                    again[bucket] = packed(rows, far[~is_new])
                    near, far = near[is_new], far[is_new]
                begin, used[bucket] = int(begins[bucket]), len(far)
                targets[begin : begin + len(far)] = far
                stop = min(self._stop, first + (1 << self._bits))
                if first < stop:
                    degrees[first + 1 : stop + 1] = np.bincount(near, minlength=stop - first)

        in_parallel(fill, pairwise([self._count * part // parts for part in range(parts + 1)]))
        repeats += again
        return _moved_together(targets, begins, used)

    def _sorted(self, bucket: int) -> tuple[Halves, Positions]:
        """The pairs of a bucket, sorted by the low halves of far ends, then by the high ones, then by row."""
        near: Halves = _of_bucket(self._near, self._cuts, bucket, np.uint16)
        far: Positions = _of_bucket(self._far, self._cuts, bucket, np.int32)
        for half in range(self._halves):
            order = np.argsort((far >> np.int32(_HALF * half)).astype(np.uint16), kind="stable")
            near, far = near[order], far[order]
        order = np.argsort(near, kind="stable")
        return near[order], far[order]


def _counted(values: int) -> type[np.uint8 | np.uint16]:
    """The smallest type of so many values: the smaller it is, the faster it is sorted."""
    return np.uint8 if values <= 1 << 8 else np.uint16


def _of_bucket(parts: Iterable[Array], cuts: list[Ints], bucket: int, kind: npt.DTypeLike) -> Array:
    found = [part[at[bucket] : at[bucket + 1]] for part, at in zip(parts, cuts, strict=True)]
    return np.concatenate([np.zeros(0, dtype=kind), *found])


def _moved_together(targets: Positions, begins: Ints, used: Ints) -> int:
    """Close the gaps that repeated pairs have left behind the targets of buckets; how many targets there are."""
    end = 0
    for begin, size in zip(begins[:-1].tolist(), used.tolist(), strict=True):
        if begin > end and size:
            targets[end : end + size] = targets[begin : begin + size].copy()
        end += size
    return end
