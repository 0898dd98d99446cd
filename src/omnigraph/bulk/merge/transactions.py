"""The transactions of a large merge: staged files of each table, and the rows of the target that they replace.

Few of them are looked up; many are found by one pass over the ids of the target, piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.bulk.matches import DeletionTask, MatchFile, delete_replaced, read_matches, write_matches
from omnigraph.bulk.merge.staged import StagedChange, StagedMerge
from omnigraph.bulk.merge.tasks import read_deleted
from omnigraph.bulk.pieces import Piece, open_tables, pieces_of
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.errors import JobFailed
from omnigraph.storage.address import Address
from omnigraph.storage.files.datafiles import StagedFile, column_ids, read_file, row_id_text
from omnigraph.storage.stage.changes import Shrunk, stage_appended_files, stage_changed_files
from omnigraph.storage.stage.lookups import PROBE_LIMIT, locate_rows
from omnigraph.storage.tables import TableRef
from omnigraph.write import protocol
from omnigraph.write.delta import one_chunk

_MATCHED: Final = 1_000_000
"""About how many ids are matched with the rows of a piece at a time."""
_NO_FILE: Final = ""
"""What matches say instead of a file about rows that are deleted."""


@dataclass(frozen=True, slots=True)
class _LocateTask:
    """Finds the rows of one piece of the target that are replaced or deleted."""

    table: StagedChange
    piece: Piece
    job: str


@dataclass(frozen=True, slots=True)
class _ProbeTask:
    """Looks up the rows of the target that are replaced or deleted, which are few."""

    table: StagedChange
    graph: Address
    ref: TableRef
    job: str


def stage_table(
    runner: Runner, merge: StagedMerge, table_key: str, rows_per_task: int, ref: TableRef, operation: str
) -> protocol.StagedTable:
    """Stage the change of one table: new files, and deletion vectors for the rows they replace."""
    table, address = merge.tables[table_key], merge.snapshot.address
    matches = _located(runner, merge, table_key, rows_per_task)
    files = _with_row_ids(address, table, matches)
    handle = open_tables(address).open(ref)
    ids, version = column_ids(handle.lance_schema), table.target.version
    new = [file.fragment(ids, version) for file in files]
    rows = merge.snapshot.rows(table_key) + table.rows - table.replaced
    names = frozenset(file.name for file in files)
    if not matches:
        staged = stage_appended_files(handle, ref.location, ref.branch, new, operation)
        return protocol.StagedTable(staged, rows, names)
    deletions = [DeletionTask(address, ref, match) for match in matches]
    shrunk = Shrunk.together(runner.run("replacing rows", delete_replaced, deletions))
    staged = stage_changed_files(handle, ref.location, ref.branch, shrunk, new, operation)
    return protocol.StagedTable(staged, rows, names)


def _located(runner: Runner, merge: StagedMerge, table_key: str, rows_per_task: int) -> list[MatchFile]:
    """The rows of the target that are replaced or deleted, in files of matches."""
    table = merge.tables[table_key]
    if not table.replaced:
        return []
    step, pin = "finding replaced rows", merge.snapshot.tables[table_key]
    if table.replaced <= min(PROBE_LIMIT, rows_per_task):
        probes = [_ProbeTask(table, merge.snapshot.address, pin.ref, runner.job)]
        files = runner.run(step, _look_up, probes)
    else:
        pieces = pieces_of(merge.snapshot, table_key, rows_per_task)
        files = runner.run(step, _locate, [_LocateTask(table, piece, runner.job) for piece in pieces])
    found = [file for file in files if file is not None]
    if sum(file.rows for file in found) != table.replaced:
        raise JobFailed(runner.job, step, f"rows of {table_key} are not where they were")
    return found


def _look_up(task: _ProbeTask) -> TaskResult[MatchFile | None]:
    """The rows of the target that are replaced, by their ids."""
    ids = pa.concat_arrays([ids for _, ids in _replaced_ids(task.table)])
    found = locate_rows(open_tables(task.graph).open(task.ref), ids)
    names = {"id": "id", "row_id": "_rowid", "row_address": "_rowaddr"}
    rows = pa.table({names[name]: column for name, column in found.items()})
    return TaskResult(_written(task.table, task.job, rows), rows=len(ids))


def _locate(task: _LocateTask) -> TaskResult[MatchFile | None]:
    """The rows of a piece that are replaced."""
    rows = pa.Table.from_batches(task.piece.batches(["id"], row_ids=True, row_addresses=True))
    return TaskResult(_written(task.table, task.job, rows), rows=task.piece.rows)


def _written(table: StagedChange, job: str, rows: pa.Table) -> MatchFile | None:
    """Those of some rows that are replaced, each with its place in the staged files, and those deleted."""
    matches = pa.concat_tables([_matches(rows, group) for group in _grouped(_replaced_ids(table))])
    if not matches.num_rows:
        return None
    return write_matches(table.target.address, job, f"matches-{ULID()}", matches)


def _replaced_ids(table: StagedChange) -> Iterator[tuple[str, pa.Array]]:
    """The ids of rows that are replaced, with the files that have the new ones, and the ids of those deleted."""
    for file in table.files:
        if file.replacing:
            ids = read_file(table.target, file.staged.name, ["id"])["id"]
            yield file.staged.name, one_chunk(ids.slice(0, file.replacing))
    for part in table.deleted:
        yield _NO_FILE, read_deleted(table.target.address, [part])


def _grouped(sources: Iterable[tuple[str, pa.Array]]) -> Iterator[list[tuple[str, pa.Array]]]:
    """Ids in groups that are matched at a time."""
    group: list[tuple[str, pa.Array]] = []
    for source in sources:
        group.append(source)
        if sum(len(ids) for _, ids in group) >= _MATCHED:
            yield group
            group = []
    if group:
        yield group


def _matches(rows: pa.Table, group: Sequence[tuple[str, pa.Array]]) -> pa.Table:
    """The rows that have one of these ids."""
    starts = np.cumsum([0, *(len(ids) for _, ids in group)])
    where = one_chunk(pc.index_in(rows["id"], value_set=pa.concat_arrays([ids for _, ids in group])))
    is_match, at = pc.is_valid(where), where.drop_null().to_numpy()
    owner = np.searchsorted(starts, at, side="right") - 1
    return pa.table(
        {
            "file": pa.array([name for name, _ in group], pa.string()).take(pa.array(owner)),
            "row": at - starts[owner],
            "row_id": rows["_rowid"].filter(is_match),
            "row_address": rows["_rowaddr"].filter(is_match),
        }
    )


def _with_row_ids(address: Address, table: StagedChange, matches: Sequence[MatchFile]) -> list[StagedFile]:
    """The staged files with the row ids of the rows that their first ones replace. Matches are read one by one."""
    row_ids: dict[str, npt.NDArray[np.uint64]] = {
        file.staged.name: np.zeros(file.replacing, np.uint64) for file in table.files if file.replacing
    }
    for match in matches:
        found = read_matches(address, [match])
        for name in match.files - {_NO_FILE}:
            mine = found.filter(pc.equal(found["file"], name))
            row_ids[name][mine["row"].to_numpy()] = mine["row_id"].to_numpy()
    files = (file.staged for file in table.files)
    return [
        replace(file, row_ids=row_id_text(row_ids[file.name].tolist())) if file.name in row_ids else file
        for file in files
    ]
