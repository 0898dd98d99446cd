"""Adjacency that follows its tables: entries of changed edges and of moved nodes are exchanged, all others stay.

A changed node has a new position, so its edges lead from and to another place. Positions are those of a layout, so
whatever did not change is where it was.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

import numpy as np

from omnigraph.read.data.adjacency import Adjacency, from_keys, low_halves, packed
from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.records import dataclass

_SHIFT: Final = np.int64(32)
_FEW: Final = 512


class CannotFollow(Exception):
    """The adjacency has to be made anew: it cannot be told from what is known, or that would take as long."""


@dataclass(frozen=True, slots=True)
class Moves:
    """Nodes that left their positions, ascending, and where each went; -1 for one that is gone."""

    left: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    to: Positions = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def touches(self, positions: Array) -> Ints:
        """The indexes of those positions that were left."""
        if not len(self.left):
            return np.zeros(0, dtype=np.int64)
        if len(self.left) <= 4:
            held = positions == self.left[0]
            for position in self.left[1:]:
                held |= positions == position
            return np.flatnonzero(held)
        table = np.zeros(max(int(self.left[-1]), int(positions.max(initial=0))) + 1, dtype=np.bool_)
        table[self.left] = True
        return np.flatnonzero(table[positions])

    def applied(self, positions: Array) -> Positions:
        """The positions after the move; -1 stays -1."""
        moved = positions.astype(np.int32)
        if len(self.left):
            places = np.minimum(np.searchsorted(self.left, moved), len(self.left) - 1)
            held = self.left[places] == moved
            moved[held] = self.to[places[held]]
        return moved


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """The edges of one direction that went or came: their ends, and of each its own position. Ends of those that
    went are positions before the change, ends of those that came after it."""

    near: Positions
    far: Positions
    edges: Positions


@dataclass(frozen=True, slots=True)
class Change:
    """What happened to the tables of an adjacency: the sizes they have now, moved nodes, changed edges."""

    rows: int
    width: int
    near: Moves
    far: Moves
    gone: EdgeChange
    came: EdgeChange

    @property
    def is_nothing(self) -> bool:
        """Did neither nodes move nor edges change?"""
        changed = (self.near.left, self.far.left, self.gone.edges, self.came.edges)
        return not any(map(len, changed))


def followed(adjacency: Adjacency, change: Change) -> tuple[Adjacency, bool]:
    """The adjacency after a change, and whether there are edges that lack a node at an end now."""
    sizes = (len(adjacency), adjacency.width)
    if change.is_nothing and sizes == (change.rows, change.width):
        return adjacency, False
    if adjacency.edges is not None:
        return _followed_edges(adjacency, change)
    return _followed_pairs(adjacency, change)


def _touched(adjacency: Adjacency, change: Change) -> Ints:
    """The entries of moved nodes, ascending."""
    rows = change.near.left[change.near.left < len(adjacency)]
    _, near, _ = adjacency.expand(rows)
    return np.union1d(near, change.far.touches(adjacency.targets))


def _followed_pairs(adjacency: Adjacency, change: Change) -> tuple[Adjacency, bool]:
    if adjacency.repeats is None:
        raise CannotFollow
    touched = _touched(adjacency, change)
    if 2 * len(touched) > adjacency.pairs + _FEW:
        return _moved_all(adjacency, change)
    before = packed(_owners(adjacency, touched), adjacency.targets[touched])
    counts = 1 + _counted(adjacency.repeats, before)
    after, lost = _moved(before, change)
    gone = packed(change.gone.near, change.gone.far)
    if len(gone) < len(change.gone.near):
        raise CannotFollow
    gone_after, gone_lost = _moved(gone, change)
    came = packed(change.came.near, change.came.far)
    is_loose = int(counts[lost].sum()) != int(np.count_nonzero(gone_lost)) or len(came) < len(change.came.near)
    keys = np.concatenate([before, after[~lost], gone_after[~gone_lost], came])
    fewer = np.full(int(np.count_nonzero(~gone_lost)), -1)
    signs = np.concatenate([-counts, counts[~lost], fewer, np.ones(len(came), dtype=np.int64)])
    keys, inverse = np.unique(keys, return_inverse=True)
    net = np.zeros(len(keys), dtype=np.int64)
    np.add.at(net, inverse, signs)
    keys, net = keys[net != 0], net[net != 0]
    return _exchanged(adjacency, change, keys, net), is_loose


def _exchanged(adjacency: Adjacency, change: Change, keys: Ints, net: Ints) -> Adjacency:
    """The distinct pairs after some of them have got more or fewer edges."""
    places, is_there = _located(adjacency, keys)
    repeats = adjacency.repeats
    assert repeats is not None  # noqa: S101  its caller looks
    had = np.where(is_there, 1 + _counted(repeats, keys), 0)
    has = had + net
    if int(has.min(initial=0)) < 0:
        raise CannotFollow
    new, old = (had == 0) & (has > 0), (had > 0) & (has == 0)
    more, fewer = keys[new], keys[old]
    targets = edited(adjacency.targets, places[old], places[new], low_halves(more))
    starts = _shifted(adjacency, change.rows, fewer >> _SHIFT, more >> _SHIFT)
    kept = np.maximum(has - 1, 0) - np.maximum(had - 1, 0)
    made = Adjacency(
        starts, targets, change.width, settings=adjacency.settings, repeats=_recounted(repeats, keys, kept)
    )
    made.follow_pairs(adjacency, more, fewer)
    return made


def _recounted(repeats: Ints, keys: Ints, change: Ints) -> Ints:
    """Sorted numbers with some of the keys more often or less often."""
    more, fewer = change > 0, change < 0
    if not more.any() and not fewer.any():
        return repeats
    firsts = np.searchsorted(repeats, keys[fewer])
    counts = -change[fewer]
    ends = np.cumsum(counts)
    gone = np.repeat(firsts - ends + counts, counts) + np.arange(int(ends[-1]) if len(ends) else 0)
    added = np.repeat(keys[more], change[more])
    return edited(repeats, gone, np.searchsorted(repeats, added), added)


def _moved(keys: Ints, change: Change) -> tuple[Ints, Bools]:
    """Packed pairs after the moves of nodes, and which of them have lost a node."""
    near = change.near.applied(keys >> _SHIFT)
    far = change.far.applied(low_halves(keys))
    return near.astype(np.int64) << _SHIFT | np.maximum(far, 0), (near < 0) | (far < 0)


def _counted(repeats: Ints, keys: Ints) -> Ints:
    """How often each key is among sorted numbers."""
    return np.searchsorted(repeats, keys, side="right") - np.searchsorted(repeats, keys, side="left")


def _owners(adjacency: Adjacency, places: Ints) -> Positions:
    """The rows of some entries."""
    return (np.searchsorted(adjacency.starts, places, side="right") - 1).astype(np.int32)


def _located(adjacency: Adjacency, keys: Ints) -> tuple[Ints, Bools]:
    """For sorted packed pairs: the place of each among the entries, or where it would be, and if it is there."""
    rows = keys >> _SHIFT
    places = np.full(len(keys), adjacency.pairs, dtype=np.int64)
    is_there = np.zeros(len(keys), dtype=np.bool_)
    inside = np.flatnonzero(rows < len(adjacency))
    if not len(inside):
        return places, is_there
    unique, number = np.unique(rows[inside], return_inverse=True)
    index, entries, counts = adjacency.expand(unique)
    there = packed(unique[index].astype(np.int32), adjacency.targets[entries])
    found = np.searchsorted(there, keys[inside])
    begins = np.cumsum(counts) - counts
    places[inside] = adjacency.starts[unique][number] + found - begins[number]
    held = found < len(there)
    held[held] = there[found[held]] == keys[inside][held]
    is_there[inside] = held
    return places, is_there


def _shifted(adjacency: Adjacency, rows: int, gone: Array, came: Array) -> Ints:
    """Where each row begins after some entries went and some came."""
    if rows >= len(adjacency) and len(gone) + len(came) <= _FEW:
        return _shifted_by_few(adjacency.starts, rows, gone, came)
    degrees = np.zeros(max(rows, len(adjacency)), dtype=np.int64)
    degrees[: len(adjacency)] = np.diff(adjacency.starts)
    np.subtract.at(degrees, gone, 1)
    np.add.at(degrees, came, 1)
    if int(degrees[rows:].sum()):
        raise CannotFollow
    starts = np.zeros(rows + 1, dtype=np.int64)
    np.cumsum(degrees[:rows], out=starts[1:])
    return starts


def _shifted_by_few(starts: Ints, rows: int, gone: Array, came: Array) -> Ints:
    """The same for a few entries and no fewer rows, in one pass: between two entries all starts move alike."""
    changes = sorted([*((int(row), -1) for row in gone), *((int(row), 1) for row in came)])
    moved = np.empty(rows + 1, dtype=np.int64)
    begin, by = 0, 0
    for row, more in [*changes, (rows, 0)]:
        stop = row + 1
        known = min(stop, len(starts))
        np.add(starts[begin:known], by, out=moved[begin:known])
        moved[max(begin, known) : stop] = starts[-1] + by
        begin, by = stop, by + more
    return moved


def _moved_all(adjacency: Adjacency, change: Change) -> tuple[Adjacency, bool]:
    """Most nodes have moved: all pairs are written again and sorted, fast where nodes keep their order."""
    near, far = _ends_after(adjacency, change)
    repeats, lost = _moved(near[:0].astype(np.int64) if adjacency.repeats is None else adjacency.repeats, change)
    if lost.any():
        raise CannotFollow
    made = from_keys(packed(near, far), change.rows, change.width, adjacency.settings)
    made.repeats = np.sort(repeats)
    return _followed_pairs(made, _edges_only(change))


def _moved_all_edges(adjacency: Adjacency, change: Change) -> tuple[Adjacency, bool]:
    """The same for an adjacency with edges."""
    assert adjacency.edges is not None  # noqa: S101  its caller looks
    near, far = _ends_after(adjacency, change)
    order = np.argsort(near, kind="stable")
    starts = np.zeros(change.rows + 1, dtype=np.int64)
    np.cumsum(np.bincount(near, minlength=change.rows), out=starts[1:])
    made = Adjacency(starts, far[order], change.width, adjacency.edges[order], adjacency.settings)
    return _followed_edges(made, _edges_only(change))


def _ends_after(adjacency: Adjacency, change: Change) -> tuple[Positions, Positions]:
    """Both ends of all entries after the moves of nodes, none of which may be gone."""
    near = _table(change.near, len(adjacency))[adjacency.owners()]
    far = _table(change.far, adjacency.width)[adjacency.targets]
    if int(near.min(initial=0)) < 0 or int(far.min(initial=0)) < 0:
        raise CannotFollow
    return near, far


def _edges_only(change: Change) -> Change:
    """What is left of a change when the nodes have moved."""
    near, far = change.near.applied(change.gone.near), change.far.applied(change.gone.far)
    gone = EdgeChange(near, far, change.gone.edges)
    return Change(change.rows, change.width, Moves(), Moves(), gone, change.came)


def _table(moves: Moves, size: int) -> Positions:
    return moves.applied(np.arange(size, dtype=np.int32))


def _followed_edges(adjacency: Adjacency, change: Change) -> tuple[Adjacency, bool]:
    assert adjacency.edges is not None  # noqa: S101  its caller looks
    touched = _touched(adjacency, change)
    if 2 * len(touched) > adjacency.pairs + _FEW:
        return _moved_all_edges(adjacency, change)
    removed = Moves(np.sort(change.gone.edges)).touches(adjacency.edges)
    moved = np.setdiff1d(touched, removed, assume_unique=True)
    near = change.near.applied(_owners(adjacency, moved))
    far = change.far.applied(adjacency.targets[moved])
    near = np.concatenate([near, change.came.near])
    far = np.concatenate([far, change.came.far])
    edges = np.concatenate([adjacency.edges[moved], change.came.edges])
    whole = np.flatnonzero((near >= 0) & (far >= 0))
    order = whole[np.argsort(near[whole], kind="stable")]
    near, far, edges = near[order], far[order], edges[order]
    gone = np.union1d(removed, moved)
    ends = np.append(adjacency.starts[1:], np.full(max(0, change.rows - len(adjacency)), adjacency.pairs))
    places = ends[near]
    starts = _shifted(adjacency, change.rows, _owners(adjacency, gone), near)
    made = Adjacency(
        starts,
        edited(adjacency.targets, gone, places, far),
        change.width,
        edited(adjacency.edges, gone, places, edges),
        adjacency.settings,
    )
    is_loose = len(whole) < len(moved) + len(change.came.near)
    return made, is_loose


def edited(array: Array, gone: Array, places: Array, values: Array) -> Array:
    """An array without the elements at some places and with new ones before others; all places are those before
    the change, both lists ascend."""
    if not len(gone) and not len(places):
        return array
    if len(gone) + len(places) > _FEW:
        kept = np.delete(array, gone)
        return np.insert(kept, places - np.searchsorted(gone, places), values)
    parts, begin = [array[:0]], 0
    cuts = sorted([*((int(place), 1, 0) for place in gone), *((int(p), 0, n) for n, p in enumerate(places))])
    for place, is_gone, number in cuts:
        parts.append(array[begin:place])
        begin = place + is_gone
        if not is_gone:
            parts.append(values[number : number + 1])
    parts.append(array[begin:])
    return np.concatenate(parts)
