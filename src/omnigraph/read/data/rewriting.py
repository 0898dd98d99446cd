"""Pieces that a compaction has written from others: their rows keep the positions they had.

Rows are known by their row ids, which a compaction keeps. Two branches give the same new ids to different rows,
and a restored version may give ids away again. So a row is taken for the same only if both versions are of one
branch and the row was not changed between them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from omnigraph.read.data.layout import Placement, located
from omnigraph.storage.handles import TableRef
from omnigraph.storage.rows.pieces import Piece
from omnigraph.storage.rows.row_ids import identities
from omnigraph.storage.tables import Tables


def take_over(tables: Tables, ref: TableRef, pieces: Sequence[Piece], before: Placement) -> None:
    """Give those pieces of a version that have no positions yet the ones that their rows have in an earlier
    version of its branch. A piece with mostly other rows is left without."""
    there = {piece.files for piece in pieces}
    old = [stretch for stretch in before.stretches if stretch.piece.files not in there]
    new = [piece for piece in pieces if not before.layout.has(piece.files)]
    new_rows = identities(tables, ref, new)
    old_rows = identities(tables, before.ref, [stretch.piece for stretch in old])
    if new_rows is None or old_rows is None or not old:
        return
    ids = np.concatenate([np.delete(each.ids, one.gone) for one, each in zip(old, old_rows, strict=True)])
    positions = np.concatenate([stretch.live for stretch in old])
    owners = np.repeat(np.arange(len(old)), [stretch.piece.live for stretch in old])
    for piece, rows in zip(new, new_rows, strict=True):
        found = located(rows.ids, ids)
        found[rows.changed > before.ref.version] = -1
        held = found >= 0
        if 2 * int(held.sum()) < len(found):
            continue
        at = np.where(held, positions[found], np.int32(-1))
        parents = [old[number].piece.files for number in np.unique(owners[found[held]]).tolist()]
        before.layout.take_over(piece, at, frozenset(parents))
