"""The version of a table that something saved was made from: its pieces, and which rows of them were deleted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omnigraph.read.data.layout import Layout, Placement, placed
from omnigraph.read.values.columns import Array, Positions
from omnigraph.records import dataclass
from omnigraph.storage.handles import TableRef
from omnigraph.storage.rows.pieces import Deletions, Piece


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


def described_table(table: SavedTable, root: str, arrays: list[Array]) -> dict[str, Any]:
    """A version in words, of which arrays go to the others. Folders below the root of the graph are named from
    there; ValueError if one is not."""
    arrays.append(np.concatenate([np.zeros(0, dtype=np.int32), *table.gone]))
    return {
        "location": table.ref.location,
        "branch": table.ref.branch,
        "version": table.ref.version,
        "gone": len(arrays) - 1,
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


def table_described(described: Mapping[str, Any], root: str, arrays: Sequence[Array]) -> SavedTable:
    """A version from its description; KeyError, TypeError or ValueError if it is none."""
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
