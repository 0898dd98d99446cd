"""Positions: where the rows of a table lie in memory, whatever version or branch of it is read.

Every piece of a table (`storage.rows.pieces`) gets a stretch of positions when it is first seen. It keeps them, so
a row has one position in all versions that have it, and what was made for one version is right for the next,
except for the rows that came or went. A piece that a compaction has written from others takes over the positions
of their rows.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.read.values.columns import Array, Bools, Ints, Positions
from omnigraph.records import dataclass
from omnigraph.storage.handles import TableRef
from omnigraph.storage.rows.pieces import Piece

Files = tuple[str, ...]
_BESIDE: Final = 512
"""About how many bytes a piece and its names take."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The positions of a piece: all from ``start`` to ``stop``, or, of one that took them over, ``at`` these, with
    the pieces they were of. A piece with rows that were in no other piece has no such ``parents``."""

    start: int
    stop: int
    at: Positions | None = None
    parents: frozenset[Files] = frozenset()

    def meets(self, low: int, high: int) -> bool:
        """Are there any between two positions?"""
        if self.stop <= low or high <= self.start:
            return False
        return self.at is None or bool(((self.at >= low) & (self.at < high)).any())


class Layout:
    """The positions of the pieces of one table."""

    def __init__(self) -> None:
        self._places: dict[Files, Place] = {}
        self._size = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many positions there are."""
        return self._size

    def places(self, pieces: Sequence[Piece]) -> tuple[Place, ...]:
        """The place of each piece; new pieces get theirs behind all others."""
        with self._lock:
            for piece in pieces:
                if piece.files not in self._places:
                    self._places[piece.files] = Place(self._size, self._size + piece.rows)
                    self._size += piece.rows
            return tuple(self._places[piece.files] for piece in pieces)

    def has(self, files: Files) -> bool:
        """Has a piece its positions?"""
        return files in self._places

    def take_over(self, piece: Piece, at: Positions, parents: frozenset[Files]) -> None:
        """Give a piece the positions of rows of other pieces, its parents; rows with -1 get new ones."""
        with self._lock:
            if piece.files in self._places or not len(at):
                return
            stop = max((self._places[parent].stop for parent in parents), default=0)
            new = np.flatnonzero(at < 0)
            if len(new):
                at, parents = at.copy(), frozenset()
                at[new] = np.arange(self._size, self._size + len(new))
                self._size += len(new)
                stop = self._size
            self._places[piece.files] = Place(int(at.min()), stop, at, parents)

    def unknown_rows(self, pieces: Sequence[Piece]) -> int:
        """How many rows the pieces have that have no position yet."""
        with self._lock:
            return sum(piece.rows for piece in pieces if piece.files not in self._places)

    def is_known(self, files: Files, known: Collection[object], low: int = 0, high: int = 2**31) -> bool:
        """Is a piece, or are those whose positions it took over, among the known ones, as far as it lies between
        two positions?"""
        if files in known:
            return True
        place = self._places[files]
        inside = [parent for parent in place.parents if self._places[parent].meets(low, high)]
        return bool(place.parents) and all(self.is_known(parent, known, low, high) for parent in inside)


