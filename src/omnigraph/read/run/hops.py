"""Chains of hops: which nodes are reached in at least m and at most n hops, each by its shortest way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.pattern import Link
from omnigraph.read.values.columns import Array, Ints, Positions, distinct_numbers
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_SHIFT: Final = np.int64(32)
_LOW: Final = np.int64(0xFFFFFFFF)


def reached(
    adjacency: Adjacency, sources: Array, chain: Link, limits: Limits, settings: ReadSettings = READ_DEFAULTS
) -> tuple[Ints, Positions]:
    """For each source what a chain of hops relates it to, as pairs of the source's number and a position.

    A node counts at its shortest distance from the left variable. A loop at the right variable makes up for one
    hop that the way is too short; so a node is its own neighbour only in a chain that begins with one hop.
    """
    unique, inverse = np.unique(sources, return_inverse=True)
    step = max(1, settings.visited_cells // max(adjacency.width, 1))
    owners: list[Ints] = []
    found: list[Positions] = []
    for low in range(0, len(unique), step):
        some = unique[low : low + step]
        some_owners, some_found = _search(adjacency, some, chain, limits, settings.hop_entries)
        owners.append(some_owners + low)
        found.append(some_found)
    all_owners = np.concatenate(owners) if owners else np.zeros(0, dtype=np.int64)
    all_found = np.concatenate(found) if found else np.zeros(0, dtype=np.int32)
    if len(unique) == len(sources) and np.array_equal(inverse, np.arange(len(sources))):
        return all_owners, all_found
    return _spread(all_owners, all_found, inverse, len(unique), limits)


def reach_bounds(adjacency: Adjacency, max_hops: int, limits: Limits) -> Ints:
    """For each position an upper bound of the nodes that it reaches: the number of ways, or of all nodes."""
    ways = adjacency.degrees.astype(np.int64)
    bounds = ways
    for _ in range(max_hops - 1):
        limits.check()
        ways = np.minimum(adjacency.row_sums(ways), adjacency.width)
        bounds = np.minimum(bounds + ways, adjacency.width)
        if int(bounds.min(initial=adjacency.width)) == adjacency.width:
            break
    return bounds


def _search(
    adjacency: Adjacency, sources: Array, chain: Link, limits: Limits, entries: int
) -> tuple[Ints, Positions]:
    """Breadth first from several sources side by side, with a table of the nodes that each source has visited."""
    limits.allocate(0, len(sources) * adjacency.width)
    visited = np.zeros((len(sources), adjacency.width), dtype=np.bool_)
    has_loop = np.zeros(len(sources), dtype=np.bool_)
    who = np.arange(len(sources), dtype=np.int64)
    where = sources.astype(np.int64)
    visited[who, where] = True
    owners: list[Ints] = []
    found: list[Positions] = []

    def emit(some_who: Ints, some_where: Ints) -> None:
        owners.append(some_who)
        found.append(some_where.astype(np.int32))

    for hop in range(1, chain.max_hops + 1):
        new = [who[:0]]
        for some in _stretches(adjacency, where, entries):
            rows, places, _ = adjacency.expand(where[some], lambda total: limits.allocate(total, total * 40))
            next_who, next_where = who[some][rows], adjacency.targets[places].astype(np.int64)
            looped = next_where == where[some][rows]
            if hop == 1:
                has_loop[next_who[looped]] = True
            if hop == chain.min_hops and not (chain.backwards and hop > 1):
                emit(next_who[looped], next_where[looped])
            fresh = ~looped & ~visited[next_who, next_where]
            pairs = distinct_numbers(next_who[fresh] << _SHIFT | next_where[fresh])
            visited[pairs >> _SHIFT, pairs & _LOW] = True
            new.append(pairs)
        pairs = np.concatenate(new)
        who, where = pairs >> _SHIFT, pairs & _LOW
        if hop >= chain.min_hops:
            emit(who, where)
        elif chain.backwards and hop == chain.min_hops - 1:
            emit(who[has_loop[who]], where[has_loop[who]])
        if not len(who):
            break
    if not owners:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return np.concatenate(owners), np.concatenate(found)


def _stretches(adjacency: Adjacency, positions: Ints, entries: int) -> Iterator[slice]:
    """The positions in stretches with at most so many neighbours each; a single position may have more."""
    ends = np.cumsum(adjacency.degrees[positions], dtype=np.int64)
    low = 0
    while low < len(positions):
        begun = int(ends[low - 1]) if low else 0
        high = max(low + 1, int(np.searchsorted(ends, begun + entries, side="right")))
        yield slice(low, high)
        low = high


def _spread(owners: Ints, found: Positions, inverse: Array, unique: int, limits: Limits) -> tuple[Ints, Positions]:
    """What each distinct source reached, for every row that has that source."""
    order = np.argsort(owners, kind="stable")
    starts = np.zeros(unique + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=unique), out=starts[1:])
    by_source = Adjacency(starts, found[order], 0)
    rows, places, _ = by_source.expand(inverse.astype(np.int64), lambda total: limits.allocate(total, total * 24))
    return rows, by_source.targets[places]
