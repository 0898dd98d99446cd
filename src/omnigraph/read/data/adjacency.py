"""Adjacency: for each node position the positions of its neighbours, as two integer arrays.

An adjacency is a relation between two sets of positions. The *distinct* form holds each connected pair once,
sorted, which is what an unbound hop means; the *stored* form holds every edge with its own position, which is what
a bound edge means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt

from omnigraph.read.data.pairs import PairSet
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.read.values.counting import MANY, halves, largest, whole
from omnigraph.read.values.parallel import in_parallel, parts_of
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_SHIFT: Final = np.int64(32)
_SLOTS_PER_PAIR: Final = 8
_MOST_BITS: Final = 25
Hashes = npt.NDArray[np.uint32]


class Adjacency:
    """Rows of neighbours: row ``i`` is ``targets[starts[i]:starts[i + 1]]``."""

    def __init__(
        self,
        starts: Ints,
        targets: Positions,
        width: int,
        edges: Positions | None = None,
        settings: ReadSettings = READ_DEFAULTS,
        repeats: Ints | None = None,
    ) -> None:
        self.starts = starts
        self.targets = targets
        self.width = width
        self.edges = edges
        self.settings = settings
        self.repeats = repeats
        """Of distinct pairs: the packed pair of every further edge between two nodes, sorted. None if unknown."""

    @property
    def nbytes(self) -> int:
        """The memory it takes, with everything derived from it so far."""
        parts = list(vars(self).values())  # another thread may derive something meanwhile
        beside = 0
        if self.edges is not None and not self.edges.flags.c_contiguous:
            beside = self.edges.nbytes  # the edges lie between the far ends they had
        return beside + sum(part.nbytes for part in parts if isinstance(part, np.ndarray | PairSet))

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

    def expand(self, positions: Array, announce: Callable[[int], None] | None = None) -> tuple[Ints, Ints, Ints]:
        """The entries of several rows: for each entry the index of its position and its place in ``targets``, and
        for each position the number of its entries. ``announce`` is called with the total before arrays of that
        size are made."""
        starts = self.starts[positions]
        counts = self.starts[positions + 1] - starts
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        if announce is not None:
            announce(total)
        places = np.repeat(starts - ends + counts, counts)
        places += np.arange(total)
        return np.repeat(np.arange(len(positions)), counts), places, counts

    def row_sums(self, weights: Array) -> Array:
        """For each row the sum of its neighbours' weights."""
        if largest(weights) * int(self.degrees.max(initial=0)) <= MANY:
            return self._row_sums(weights)
        high, low = halves(weights)
        return whole(self._row_sums(high), self._row_sums(low))

    def _row_sums(self, weights: Array) -> Array:
        """Differences of a running sum. They are right also where the running sum itself has wrapped around."""
        narrow = weights.dtype == np.bool_ and self.pairs < 2**31
        sums: Array = np.empty(len(self), dtype=np.int32 if narrow else np.int64)
        cuts = np.searchsorted(
            self.starts, np.linspace(0, self.pairs, 1 + parts_of(self.pairs, self.settings.parallel_from))
        )
        cuts[0], cuts[-1] = 0, len(self)
        in_parallel(lambda low, high: self._sum_rows(weights, low, high, sums), pairwise(cuts.tolist()))
        return sums

    def _sum_rows(self, weights: Array, low: int, high: int, sums: Array) -> None:
        """Running sums over the neighbours of some rows, block by block; a row's sum is a difference of two."""
        first, last = int(self.starts[low]), int(self.starts[high])
        running: Array = np.empty(last - first + 1, dtype=sums.dtype)
        running[0] = 0
        step = self.settings.pair_block
        for start in range(0, last - first, step):
            stop = min(start + step, last - first)
            block = running[start + 1 : stop + 1]
            np.cumsum(weights.take(self.targets[first + start : first + stop]), dtype=sums.dtype, out=block)
            block += running[start]
        edges = self.starts[low : high + 1] - first
        ends = running.take(edges)
        np.subtract(ends[1:], ends[:-1], out=sums[low:high])

    @cached_property
    def _filter(self) -> Bools:
        """A Bloom filter with one hash: a pair whose slot is empty is not there."""
        bits = min(max(10, int(self.pairs * _SLOTS_PER_PAIR).bit_length()), _MOST_BITS)
        present = np.zeros(1 << bits, dtype=np.bool_)
        present[_slots(hashed_rows(self.owners()), self.targets, bits)] = True
        return present

    @cached_property
    def _set(self) -> PairSet:
        return PairSet(self.owners(), self.targets, self.settings)

    @property
    def mean_degree(self) -> float:
        """How many neighbours a row has on average."""
        return self.pairs / max(1, len(self))

    def prepare(self) -> None:
        """Build the filter and the set of pairs, before several threads need them."""
        _ = self._filter, self._set

    def follow_pairs(self, before: Adjacency, more: Ints, fewer: Ints) -> None:
        """Take the filter and the set of pairs over from the adjacency that this one was made from by adding some
        pairs and taking some away, given packed and sorted."""
        known = vars(before)
        if "_filter" in known:
            present = known["_filter"]
            # Other adjacencies use it too: for them a pair more is a false alarm.
            rows = hashed_rows(more >> _SHIFT)
            present[_slots(rows, low_halves(more), len(present).bit_length() - 1)] = True
            vars(self)["_filter"] = present
        if "_set" in known:
            changed = known["_set"].with_changes(more.view(np.uint64), fewer.view(np.uint64))
            if changed is not None:
                vars(self)["_set"] = changed

    def contains(self, rows: Array, targets: Array) -> Bools:
        """Is each pair there?"""
        found = np.zeros(len(rows), dtype=np.bool_)
        step = self.settings.pair_block
        for low in range(0, len(rows), step):
            block = slice(low, min(low + step, len(rows)))
            maybe = self.maybe_contains(hashed_rows(rows[block]), targets[block]) + low
            found[maybe] = self.surely_contains(rows[maybe], targets[maybe])
        return found

    def surely_contains(self, rows: Array, targets: Array) -> Bools:
        """Is each pair there? Fast for pairs that passed `maybe_contains`."""
        return self._set.contains(rows, targets)

    def maybe_contains(self, rows: Hashes, targets: Array) -> Ints:
        """The indexes of pairs that may be there, by the filter; rows are given by their `hashed_rows`."""
        present = self._filter
        return np.flatnonzero(present.take(_slots(rows, targets, len(present).bit_length() - 1)))


