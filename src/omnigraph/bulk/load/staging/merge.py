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

from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.checking.joins import KeyJoins
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.masks import ExcludedRows, packed_mask
from omnigraph.bulk.matches import MatchFile, write_matches
from omnigraph.bulk.pieces import Piece, open_table, open_tables, pieces_of
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.read.values.columns import Positions
from omnigraph.read.values.exact import ExactIndex
from omnigraph.settings import BulkSettings
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.stage.lookups import MOST_PROBES, PROBE_LIMIT, are_looked_up, locate_rows
from omnigraph.storage.unavailable import translated

Matches = Mapping[str, tuple[MatchFile, ...]]
"""Matches of staged and committed rows, by table."""


@dataclass(frozen=True, slots=True)
class _LookupTask:
    """Looks up the committed rows of a table that a few staged rows replace."""

    load: StagedLoad
    job: str
    table_key: str


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
        if _are_looked_up(load, table_key):
            looked_up = runner.run("finding replaced rows", _look_up, [_LookupTask(load, runner.job, table_key)])
            files = tuple(file for file in looked_up if file is not None)
        elif table_key in small:
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


def _are_looked_up(load: StagedLoad, table_key: str) -> bool:
    """Does the index on ids find the replaced rows with less reading than a pass over all ids?"""
    rows = sum(file.rows for file in load.files[table_key])
    if rows > MOST_PROBES * PROBE_LIMIT:
        return False
    ids = load.keys(table_key, ["id"])["id"].combine_chunks()
    return are_looked_up(open_table(load.snapshot, table_key), ids)


class _StagedIds:
    """The ids of the staged rows of a table that are loaded, and where each of them is staged."""

    def __init__(self, load: StagedLoad, table_key: str) -> None:
        self.ids = load.keys(table_key, ["id"])["id"].combine_chunks()
        self._names = pa.array([file.name for file in load.files[table_key]])
        rows = [load.excluded.kept(file) for file in load.files[table_key]]
        self._starts = np.cumsum([0, *map(len, rows)])
        self._positions = np.concatenate(rows)

    def matches(self, at: Positions, row_ids: pa.Array, row_addresses: pa.Array) -> pa.Table:
        """The staged rows at some positions among the ids, with the committed rows that they replace."""
        owner = np.searchsorted(self._starts, at, side="right") - 1
        names = pa.DictionaryArray.from_arrays(pa.array(owner), self._names)
        return pa.table(
            {
                "file": names.cast(pa.string()),
                "row": self._positions[at],
                "row_id": row_ids,
                "row_address": row_addresses,
            }
        )


def _look_up(task: _LookupTask) -> TaskResult[MatchFile | None]:
    """The committed rows with the ids of staged ones, by the index on ids; None if there are none."""
    load, table_key = task.load, task.table_key
    staged, pin = _StagedIds(load, table_key), load.snapshot.tables[table_key]
    handle = open_tables(load.snapshot.address).verified(pin.ref, LOOKUP_BYTES)
    with translated(handle.uri):
        found = locate_rows(handle, staged.ids)
    if not len(found["id"]):
        return TaskResult(None, rows=len(staged.ids))
    at = ExactIndex(staged.ids).places(found["id"])
    matches = staged.matches(at, found["row_id"], found["row_address"])
    name = f"matches-{table_key.replace(':', '-')}"
    return TaskResult(write_matches(load.snapshot.address, task.job, name, matches), rows=len(staged.ids))


def _matches(task: _MatchTask) -> TaskResult[MatchFile | None]:
    """The committed rows of one piece with the staged rows that have their ids; None if there are none."""
    load, table_key = task.load, task.piece.table_key
    staged = _StagedIds(load, table_key)
    index = ExactIndex(staged.ids)
    found: list[pa.Table] = []
    for batch in task.piece.batches(["id"], row_ids=True, row_addresses=True):
        at = index.places(batch["id"])
        is_match = at >= 0
        if is_match.any():
            mask = pa.array(is_match)
            columns = (batch[name].filter(mask) for name in ("_rowid", "_rowaddr"))
            found.append(staged.matches(at[is_match], *columns))
    if not found:
        return TaskResult(None, rows=task.piece.rows)
    name = f"matches-{table_key.replace(':', '-')}-{task.piece.fragments[0]}"
    written = write_matches(load.snapshot.address, task.job, name, pa.concat_tables(found))
    return TaskResult(written, rows=task.piece.rows)
