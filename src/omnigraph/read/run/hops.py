"""Chains of hops: which nodes are reached in at least m and at most n hops, each by its shortest way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from omnigraph.read.data.adjacency import Adjacency
from omnigraph.read.limits import Limits
from omnigraph.read.values.columns import Array, Ints, Positions, distinct_numbers
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_SHIFT: Final = np.int64(32)
_LOW: Final = np.int64(0xFFFFFFFF)


def reached(
    adjacency: Adjacency,
    sources: Array,
    least: int,
    most: int,
    limits: Limits,
    settings: ReadSettings = READ_DEFAULTS,
) -> tuple[Ints, Positions]:
    """For each source what it reaches, as pairs of the source's number and a position.

    A node counts at its shortest distance. A source is reached only by its own loop, in one hop; a loop on the way
    reaches its node once more, one hop later.
    """
    unique, inverse = np.unique(sources, return_inverse=True)
    step = max(1, settings.visited_cells // max(adjacency.width, 1))
    owners: list[Ints] = []
    found: list[Positions] = []
    for low in range(0, len(unique), step):
        some = unique[low : low + step]
        some_owners, some_found = _search(adjacency, some, least, most, limits, settings.hop_entries)
        owners.append(some_owners + low)
        found.append(some_found)
    all_owners = np.concatenate(owners) if owners else np.zeros(0, dtype=np.int64)
    all_found = np.concatenate(found) if found else np.zeros(0, dtype=np.int32)
    if len(unique) == len(sources) and np.array_equal(inverse, np.arange(len(sources))):
        return all_owners, all_found
    return _spread(all_owners, all_found, inverse, len(unique), limits)


def reach_bounds(adjacency: Adjacency, most: int, limits: Limits) -> Ints:
    """For each position how many it can reach at most: no more than there are ways, and no more than there are."""
    ways = adjacency.degrees.astype(np.int64)
    bounds = ways
    for _ in range(most - 1):
        limits.check()
        ways = np.minimum(adjacency.row_sums(ways), adjacency.width)
        bounds = np.minimum(bounds + ways, adjacency.width)
        if int(bounds.min(initial=adjacency.width)) == adjacency.width:
            break
    return bounds


def _search(
    adjacency: Adjacency, sources: Array, least: int, most: int, limits: Limits, entries: int
) -> tuple[Ints, Positions]:
    """Breadth first from several sources side by side; a table says who has been where."""
    limits.allocate(0, len(sources) * adjacency.width * (2 if least > 1 else 1))
    visited = np.zeros((len(sources), adjacency.width), dtype=np.bool_)
    emitted = np.zeros_like(visited) if least > 1 else visited
    who = np.arange(len(sources), dtype=np.int64)
    where = sources.astype(np.int64)
    visited[who, where] = True
    owners: list[Ints] = []
    found: list[Positions] = []
    for hop in range(1, most + 1):
        new = [who[:0]]
        for some in _stretches(adjacency, where, entries):
            rows, places, _ = adjacency.expand(where[some], lambda total: limits.allocate(total, total * 40))
            next_who, next_where = who[some][rows], adjacency.targets[places].astype(np.int64)
            looped = next_where == where[some][rows]
            if hop >= least and looped.any():
                _emit_loops(next_who[looped], next_where[looped], hop, emitted, visited, owners, found)
            fresh = ~looped & ~visited[next_who, next_where]
            pairs = distinct_numbers(next_who[fresh] << _SHIFT | next_where[fresh])
            visited[pairs >> _SHIFT, pairs & _LOW] = True
            new.append(pairs)
        pairs = np.concatenate(new)
        who, where = pairs >> _SHIFT, pairs & _LOW
        if hop >= least:
            emitted[who, where] = True
            owners.append(who)
            found.append(where.astype(np.int32))
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


def _emit_loops(
    who: Ints,
    where: Ints,
    hop: int,
    emitted: Array,
    visited: Array,
    owners: list[Ints],
    found: list[Positions],
) -> None:
    """Nodes that reach themselves, unless they have been reached already."""
    if emitted is visited:
        # With a minimum of one every node but the source was emitted when it was first visited.
        new = np.full(len(who), hop == 1)
    else:
        new = ~emitted[who, where]
        emitted[who, where] = True
    owners.append(who[new])
    found.append(where[new].astype(np.int32))


def _spread(owners: Ints, found: Positions, inverse: Array, unique: int, limits: Limits) -> tuple[Ints, Positions]:
    """What each distinct source reached, for every row that has that source."""
    order = np.argsort(owners, kind="stable")
    starts = np.zeros(unique + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=unique), out=starts[1:])
    by_source = Adjacency(starts, found[order], 0)
    rows, places, _ = by_source.expand(inverse.astype(np.int64), lambda total: limits.allocate(total, total * 24))
    return rows, by_source.targets[places]
