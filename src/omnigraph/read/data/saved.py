"""The topology of an edge type as bytes, so that a process which starts does not derive it again.

A saved topology is derived and never needed: one that is missing, damaged or of another format is not there. It
says from which pieces of which tables it was made, and what has changed since is followed as in memory.

::

    mark      8 bytes
    sizes     of the description and of the whole, and a checksum of all that follows, 8 bytes each
    described in JSON: the tables with their pieces, and where each array lies
    arrays    each at a multiple of 64 bytes
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import xxhash

from omnigraph.lang.query.ir import Direction
from omnigraph.read.data.adjacency import Adjacency, low_halves, packed
from omnigraph.read.data.layout import Layout, Placement, placed
from omnigraph.read.values.columns import Array, Ints, Positions
from omnigraph.settings import ReadSettings
from omnigraph.storage.handles import TableRef
from omnigraph.storage.rows.pieces import Deletions, Piece

_MARK: Final = b"OMNITOPO"
_FORMAT: Final = 1
_HEAD: Final = struct.Struct("<8sQQQ")
_ALIGNED: Final = 64
_WAYS: Final = (Direction.OUT, Direction.IN)
_SHIFT: Final = np.int64(32)


@dataclass(frozen=True, slots=True)
class SavedTable:
    """A version of a table: its pieces in order, and the places of the deleted rows of each."""

    ref: TableRef
    pieces: tuple[Piece, ...]
    gone: tuple[Positions, ...]

    @classmethod
    def of(cls, placement: Placement) -> SavedTable:
        """A version as a layout that has seen no other one places it."""
        stretches = placement.stretches
        gone = tuple(stretch.gone for stretch in stretches)
        return cls(placement.ref, tuple(stretch.piece for stretch in stretches), gone)

    @property
    def size(self) -> int:
        """How many positions the saved arrays have for it."""
        return sum(piece.rows for piece in self.pieces)

    def placement(self, layout: Layout) -> Placement:
        """The version in the positions of a layout."""
        gone = dict(zip((piece.files for piece in self.pieces), self.gone, strict=True))
        return placed(layout, self.ref, self.pieces, lambda piece: gone[piece.files], {})


@dataclass(frozen=True, slots=True, eq=False)
class SavedTopology:
    """The distinct pairs of an edge type in both directions, and the versions of the tables they are of."""

    edges: SavedTable
    sources: SavedTable
    targets: SavedTable
    pairs: Mapping[Direction, tuple[Ints, Positions, Ints]]
    """Of each direction: where rows begin, the neighbours, and the pairs of further edges."""


def encoded(saved: SavedTopology, root: str) -> bytes | None:
    """A saved topology as bytes; folders below the root of the graph are named from there. None if one is not."""
    arrays: list[Array] = []
    try:
        tables = [_described(table, root, arrays) for table in (saved.edges, saved.sources, saved.targets)]
    except ValueError:
        return None
    ways = [[_added(arrays, array) for array in saved.pairs[way]] for way in _WAYS]
    described = json.dumps({"format": _FORMAT, "tables": tables, "ways": ways, "arrays": _places(arrays)}).encode()
    parts: list[bytes | memoryview] = [described]
    size = _HEAD.size + len(described)
    for array in arrays:
        parts += [bytes(-size % _ALIGNED), np.ascontiguousarray(array).data.cast("B") if len(array) else b""]
        size += -size % _ALIGNED + array.nbytes
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(part)
    return b"".join([_HEAD.pack(_MARK, len(described), size, digest.intdigest()), *parts])


def decoded(content: memoryview, root: str) -> SavedTopology | None:
    """What was saved; None if that is not what the bytes are."""
    if len(content) < _HEAD.size:
        return None
    mark, length, size, digest = _HEAD.unpack_from(content)
    if (mark, size) != (_MARK, len(content)) or digest != xxhash.xxh3_64_intdigest(content[_HEAD.size :]):
        return None
    try:
        described = json.loads(bytes(content[_HEAD.size : _HEAD.size + length]))
        if described["format"] != _FORMAT:
            return None
        arrays = _arrays(content, _HEAD.size + length, described["arrays"])
        edges, sources, targets = (_table(table, root, arrays) for table in described["tables"])
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


def _places(arrays: Sequence[Array]) -> list[tuple[str, int]]:
    return [(array.dtype.str, len(array)) for array in arrays]


def _arrays(content: memoryview, begin: int, places: Sequence[tuple[str, int]]) -> list[Array]:
    found: list[Array] = []
    for kind, count in places:
        begin += -begin % _ALIGNED
        array: Array = np.frombuffer(content, dtype=kind, count=count, offset=begin)
        found.append(array)
        begin += array.nbytes
    return found


def _described(table: SavedTable, root: str, arrays: list[Array]) -> dict[str, Any]:
    gone = np.concatenate([np.zeros(0, dtype=np.int32), *table.gone])
    return {
        "location": table.ref.location,
        "branch": table.ref.branch,
        "version": table.ref.version,
        "gone": _added(arrays, gone),
        "pieces": [_described_piece(piece, root) for piece in table.pieces],
    }


def _described_piece(piece: Piece, root: str) -> dict[str, Any]:
    gone = piece.deletions
    deletions = None if gone is None else [gone.name, gone.rows, _below(gone.folder, root)]
    place = _below(piece.folder, root)
    return {
        "fragment": piece.fragment,
        "files": piece.files,
        "rows": piece.rows,
        "gone": deletions,
        "folder": place,
    }


def _below(folder: str, root: str) -> str:
    path = folder.removeprefix("file://")
    if not path.startswith(f"{root}/"):
        raise ValueError(f"{folder} is not below {root}")
    return path.removeprefix(f"{root}/")


def _table(described: Mapping[str, Any], root: str, arrays: Sequence[Array]) -> SavedTable:
    pieces = tuple(_piece(piece, root) for piece in described["pieces"])
    counts = [piece.rows - piece.live for piece in pieces]
    gone = np.split(arrays[described["gone"]], np.cumsum(counts)[:-1])
    ref = TableRef(described["location"], described["branch"], described["version"])
    return SavedTable(ref, pieces, tuple(gone[: len(pieces)]))


def _piece(described: Mapping[str, Any], root: str) -> Piece:
    gone = described["gone"]
    deletions = None if gone is None else Deletions(gone[0], gone[1], f"{root}/{gone[2]}")
    files = tuple(described["files"])
    return Piece(described["fragment"], files, described["rows"], deletions, f"{root}/{described['folder']}")


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
