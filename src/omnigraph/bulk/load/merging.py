"""Merging: of several records with one id the last one counts, and it replaces the row that has the id.

Both are decided on ids alone, before anything is rewritten: which staged rows are not to be loaded, and pairs of
staged and committed rows. One task answers where the ids fit its memory, Spark's shuffle where they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load import checks
from omnigraph.bulk.load.checks import Ground
from omnigraph.bulk.load.joins import KeyJoins
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.bulk.runner import Done, Runner
from omnigraph.bulk.scratch import Drops, MatchFile, packed_mask, write_matches

Matches = Mapping[str, tuple[MatchFile, ...]]
"""Pairs of staged and committed rows, by table."""


@dataclass(frozen=True, slots=True)
class _Matching:
    """The search for the committed rows of one piece that staged rows replace."""

    ground: Ground
    job: str
    piece: Piece


def losers(runner: Runner, joins: KeyJoins, ground: Ground) -> Drops:
    """The staged rows that later ones replace; none but in a merge, as elsewhere a repeated id is an error."""
    drops = Drops()
    small, large = _by_size(ground)
    for found in runner.run("finding repeated records", partial(_losers, ground), small):
        drops = drops.with_more(found)
    for key in large:
        drops = drops.with_more(joins.repeated(ground, key))
    return drops


def replaced_rows(runner: Runner, joins: KeyJoins, ground: Ground) -> Matches:
    """The committed rows that staged ones replace; none but in a merge."""
    small, large = _by_size(ground)
    matches: dict[str, tuple[MatchFile, ...]] = {}
    for key in (*small, *large):
        if not ground.graph.rows(key):
            continue
        if key in small:
            tasks = [_Matching(ground, runner.job, piece) for piece in pieces_of(ground.graph, key)]
            found = runner.run("finding replaced rows", _matches, tasks)
        else:
            found = list(joins.replaced(ground, key))
        files = tuple(file for file in found if file is not None)
        if files:
            matches[key] = files
    return matches


def _by_size(ground: Ground) -> tuple[list[str], list[str]]:
    """The tables that may have rows replaced: those whose ids fit one task, and the others."""
    keyed = [key for key in ground.files if ground.mode is Mode.MERGE and ground.gives_ids(key)]
    small = [key for key in keyed if ground.key_bytes(key) <= checks.KEY_BUDGET]
    return small, [key for key in keyed if key not in small]


def _losers(ground: Ground, table_key: str) -> Done:
    """The staged rows of a table that a later one with the same id replaces."""
    files = ground.files[table_key]
    ids = ground.keys(table_key, ["id"])["id"].combine_chunks()
    if pc.count_distinct(ids).as_py() == len(ids):
        return Done(Drops(), rows=len(ids))
    codes = ids.dictionary_encode().indices.to_numpy()
    last = np.zeros(int(codes.max()) + 1, np.int64)
    last[codes] = np.arange(len(codes))
    lost = last[codes] != np.arange(len(codes))
    masks: dict[str, bytes] = {}
    start = 0
    for file in files:
        mine = lost[start : start + file.rows]
        start += file.rows
        if mine.any():
            masks[file.name] = packed_mask(mine)
    return Done(Drops(masks), rows=len(ids))


def _matches(task: _Matching) -> Done:
    """Pairs of committed rows of one piece and the staged rows with their ids."""
    ground, key = task.ground, task.piece.table_key
    files = ground.files[key]
    kept = [ground.drops.mask(file) for file in files]
    rows = [
        np.arange(f.rows) if mask is None else np.flatnonzero(~mask) for f, mask in zip(files, kept, strict=True)
    ]
    ids = ground.keys(key, ["id"])["id"].combine_chunks()
    starts = np.cumsum([0, *map(len, rows)])
    positions = np.concatenate(rows)
    found: list[pa.Table] = []
    for batch in task.piece.batches(["id"], row_ids=True, row_addresses=True):
        where = pc.index_in(batch["id"], value_set=ids)
        hit = pc.is_valid(where)
        if not pc.any(hit).as_py():
            continue
        at = where.drop_null().to_numpy()
        owner = np.searchsorted(starts, at, side="right") - 1
        names = pa.DictionaryArray.from_arrays(pa.array(owner), pa.array([file.name for file in files]))
        found.append(
            pa.table(
                {
                    "file": names.cast(pa.string()),
                    "row": positions[at],
                    "row_id": batch["_rowid"].filter(hit),
                    "row_address": batch["_rowaddr"].filter(hit),
                }
            )
        )
    if not found:
        return Done(None, rows=task.piece.rows)
    name = f"matches-{key.replace(':', '-')}-{task.piece.fragments[0]}"
    together = pa.concat_tables(found)
    return Done(write_matches(ground.graph.address, task.job, name, together), rows=task.piece.rows)