def hashed_rows(rows: Array) -> Hashes:
    """The half of a pair's hash that depends on the row: a row with many targets is hashed once."""
    return np.asarray(rows.astype(np.uint32) * np.uint32(0x9E3779B1))


def _slots(rows: Hashes, targets: Array, bits: int) -> Hashes:
    mixed: Hashes = targets.astype(np.uint32)
    mixed *= np.uint32(0x85EBCA6B)
    mixed ^= rows
    mixed *= np.uint32(0xC2B2AE35)
    mixed >>= np.uint32(32 - bits)
    return mixed


def from_keys(keys: Ints, rows: int, width: int, settings: ReadSettings = READ_DEFAULTS) -> Adjacency:
    """The adjacency of the distinct pairs among packed ones. The keys are sorted in place: a large topology should
    not be in memory twice."""
    keys.sort()
    repeats = _repeated(keys, settings.pair_block)
    keys = keys[: _squeeze(keys, settings.pair_block)]
    return Adjacency(_starts(keys, rows), low_halves(keys), width, settings=settings, repeats=repeats)


def _repeated(keys: Ints, step: int) -> Ints:
    """Those of sorted numbers that are equal to the one before."""
    parts = [keys[:0]]
    for low in range(0, len(keys), step):
        block = keys[low : low + step + 1]
        parts.append(block[1:][block[1:] == block[:-1]])
    return np.concatenate(parts)


def _squeeze(keys: Ints, step: int) -> int:
    """Move the first of each run of equal numbers to the front, block by block; return how many there are."""
    if not len(keys):
        return 0
    used, last = 0, keys[0] - 1
    for low in range(0, len(keys), step):
        block = keys[low : low + step].copy()
        fresh = np.empty(len(block), dtype=np.bool_)
        fresh[0] = block[0] != last
        np.not_equal(block[1:], block[:-1], out=fresh[1:])
        kept = block[fresh]
        keys[used : used + len(kept)] = kept
        used, last = used + len(kept), block[-1]
    return used


