"""Positions: where the rows of a table lie in memory, whatever version or branch of it is read.

Every piece of a table (`storage.pieces`) gets a stretch of positions when it is first seen. It keeps them, so a
row has one position in all versions that have it, and what was made for one version is right for the next, except
for the rows that came or went.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import numpy as np

from omnigraph.read.values.columns import Bools, Positions
from omnigraph.storage.handles import TableRef
from omnigraph.storage.pieces import Piece

Files = tuple[str, ...]
_BESIDE: Final = 512
"""About how many bytes a piece and its names take."""


class Layout:
    """The stretches of positions of one table."""

    def __init__(self) -> None:
        self._starts: dict[Files, int] = {}
        self._size = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """How many positions there are."""
        return self._size

    def starts(self, pieces: Sequence[Piece]) -> tuple[int, ...]:
        """Where the stretch of each piece begins; new pieces get theirs behind all others."""
        with self._lock:
            for piece in pieces:
                if piece.files not in self._starts:
                    self._starts[piece.files] = self._size
                    self._size += piece.rows
            return tuple(self._starts[piece.files] for piece in pieces)

    def unknown_rows(self, pieces: Sequence[Piece]) -> int:
        """How many rows the pieces have that have no position yet."""
        with self._lock:
            return sum(piece.rows for piece in pieces if piece.files not in self._starts)


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


@dataclass(frozen=True, slots=True)
class Stretch:
    """A piece of a version, and the position of its first row."""

    piece: Piece
    start: int
    dead: Positions

    @property
    def stop(self) -> int:
        """The position behind its last row."""
        return self.start + self.piece.rows


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
        known = [vars(self).get(name) for name in ("live", "everything", "whole")]
        parts = {id(part): int(part.nbytes) for part in known if part is not None}
        dead = sum(stretch.dead.nbytes for stretch in self.stretches)
        return _BESIDE * (1 + len(self.stretches)) + dead + sum(parts.values())

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

    def files_between(self, low: int, high: int) -> frozenset[Files]:
        """The files of the pieces that lie between two positions."""
        return frozenset(
            stretch.piece.files for stretch in self.stretches if low <= stretch.start and stretch.stop <= high
        )

    @cached_property
    def live(self) -> Bools | None:
        """Which positions are rows of the version; None if all are."""
        if self.count == self.size:
            return None
        live = np.zeros(self.size, dtype=np.bool_)
        for stretch in self.stretches:
            live[stretch.start : stretch.stop] = True
            live[stretch.dead] = False
        return live

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
        if self.live is None and starts == sorted(starts):
            return None
        return np.concatenate([np.zeros(0, dtype=np.int32), *map(_rows, self.stretches)])

    def rows_beside(self, other: Placement) -> list[tuple[Stretch, Positions]]:
        """The positions of the rows that this version has and another one has not, by stretch, ascending."""
        found = []
        for stretch in self.stretches:
            theirs = other.by_files.get(stretch.piece.files)
            if theirs is None:
                rows = _rows(stretch)
            elif theirs.piece.deletions == stretch.piece.deletions:
                continue
            else:
                rows = np.setdiff1d(theirs.dead, stretch.dead, assume_unique=True)
            if len(rows):
                found.append((stretch, rows))
        return found


def _rows(stretch: Stretch) -> Positions:
    """The positions of the rows of a stretch that are not deleted."""
    rows = np.arange(stretch.start, stretch.stop, dtype=np.int32)
    return rows if not len(stretch.dead) else np.delete(rows, stretch.dead - stretch.start)


def placed(
    layout: Layout,
    ref: TableRef,
    pieces: Sequence[Piece],
    dead: Callable[[Piece], Positions],
    columns: Mapping[str, int],
) -> Placement:
    """A version in the positions of a layout. ``dead`` says which rows of a piece are deleted; columns are known
    by their numbers, because a name may come to mean another one."""
    starts = layout.starts(pieces)
    stretches = tuple(
        Stretch(piece, start, dead(piece) + np.int32(start)) for piece, start in zip(pieces, starts, strict=True)
    )
    return Placement(layout, ref, stretches, {stretch.piece.files: stretch for stretch in stretches}, columns)
