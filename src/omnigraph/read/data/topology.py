"""The topology between tables: built from the ends of all edges, or followed from other versions of the tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import OmniError
from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, both_ways, from_keys, packed, reversed_, stored
from omnigraph.read.data.cache import QueryCache
from omnigraph.read.data.following import CannotFollow, Change, EdgeChange, Moves, followed
from omnigraph.read.data.layout import Placement, Stretch
from omnigraph.read.data.rows import WholeTable
from omnigraph.read.data.saved.shelf import saved_keys, saved_topology
from omnigraph.read.data.saved.topology import adjacency_in
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Column, Ints, Positions, filled
from omnigraph.records import dataclass
from omnigraph.settings import ReadSettings

_REVERSE: Final = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}
_NONE: Final = np.zeros(0, dtype=np.int32)
_MUCH: Final = 4
"""A change of more than a fourth of the edges is no faster to follow than the topology is to build."""


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """An adjacency, the versions of the tables that it was made from, and whether some of their edges are not in
    it because a node is missing."""

    adjacency: Adjacency
    edges: Placement
    sources: Placement
    targets: Placement
    is_loose: bool

    @property
    def nbytes(self) -> int:
        return self.adjacency.nbytes


@dataclass(frozen=True, slots=True)
class _Saved:
    is_there: bool
    nbytes: int = 64


@dataclass(frozen=True, slots=True, eq=False)
class EdgeTables:
    """The table of one edge type and those of the nodes at its ends, as one query reads them."""

    edges: WholeTable
    sources: WholeTable
    targets: WholeTable
    cache: QueryCache
    settings: ReadSettings

    def family(self, direction: Direction, *, edges: bool) -> Hashable:
        """What the topologies of all versions of these tables have in common."""
        layouts = (self.edges.placement.layout, self.sources.placement.layout, self.targets.placement.layout)
        return (layouts, direction, edges)

    def _key(self, direction: Direction, *, edges: bool) -> Hashable:
        branches = (self.edges.ref.branch, self.sources.ref.branch, self.targets.ref.branch)
        return (self.family(direction, edges=edges), branches)

    def is_of(self, topology: Topology) -> bool:
        """Was a topology made from these versions of the tables?"""
        return (
            topology.edges.is_like(self.edges.placement)
            and topology.sources.is_like(self.sources.placement)
            and topology.targets.is_like(self.targets.placement)
        )

    def has_any(self) -> bool:
        """Is the topology in memory, in any direction, of any version?"""
        tables = (self.edges, self.sources, self.targets)
        layouts = tuple(self.cache.layouts.current(table.ref.location) for table in tables)
        return any(
            self.cache.relatives((layouts, direction, edges)) for direction in Direction for edges in (False, True)
        )

    def is_saved(self) -> bool:
        """Is a topology saved beside the tables, from which this one can be made?"""
        if self.edges.count < self.settings.save_from:
            return False
        ref = self.edges.ref

        def look() -> _Saved:
            natives = dict.fromkeys((ref.branch, None))
            with suppress(OmniError):
                return _Saved(any(saved_keys(self.edges.storage, ref.location, native) for native in natives))
            return _Saved(False)

        return self.cache.get((ref, ("is topology saved",)), look).is_there

    def adjacency(self, direction: Direction, *, edges: bool) -> Adjacency:
        """The neighbours over the edge type: every edge, or each pair of nodes once."""

        def make(known: Topology | None) -> Topology:
            return self._made(known, direction, edges=edges)

        return self.cache.follow(self._key(direction, edges=edges), make, self.is_of).adjacency

    def _made(self, known: Topology | None, direction: Direction, *, edges: bool) -> Topology:
        relatives = self.cache.relatives(self.family(direction, edges=edges))
        for before in ([] if known is None else [known]) + relatives:
            try:
                return self._followed(before, direction, edges=edges)
            except (CannotFollow, OmniError):
                self.cache.check()
        saved = None if edges else self._from_saved(direction)
        if saved is not None:
            return saved
        if direction is not Direction.BOTH:
            other = self.cache.find(self._key(_REVERSE[direction], edges=edges))
            if isinstance(other, Topology) and self.is_of(other):
                return self.topology(reversed_(other.adjacency), is_loose=other.is_loose)
        self.cache.check()
        return _Build(self, direction).topology(edges=edges)

    def _from_saved(self, direction: Direction) -> Topology | None:
        """The topology of distinct pairs, from the one that is saved beside the tables, if that can be done."""
        if self.edges.count < self.settings.save_from:
            return None
        if direction is Direction.BOTH:
            one = self._from_saved(Direction.OUT)
            return None if one is None else self.topology(both_ways(one.adjacency), is_loose=one.is_loose)
        ref = self.edges.ref
        saved = self.cache.once((ref, "saved topology"), lambda: saved_topology(self.edges.storage, ref))
        if saved is None or (saved.sources.ref.location, saved.targets.ref.location) != self._locations():
            return None
        edges = saved.edges.placement(self.edges.placement.layout)
        sources = saved.sources.placement(self.sources.placement.layout)
        targets = saved.targets.placement(self.targets.placement.layout)
        near, far = (targets, sources) if direction is Direction.IN else (sources, targets)
        adjacency = adjacency_in(saved, direction, near, far, self.settings)
        if adjacency is None:
            return None
        before = Topology(adjacency, edges, sources, targets, is_loose=False)
        try:
            return self._followed(before, direction, edges=False)
        except (CannotFollow, OmniError):
            self.cache.check()
            return None

    def _locations(self) -> tuple[str, str]:
        return self.sources.ref.location, self.targets.ref.location

    def topology(self, adjacency: Adjacency, *, is_loose: bool) -> Topology:
        """An adjacency as one of these versions of the tables."""
        places = (self.edges.placement, self.sources.placement, self.targets.placement)
        return Topology(adjacency, *places, is_loose)

    def _followed(self, before: Topology, direction: Direction, *, edges: bool) -> Topology:
        """The topology of these versions, from the one of others."""
        if before.is_loose:
            raise CannotFollow
        sources = _Moved.of(self.sources, before.sources)
        targets = sources if self.targets is self.sources else _Moved.of(self.targets, before.targets)
        gone = before.edges.rows_beside(self.edges.placement)
        came = self.edges.placement.rows_beside(before.edges)
        if _MUCH * (_total(gone) + _total(came)) > before.adjacency.pairs + 4 * self.settings.small_table:
            raise CannotFollow
        if edges:
            removed = EdgeChange(_NONE, _NONE, _positions(gone))
        else:
            removed = _turned(*self._ends_before(gone, sources, targets), _positions(gone), direction, edges=False)
        added = _turned(*self._ends_now(came), _positions(came), direction, edges=edges)
        near, far = (targets, sources) if direction is Direction.IN else (sources, targets)
        change = Change(*self.sizes(direction), near.moves, far.moves, removed, added)
        made, is_loose = followed(before.adjacency, change)
        return self.topology(made, is_loose=is_loose)

    def sizes(self, direction: Direction) -> tuple[int, int]:
        """How many positions there are on the near side, and on the far side."""
        rows, width = self.sources.size, self.targets.size
        return (width, rows) if direction is Direction.IN else (rows, width)

    def _ends_before(
        self, gone: Sequence[tuple[Stretch, Positions]], sources: _Moved, targets: _Moved
    ) -> tuple[Positions, Positions]:
        """The ends of edges that went, by the positions that nodes had before."""
        if not gone:
            return _NONE, _NONE
        table = self.edges.gone(gone, ["src", "dst"])
        return (
            sources.places_before(self.sources, Column.of(table["src"]).arrow),
            targets.places_before(self.targets, Column.of(table["dst"]).arrow),
        )

    def _ends_now(self, came: Sequence[tuple[Stretch, Positions]]) -> tuple[Positions, Positions]:
        """The ends of edges that came."""
        if not came:
            return _NONE, _NONE
        table = self.edges.physical([stretch for stretch, _ in came], ["src", "dst"])
        begin, chosen = 0, []
        for stretch, rows in came:
            chosen.append(stretch.offsets(rows).astype(np.int64) + begin)
            begin += stretch.piece.rows
        table = table.take(to_arrow(np.concatenate(chosen)))
        return (
            self.sources.places(Column.of(table["src"]).arrow),
            self.targets.places(Column.of(table["dst"]).arrow),
        )

    def endpoints(self) -> Iterator[tuple[Positions, Positions]]:
        """The positions of both ends of all edges, some at a time; -1 where there is no such node."""
        for batch in self.edges.batches(["src", "dst"]) if self.edges.count else ():
            yield (
                self.sources.places(Column.of(batch["src"]).arrow),
                self.targets.places(Column.of(batch["dst"]).arrow),
            )


def _total(changed: Iterable[tuple[Stretch, Positions]]) -> int:
    return sum(len(rows) for _, rows in changed)


def _positions(changed: Iterable[tuple[Stretch, Positions]]) -> Positions:
    return np.concatenate([_NONE, *(rows for _, rows in changed)])


def _turned(
    sources: Positions, targets: Positions, positions: Positions, direction: Direction, *, edges: bool
) -> EdgeChange:
    """Changed edges as a direction sees them: from both ends where both count, a bound loop once."""
    if direction is Direction.OUT:
        return EdgeChange(sources, targets, positions)
    if direction is Direction.IN:
        return EdgeChange(targets, sources, positions)
    again = np.flatnonzero(sources != targets) if edges else np.arange(len(sources))
    return EdgeChange(
        np.concatenate([sources, targets[again]]),
        np.concatenate([targets, sources[again]]),
        np.concatenate([positions, positions[again]]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Moved:
    """The nodes of a table that are no longer where they were, with their ids."""

    moves: Moves
    ids: pa.Array

    @classmethod
    def of(cls, table: WholeTable, before: Placement) -> _Moved:
        """Rows that went since another version, matched by id with rows that came."""
        gone = before.rows_beside(table.placement)
        if not gone:
            return cls(Moves(), pa.array([], pa.string()))
        new = table.placement.rows_beside(before)
        left, came = _positions(gone), _positions(new)
        ids, order = table.ids_of(gone, before), np.argsort(left)
        left, ids = left[order], ids.take(to_arrow(order))
        there = table.ids_of(new, table.placement) if new else ids[:0]
        found = filled(pc.index_in(ids, value_set=there.cast(ids.type)), -1)
        to = np.where(found < 0, -1, np.append(came, np.int32(-1))[found])
        return cls(Moves(left, to.astype(np.int32)), ids)

    def places_before(self, table: WholeTable, ids: pa.Array) -> Positions:
        """Where the nodes with these ids were before they moved; -1 where there is no such node."""
        places = table.places(ids)
        if len(self.ids):
            moved = filled(pc.index_in(ids.cast(self.ids.type), value_set=self.ids), -1)
            places = np.where(moved < 0, places, self.moves.left[moved]).astype(np.int32)
        return places


class _Build:
    """Topology from the ends of all edges."""

    def __init__(self, tables: EdgeTables, direction: Direction) -> None:
        self._tables = tables
        self._direction = direction
        self._used = 0
        self._is_loose = False

    def topology(self, *, edges: bool) -> Topology:
        tables, settings = self._tables, self._tables.settings
        rows, width = tables.sizes(self._direction)
        if not edges:
            made = from_keys(self._pair_keys(), rows, width, settings)
        elif self._direction is Direction.BOTH:
            made = self._both_ways(rows, width)
        else:
            held, far = self._edge_keys()
            made = stored(held, far, tables.edges.placement.in_order(), rows, width, settings)
        return tables.topology(made, is_loose=self._is_loose)

    def _put(self, keys: Ints, near: Array, far: Array) -> None:
        """Pack pairs behind those that are in the array."""
        some = packed(near, far)
        keys[self._used : self._used + len(some)] = some
        self._used += len(some)
        self._is_loose |= len(some) < len(near)

    def _pair_keys(self) -> Ints:
        """The ends of every edge, packed; in both directions where both count."""
        ways = 2 if self._direction is Direction.BOTH else 1
        keys = np.empty(self._tables.edges.count * ways, dtype=np.int64)
        for sources, targets in self._tables.endpoints():
            if self._direction is not Direction.IN:
                self._put(keys, sources, targets)
            if self._direction is not Direction.OUT:
                self._put(keys, targets, sources)
        return keys[: self._used]

    def _edge_keys(self) -> tuple[list[Ints], list[Positions]]:
        """The near end of every edge, packed with the edge's number, and the far end of each by number."""
        count = self._tables.edges.count
        keys, far, row = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int32), 0
        for sources, targets in self._tables.endpoints():
            near, there = (sources, targets) if self._direction is Direction.OUT else (targets, sources)
            numbers = np.arange(row, row + len(near), dtype=np.int32)
            self._put(keys, np.where(there < 0, -1, near), numbers)
            far[row : row + len(near)] = there
            row += len(near)
        return [keys[: self._used]], [far]

    def _both_ways(self, rows: int, width: int) -> Adjacency:
        """Every edge from both of its ends; a loop once."""
        parts = list(self._tables.endpoints())
        sources = np.concatenate([_NONE, *(near for near, _ in parts)])
        targets = np.concatenate([_NONE, *(far for _, far in parts)])
        turned = np.flatnonzero(sources != targets).astype(np.int32)
        near = np.concatenate([sources, targets[turned]])
        far = np.concatenate([targets, sources[turned]])
        numbers = np.concatenate([np.arange(len(sources), dtype=np.int32), turned])
        order = self._tables.edges.placement.in_order()
        if order is not None:
            numbers = order[numbers]
        keys = packed(np.where(far < 0, -1, near), np.arange(len(near), dtype=np.int32))
        self._is_loose = len(keys) < len(near)
        return stored([keys], [far], numbers, rows, width, self._tables.settings)
