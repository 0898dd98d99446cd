"""Adjacency: for each node position the positions of its neighbours, as two integer arrays.

An adjacency is a relation between two sets of positions. The *distinct* form holds each connected pair once,
sorted, which is what an unbound hop means; the *stored* form holds every edge with its own position, which is what
a bound edge means.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.columns import Array, Bools, Ints, Positions

_SHIFT: Final = np.int64(32)
_BITS_PER_PAIR: Final = 16
_BLOCK: Final = 1 << 16


class Adjacency:
    """Rows of neighbours: row ``i`` is ``targets[starts[i]:starts[i + 1]]``."""

    def __init__(self, starts: Ints, targets: Positions, width: int, edges: Positions | None = None) -> None:
        self.starts = starts
        self.targets = targets
        self.width = width
        self.edges = edges

    @property
    def nbytes(self) -> int:
        """What it takes, with what is derived from it as long as it lives."""
        edges = 0 if self.edges is None else self.edges.nbytes
        return int(self.starts.nbytes + self.targets.nbytes + edges + len(self) * 4)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def pairs(self) -> int:
        """How many entries there are."""
        return len(self.targets)

    @cached_property
    def degrees(self) -> Positions:
        """How many neighbours each row has."""
        return np.diff(self.starts).astype(np.int32)

    @cached_property
    def is_function(self) -> bool:
        """Has every row at most one neighbour?"""
        return len(self) == 0 or int(self.degrees.max()) <= 1

    @cached_property
    def only(self) -> Positions:
        """Of a function: the neighbour of each row, -1 where there is none."""
        only = np.full(len(self), -1, dtype=np.int32)
        only[self.degrees > 0] = self.targets
        return only

    def owners(self) -> Positions:
        """The row of each entry."""
        return np.repeat(np.arange(len(self), dtype=np.int32), self.degrees)

    def expand(self, positions: Array) -> tuple[Ints, Ints, Ints]:
        """The entries of several rows: which of the positions each belongs to, where each is in ``targets``, and
        how many each position has."""
        starts = self.starts[positions]
        counts = self.starts[positions + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        places = np.repeat(starts - ends + counts, counts)
        places += np.arange(total)
        return np.repeat(np.arange(len(positions)), counts), places, counts

    def row_sums(self, weights: Array) -> Ints:
        """For each row the sum of its neighbours' weights."""
        running = np.zeros(self.pairs + 1, dtype=np.int64)
        for low in range(0, self.pairs, _BLOCK):
            high = min(low + _BLOCK, self.pairs)
            block = running[low + 1 : high + 1]
            np.cumsum(weights.take(self.targets[low:high]), dtype=np.int64, out=block)
            block += running[low]
        return np.asarray(running[self.starts[1:]] - running[self.starts[:-1]])

    @cached_property
    def _filter(self) -> npt.NDArray[np.uint8]:
        """A bit per hashed pair: a pair whose bit is not set is not there."""
        bits = 1 << max(10, int(self.pairs * _BITS_PER_PAIR).bit_length())
        present = np.zeros(bits, dtype=np.bool_)
        present[_hashed(self.owners(), self.targets, bits)] = True
        return np.packbits(present, bitorder="little")

    def contains(self, rows: Array, targets: Array) -> Bools:
        """Is each pair there? For sorted rows only."""
        found = np.zeros(len(rows), dtype=np.bool_)
        bits = len(self._filter) * 8
        for low in range(0, len(rows), _BLOCK):
            high = min(low + _BLOCK, len(rows))
            hashed = _hashed(rows[low:high], targets[low:high], bits)
            maybe = np.flatnonzero((self._filter.take(hashed >> 3) >> (hashed & 7).astype(np.uint8)) & 1)
            if len(maybe):
                maybe += low
                found[maybe] = self._holds(rows[maybe], targets[maybe])
        return found

    def _holds(self, rows: Array, targets: Array) -> Bools:
        """By bisection in each row, all at once."""
        low = self.starts[rows]
        end = self.starts[rows + 1]
        high = end.copy()
        if not self.pairs:
            return np.zeros(len(rows), dtype=np.bool_)
        last = self.pairs - 1
        for _ in range(int((high - low).max(initial=0)).bit_length()):
            middle = (low + high) >> 1
            below = (self.targets[np.minimum(middle, last)] < targets) & (low < high)
            low = np.where(below, middle + 1, low)
            high = np.where(below, high, middle)
        return np.asarray((low < end) & (self.targets[np.minimum(low, last)] == targets))


def _hashed(rows: Array, targets: Array, bits: int) -> Ints:
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= (targets.astype(np.uint64) + np.uint64(0x7F4A7C15)) * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed >>= np.uint64(64 - (bits.bit_length() - 1))
    return mixed.view(np.int64)


def distinct(parts: list[tuple[Positions, Positions]], rows: int, width: int) -> Adjacency:
    """The distinct pairs of some arrays of pairs; pairs with a missing end (-1) are left out.

    The list is emptied on the way: a large topology should not be in memory twice.
    """
    packed = []
    while parts:
        packed.append(_packed(*parts.pop()))
    keys = packed.pop() if len(packed) == 1 else np.concatenate(packed)
    packed.clear()
    keys.sort()
    if len(keys):
        keep = np.empty(len(keys), dtype=np.bool_)
        keep[0] = True
        np.not_equal(keys[1:], keys[:-1], out=keep[1:])
        if not keep.all():
            keys = keys[keep]
    return Adjacency(_starts(keys, rows), _low(keys), width)


def stored(sources: Positions, targets: Positions, edges: Positions | None, rows: int, width: int) -> Adjacency:
    """Every pair with its edge, in the order of the edges; pairs with a missing end are left out."""
    keys = sources.astype(np.int64) << _SHIFT
    keys |= np.arange(len(sources), dtype=np.int64)
    keys = keys[(sources >= 0) & (targets >= 0)]
    keys.sort()
    order = _low(keys)
    return Adjacency(_starts(keys, rows), targets[order], width, order if edges is None else edges[order])


def reversed_(adjacency: Adjacency) -> Adjacency:
    """The same relation from the other side."""
    if adjacency.edges is None:
        return distinct([(adjacency.targets, adjacency.owners())], adjacency.width, len(adjacency))
    return stored(adjacency.targets, adjacency.owners(), adjacency.edges, adjacency.width, len(adjacency))


def _packed(sources: Positions, targets: Positions) -> Ints:
    keys = sources.astype(np.int64)
    keys <<= _SHIFT
    keys |= targets
    if int(sources.min(initial=0)) < 0 or int(targets.min(initial=0)) < 0:
        keys = keys[(sources >= 0) & (targets >= 0)]
    return keys


def _low(keys: Ints) -> Positions:
    """The lower halves of packed keys."""
    return np.ascontiguousarray(keys.astype("<i8", copy=False).view("<i4")[::2])


def _starts(keys: Ints, rows: int) -> Ints:
    """Where each row begins among sorted keys."""
    return np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) << _SHIFT).astype(np.int64, copy=False)
