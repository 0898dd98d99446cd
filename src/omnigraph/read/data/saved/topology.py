"""The topology of an edge type as bytes: the distinct pairs of both directions.

It says from which pieces of which tables it was made, and what has changed since is followed as in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, low_halves, packed
from omnigraph.read.data.layout import Placement
from omnigraph.read.data.saved.container import Parts, packed_parts, unpacked
from omnigraph.read.data.saved.versions import SavedTable, described_table, table_described
from omnigraph.read.values.columns import Array, Ints, Positions
from omnigraph.records import dataclass
from omnigraph.settings import ReadSettings

_MARK: Final = b"OMNITOPO"
_FORMAT: Final = 1
_WAYS: Final = (Direction.OUT, Direction.IN)
_SHIFT: Final = np.int64(32)


@dataclass(frozen=True, slots=True, eq=False)
class SavedTopology:
    """The distinct pairs of an edge type in both directions, and the versions of the tables they are of."""

    edges: SavedTable
    sources: SavedTable
    targets: SavedTable
    pairs: Mapping[Direction, tuple[Ints, Positions, Ints]]
    """Of each direction: where rows begin, the neighbours, and the pairs of further edges."""


def encoded(saved: SavedTopology, root: str) -> Parts | None:
    """A saved topology as bytes; None if a folder of its tables is not below the root of the graph."""
    arrays: list[Array] = []
    try:
        tables = [described_table(table, root, arrays) for table in (saved.edges, saved.sources, saved.targets)]
    except ValueError:
        return None
    ways = [[_added(arrays, array) for array in saved.pairs[way]] for way in _WAYS]
    return packed_parts(_MARK, {"format": _FORMAT, "tables": tables, "ways": ways}, arrays)


def decoded(content: memoryview, root: str) -> SavedTopology | None:
    """What was saved; None if that is not what the bytes are."""
    found = unpacked(_MARK, content)
    if found is None:
        return None
    described, arrays = found
    try:
        if described["format"] != _FORMAT:
            return None
        edges, sources, targets = (table_described(table, root, arrays) for table in described["tables"])
        pairs = {
            way: (arrays[starts], arrays[far], arrays[repeats])
            for way, (starts, far, repeats) in zip(_WAYS, described["ways"], strict=True)
        }
    except (KeyError, TypeError, ValueError):
        return None
    return SavedTopology(edges, sources, targets, pairs)


def _added(arrays: list[Array], array: Array) -> int:
    arrays.append(array)
    return len(arrays) - 1


def adjacency_in(
    saved: SavedTopology, way: Direction, near: Placement, far: Placement, settings: ReadSettings
) -> Adjacency | None:
    """The pairs of one direction in the positions of two layouts; None if these have the pieces in another
    order, in which the pairs would have to be sorted again."""
    near_table, far_table = (saved.sources, saved.targets)[:: 1 if way is Direction.OUT else -1]
    rows, width = _map_of(near_table, near), _map_of(far_table, far)
    if rows is None or width is None:
        return None
    starts, targets, repeats = saved.pairs[way]
    if rows.is_same and width.is_same:
        return Adjacency(starts, targets, width.size, settings=settings, repeats=repeats)
    degrees = np.zeros(rows.size, dtype=np.int64)
    degrees[rows.positions] = np.diff(starts)
    moved = np.zeros(rows.size + 1, dtype=np.int64)
    np.cumsum(degrees, out=moved[1:])
    again = packed(rows.positions[repeats >> _SHIFT], width.positions[low_halves(repeats)])
    return Adjacency(moved, width.positions[targets], width.size, settings=settings, repeats=again)


@dataclass(frozen=True, slots=True)
class _Map:
    """Where the saved positions of a table are in a layout, ascending, and how many positions that takes."""

    positions: Positions
    size: int
    is_same: bool


def _map_of(table: SavedTable, placement: Placement) -> _Map | None:
    parts = [stretch.positions for stretch in placement.stretches]
    positions = np.concatenate([np.zeros(0, dtype=np.int32), *parts])
    if len(positions) and bool((positions[1:] <= positions[:-1]).any()):
        return None
    is_same = placement.size == table.size == len(positions)
    return _Map(positions, placement.size, is_same)
