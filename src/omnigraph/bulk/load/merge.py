"""Merging: of several records with one id the last one counts, and it replaces the committed row with that id.

Both are decided on ids alone, before anything is written again: which staged rows are excluded, and which staged
rows match committed ones. A task decides where the ids fit its memory, a join where they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.checks import StagedLoad
from omnigraph.bulk.load.joins import KeyJoins
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows, packed_mask
from omnigraph.bulk.matches import MatchFile, write_matches
from omnigraph.bulk.pieces import Piece, pieces_of
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.settings import BulkSettings

Matches = Mapping[str, tuple[MatchFile, ...]]
"""Matches of staged and committed rows, by table."""


@dataclass(frozen=True, slots=True)
class _MatchTask:
    """Finds the committed rows of one piece of a table that staged rows replace."""

    load: StagedLoad
    job: str
    piece: Piece


def superseded_rows(runner: Runner, joins: KeyJoins, load: StagedLoad, settings: BulkSettings) -> ExcludedRows:
    """The staged rows that later ones replace. Only a merge has any: elsewhere a repeated id is an error."""
    excluded = ExcludedRows()
    small, large = _merged_tables(load, settings.key_budget)
    for found in runner.run("finding repeated records", partial(_superseded, load), small):
        excluded = excluded.merged(found)
    for table_key in large:
        excluded = excluded.merged(joins.superseded(load, table_key))
    return excluded


def replaced_rows(runner: Runner, joins: KeyJoins, load: StagedLoad, settings: BulkSettings) -> Matches:
    """The committed rows that staged ones replace. Only a merge has any."""
    small, large = _merged_tables(load, settings.key_budget)
    matches: dict[str, tuple[MatchFile, ...]] = {}
    for table_key in (*small, *large):
        if not load.snapshot.rows(table_key):
            continue
        if table_key in small:
            pieces = pieces_of(load.snapshot, table_key, settings.rows_per_task)
            tasks = [_MatchTask(load, runner.job, piece) for piece in pieces]
            found = runner.run("finding replaced rows", _matches, tasks)
            files = tuple(file for file in found if file is not None)
        else:
            files = tuple(joins.replaced(load, table_key))
        if files:
            matches[table_key] = files
    return matches


def _merged_tables(load: StagedLoad, key_budget: int) -> tuple[list[str], list[str]]:
    """The tables that may have rows replaced: those whose ids fit the memory of a task, and the others."""
    merged = [key for key in load.files if load.mode is Mode.MERGE and load.has_explicit_ids(key)]
    small = [key for key in merged if load.key_bytes(key) <= key_budget]
    return small, [key for key in merged if key not in small]


def _superseded(load: StagedLoad, table_key: str) -> TaskResult[ExcludedRows]:
    """The staged rows of a table that a later row with the same id replaces."""
    ids = load.keys(table_key, ["id"])["id"].combine_chunks()
    if pc.count_distinct(ids).as_py() == len(ids):
        return TaskResult(ExcludedRows(), rows=len(ids))
    codes = ids.dictionary_encode().indices.to_numpy()
    last = np.zeros(int(codes.max()) + 1, np.int64)
    last[codes] = np.arange(len(codes))
    is_superseded = last[codes] != np.arange(len(codes))
    masks: dict[str, bytes] = {}
    start = 0
    for file in load.files[table_key]:
        mask = is_superseded[start : start + file.rows]
        start += file.rows
        if mask.any():
            masks[file.name] = packed_mask(mask)
    return TaskResult(ExcludedRows(masks), rows=len(ids))


def _matches(task: _MatchTask) -> TaskResult[MatchFile | None]:
    """The committed rows of one piece with the staged rows that have their ids; None if there are none."""
    load, table_key = task.load, task.piece.table_key
    files = load.files[table_key]
    rows = [load.excluded.kept(file) for file in files]
    ids = load.keys(table_key, ["id"])["id"].combine_chunks()
    starts = np.cumsum([0, *map(len, rows)])
    positions = np.concatenate(rows)
    found: list[pa.Table] = []
    for batch in task.piece.batches(["id"], row_ids=True, row_addresses=True):
        where = pc.index_in(batch["id"], value_set=ids)
        is_match = pc.is_valid(where)
        if not pc.any(is_match).as_py():
            continue
        at = where.drop_null().to_numpy()
        owner = np.searchsorted(starts, at, side="right") - 1
        names = pa.DictionaryArray.from_arrays(pa.array(owner), pa.array([file.name for file in files]))
        found.append(
            pa.table(
                {
                    "file": names.cast(pa.string()),
                    "row": positions[at],
                    "row_id": batch["_rowid"].filter(is_match),
                    "row_address": batch["_rowaddr"].filter(is_match),
                }
            )
        )
    if not found:
        return TaskResult(None, rows=task.piece.rows)
    name = f"matches-{table_key.replace(':', '-')}-{task.piece.fragments[0]}"
    written = write_matches(load.snapshot.address, task.job, name, pa.concat_tables(found))
    return TaskResult(written, rows=task.piece.rows)