def stored(
    held: list[Ints],
    far: list[Positions],
    edges: Positions | None,
    rows: int,
    width: int,
    settings: ReadSettings = READ_DEFAULTS,
) -> Adjacency:
    """The adjacency of every edge. A key packs the near end of an edge with its number, which is the index of its
    far end. Where an edge has several numbers, ``edges`` maps them to edges.

    Both lists hold one array and are emptied, so that no caller keeps it alive: the result is written over the
    keys, the far end of an edge in place of the near end, the edge in place of the number.
    """
    keys, ends = held.pop(), far.pop()
    keys.sort()
    starts = _starts(keys, rows)
    halves = keys.astype("<i8", copy=False).view("<i4")
    step = settings.pair_block
    for low in range(0, len(keys), step):
        numbers = halves[2 * low : 2 * (low + step) : 2].copy()
        halves[2 * low + 1 : 2 * (low + step) : 2] = ends[numbers]
        if edges is not None:
            halves[2 * low : 2 * (low + step) : 2] = edges[numbers]
    del ends
    return Adjacency(starts, np.ascontiguousarray(halves[1::2]), width, halves[::2], settings)


def shared(first: Adjacency, second: Adjacency) -> Adjacency:
    """The pairs that are in both."""
    owners = first.owners()
    held = second.contains(owners, first.targets)
    return from_keys(packed(owners[held], first.targets[held]), len(first), first.width, first.settings)


def united(parts: Sequence[Adjacency], firsts: Sequence[int]) -> Adjacency:
    """Relations between the same rows as one. The edges of each are numbered from its ``firsts`` on."""
    one, near, far = parts[0], [part.owners() for part in parts], [part.targets for part in parts]
    if one.edges is None:
        keys = np.concatenate([packed(*ends) for ends in zip(near, far, strict=True)])
        return from_keys(keys, len(one), one.width, one.settings)
    numbered = ((part.edges, first) for part, first in zip(parts, firsts, strict=True))
    numbers = [edges + np.int32(first) for edges, first in numbered if edges is not None]
    keys = packed(np.concatenate(near), np.arange(sum(part.pairs for part in parts), dtype=np.int32))
    return stored([keys], [np.concatenate(far)], np.concatenate(numbers), len(one), one.width, one.settings)


def reversed_(adjacency: Adjacency) -> Adjacency:
    """The same relation from the other side."""
    owners = adjacency.owners()
    if adjacency.edges is None:
        turned = from_keys(packed(adjacency.targets, owners), adjacency.width, len(adjacency), adjacency.settings)
        if adjacency.repeats is not None:
            low, high = low_halves(adjacency.repeats), (adjacency.repeats >> _SHIFT).astype(np.int32)
            turned.repeats = np.sort(packed(low, high))
        return turned
    keys = packed(adjacency.targets, np.arange(adjacency.pairs, dtype=np.int32))
    return stored([keys], [owners], adjacency.edges, adjacency.width, len(adjacency), adjacency.settings)


def both_ways(adjacency: Adjacency) -> Adjacency:
    """The distinct pairs of a relation between rows of one table, from either end of each."""
    owners, parts = adjacency.owners(), []
    for keys in (packed(owners, adjacency.targets), adjacency.repeats):
        if keys is not None:
            parts += [keys, packed(low_halves(keys), (keys >> _SHIFT).astype(np.int32))]
    return from_keys(np.concatenate(parts), len(adjacency), adjacency.width, adjacency.settings)


def packed(near: Positions, far: Positions) -> Ints:
    """Pairs as single numbers, sorted as the pairs are; those with a missing end (-1) are left out."""
    keys = near.astype(np.int64)
    keys <<= _SHIFT
    keys |= far
    if int(near.min(initial=0)) < 0 or int(far.min(initial=0)) < 0:
        keys = keys[(near >= 0) & (far >= 0)]
    return keys


def low_halves(keys: Ints) -> Positions:
    """The lower halves of packed keys."""
    return np.ascontiguousarray(keys.astype("<i8", copy=False).view("<i4")[::2])


def _starts(keys: Ints, rows: int) -> Ints:
    """Where each row begins among sorted keys."""
    return np.searchsorted(keys, np.arange(rows + 1, dtype=np.int64) << _SHIFT).astype(np.int64, copy=False)