class Layouts:
    """The layout of each table of a graph, by the table's location."""

    def __init__(self) -> None:
        self._layouts: dict[str, Layout] = {}
        self._lock = threading.Lock()

    def current(self, location: str) -> Layout | None:
        """The layout of a table, if any version of it was read."""
        return self._layouts.get(location)

    def of(self, location: str, pieces: Sequence[Piece], spare: int) -> tuple[Layout, Layout | None]:
        """The layout for a version with these pieces. If most positions of the one there is were not the
        version's, and more than the ``spare`` number, there is a new one, and the second answer is the old one."""
        rows = sum(piece.live for piece in pieces)
        with self._lock:
            before = self._layouts.get(location)
            if before is not None and before.size + before.unknown_rows(pieces) <= 2 * rows + spare:
                return before, None
            layout = self._layouts[location] = Layout()
            return layout, before


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """A piece of a version, the positions of its rows, and the places of those in the piece that are deleted."""

    piece: Piece
    place: Place
    gone: Positions

    @property
    def start(self) -> int:
        """No row has a position below this."""
        return self.place.start

    @property
    def stop(self) -> int:
        """All rows have positions below this; stretches end where others begin, or behind them."""
        return self.place.stop

    @property
    def is_scattered(self) -> bool:
        """Are its rows not one behind the other?"""
        return self.place.at is not None

    @property
    def positions(self) -> Positions:
        """The position of each row, deleted or not, in the order of the piece."""
        if self.place.at is not None:
            return self.place.at
        return np.arange(self.start, self.stop, dtype=np.int32)

    @property
    def dead(self) -> Positions:
        """The positions of deleted rows."""
        if self.place.at is not None:
            return self.place.at[self.gone]
        return self.gone + np.int32(self.start)

    @property
    def live(self) -> Positions:
        """The positions of the rows that are not deleted, in the order of the piece."""
        return self.positions if not len(self.gone) else np.delete(self.positions, self.gone)

    def offsets(self, positions: Positions) -> Positions:
        """The places in the piece of rows at positions."""
        if self.place.at is None:
            return positions - np.int32(self.start)
        order = np.argsort(self.place.at)
        return order[np.searchsorted(self.place.at, positions, sorter=order)].astype(np.int32)


@dataclass(frozen=True, eq=False)
class Placement:
    """One version of a table in the positions of its layout."""

    layout: Layout
    ref: TableRef
    stretches: tuple[Stretch, ...]
    by_files: Mapping[Files, Stretch] = field(repr=False)
    columns: Mapping[str, int] = field(repr=False)

    @property
    def nbytes(self) -> int:
        derived = [vars(self).get(name) for name in ("live", "everything", "whole")]
        parts = {
            id(part): int(part.nbytes) for part in derived if part is not None and id(part) not in self._parts
        }
        return self._beside + sum(parts.values())

    @cached_property
    def _parts(self) -> dict[int, int]:
        """The memory of the arrays of its stretches, each once."""
        arrays = [array for stretch in self.stretches for array in (stretch.gone, stretch.place.at)]
        return {id(array): int(array.nbytes) for array in arrays if array is not None}

    @cached_property
    def _beside(self) -> int:
        return _BESIDE * (1 + len(self.stretches)) + sum(self._parts.values())

    @cached_property
    def size(self) -> int:
        """The version's rows have positions below this."""
        return max([stretch.stop for stretch in self.stretches], default=0)

    @cached_property
    def count(self) -> int:
        """How many rows the version has."""
        return sum(stretch.piece.live for stretch in self.stretches)

    def is_like(self, other: Placement) -> bool:
        """Is it the same version in the same layout?"""
        return self.layout is other.layout and self.ref == other.ref

    def between(self, low: int, high: int) -> list[Stretch]:
        """The stretches with rows between two positions."""
        return [stretch for stretch in self.stretches if stretch.place.meets(low, high)]

    def unknown(self, known: Collection[object], low: int = 0, high: int = 2**31) -> list[Stretch]:
        """The stretches with rows between two positions that are of none of the known pieces."""
        found = self.stretches if high >= self.size and not low else self.between(low, high)
        return [each for each in found if not self.layout.is_known(each.piece.files, known, low, high)]

    @cached_property
    def live(self) -> Bools | None:
        """Which positions are rows of the version; None if all are."""
        if self.count == self.size:
            return None
        live = np.zeros(self.size, dtype=np.bool_)
        for stretch in self.stretches:
            if stretch.is_scattered:
                live[stretch.positions] = True
            else:
                live[stretch.start : stretch.stop] = True
            live[stretch.dead] = False
        return live

    def _has(self, positions: Positions) -> Bools:
        """Which positions are rows of the version."""
        inside: Bools = positions < self.size
        if self.live is not None:
            inside[inside] = self.live[positions[inside]]
        return inside

    @cached_property
    def whole(self) -> Positions:
        """All positions, also those of rows that the version does not have."""
        return np.arange(self.size, dtype=np.int32)

    @cached_property
    def everything(self) -> Positions:
        """The positions of the version's rows."""
        return self.whole if self.live is None else np.flatnonzero(self.live).astype(np.int32)

    def in_order(self) -> Positions | None:
        """The positions of the rows in the order in which the version is read; None if that is 0, 1, 2, …"""
        starts = [stretch.start for stretch in self.stretches]
        scattered = any(stretch.is_scattered for stretch in self.stretches)
        if self.live is None and starts == sorted(starts) and not scattered:
            return None
        return np.concatenate([np.zeros(0, dtype=np.int32), *(stretch.live for stretch in self.stretches)])

    def positions_of(self, addresses: Ints) -> Ints:
        """The positions of rows by their addresses: the number of the fragment, and below it the row's offset."""
        by_fragment = {stretch.piece.fragment: stretch for stretch in self.stretches}
        fragments, owners = np.unique(addresses >> 32, return_inverse=True)
        offsets = addresses & 0xFFFFFFFF
        found = np.empty(len(addresses), dtype=np.int64)
        for number, fragment in enumerate(fragments.tolist()):
            mine, place = owners == number, by_fragment[fragment].place
            found[mine] = offsets[mine] + place.start if place.at is None else place.at[offsets[mine]]
        return found

    def numbers_of(self, positions: Array) -> Ints | None:
        """The numbers of the version's rows at positions, in the order in which it is read; None if the rows of a
        piece do not lie one behind the other."""
        if any(stretch.is_scattered for stretch in self.stretches):
            return None
        starts = np.array([stretch.start for stretch in self.stretches])
        live = np.array([stretch.piece.live for stretch in self.stretches])
        order = np.argsort(starts)
        owners = order[np.searchsorted(starts[order], positions, side="right") - 1]
        offsets = positions - starts[owners]
        numbers = offsets + (np.cumsum(live) - live)[owners]
        for owner in set(owners.tolist()):
            gone = self.stretches[owner].gone
            if len(gone):
                mine = np.flatnonzero(owners == owner)
                numbers[mine] -= np.searchsorted(gone, offsets[mine])
        return np.asarray(numbers)

    def rows_beside(self, other: Placement) -> list[tuple[Stretch, Positions]]:
        """The positions of the rows that this version has and another one has not, by stretch, ascending."""
        scattered = any(each.is_scattered for side in (self, other) for each in side.stretches)
        found = []
        for stretch in self.stretches:
            theirs = other.by_files.get(stretch.piece.files)
            if theirs is None:
                rows = stretch.live
                if scattered:
                    rows = np.sort(rows[~other._has(rows)])
            elif theirs.piece.deletions == stretch.piece.deletions:
                continue
            else:
                rows = np.setdiff1d(theirs.dead, stretch.dead, assume_unique=True)
            if len(rows):
                found.append((stretch, rows))
        return found


def placed(
    layout: Layout,
    ref: TableRef,
    pieces: Sequence[Piece],
    gone: Callable[[Piece], Positions],
    columns: Mapping[str, int],
) -> Placement:
    """A version in the positions of a layout. ``gone`` says which rows of a piece are deleted; columns are known
    by their numbers, because a name may come to mean another one."""
    places = layout.places(pieces)
    stretches = tuple(Stretch(piece, place, gone(piece)) for piece, place in zip(pieces, places, strict=True))
    return Placement(layout, ref, stretches, {stretch.piece.files: stretch for stretch in stretches}, columns)


def located(wanted: Ints, there: Ints) -> Ints:
    """The place of each number among some distinct ones; -1 where it is not there."""
    if not len(there):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(there, kind="stable")
    ordered = there[order]
    places = np.minimum(np.searchsorted(ordered, wanted), len(there) - 1)
    return np.where(ordered[places] == wanted, order[places], -1)
