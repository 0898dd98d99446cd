"""Staging: a change is written as files that no table refers to yet, and small files are folded beside it.

A thread stages its own change before it waits for the lock. Where several threads of a process write to a branch
on a disk, the one that has the lock stages for those that wait as well: their rows are looked up together, and
their files are written and brought to the disk together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BranchNotFound
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.sidecar import TableMove
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.datafiles import has_blobs
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.stage.changes import (
    Staged,
    new_fragments,
    stage_append,
    stage_appends,
    stage_changes,
    stage_overwrite,
)
from omnigraph.storage.tables import TableRef
from omnigraph.storage.together import in_shares
from omnigraph.write.base import Base
from omnigraph.write.changes import Fold, Ready, Result, Stage, StagedMove, StagedTable, WriteRequest
from omnigraph.write.delta import TableDelta
from omnigraph.write.upkeep.discarding import discard_change

_THREADS: Final = 2
_MANY_ROWS: Final = 4_096
"""From so many rows on writing them takes much longer than to start a thread."""


def staged(ready: Ready[Result], request: WriteRequest, fold: Fold, operation_id: str) -> Ready[Result]:
    """A change with its files."""
    base, prepared = ready.base, ready.prepared
    stages: dict[str, Stage] = {
        key: partial(_stage_rows, base, change, request.rows_per_file) for key, change in prepared.delta.items()
    }
    stages.update(prepared.stages)
    renamed = {} if prepared.schema is None else prepared.schema.renamed
    apart = _is_staged_apart(prepared.delta, prepared.stages)
    made = in_shares(lambda key: _stage(base, key, stages[key], operation_id), [*stages], _THREADS if apart else 1)
    moves = []
    for key, (ref, table) in zip(stages, made, strict=True):
        moves.append(
            _move(base.pin(key), renamed.get(key, key), ref, table, fold(ref, table.staged, operation_id))
        )
    return replace(ready, staged=moves)


def _is_staged_apart(delta: Mapping[str, TableDelta], others: Mapping[str, Stage]) -> bool:
    """Are tables staged by several threads? That pays if many rows are added to more than one."""
    return not others and sorted(change.upserts.num_rows for change in delta.values())[-2:-1] >= [_MANY_ROWS]


def can_be_left(ready: Ready[Result], request: WriteRequest) -> bool:
    """May another thread stage a change along with its own? It only adds rows, to tables on a disk that are the
    branch's own, and was prepared without looking at others."""
    base, prepared = ready.base, ready.prepared
    if base.repository.address.scheme is not Scheme.LOCAL or not (request.is_quick and prepared.is_blind):
        return False
    if not prepared.delta or prepared.stages or prepared.schema is not None:
        return False
    return all(
        not change.replaces
        and not len(change.deletes)
        and not has_blobs(base.schema(key))
        and base.pin(key).table_branch == base.branch.native
        for key, change in prepared.delta.items()
    )


def are_new(base: Base, changes: Sequence[Ready[Any]]) -> list[bool]:
    """For each of several changes whether all rows that it adds are new in a state. Each table is asked once."""
    asked: dict[str, list[pa.Array]] = {}
    for ready in changes:
        for key, change in ready.prepared.delta.items():
            if not (change.fresh or change.strict):
                asked.setdefault(key, []).append(change.ids)
    present = {key: base.existing(key, pa.concat_arrays(ids)) for key, ids in asked.items()}
    return [
        not any(
            pc.any(pc.is_in(change.ids, value_set=present[key])).as_py()
            for key, change in ready.prepared.delta.items()
            if key in present and len(present[key])
        )
        for ready in changes
    ]


def stage_together(base: Base, changes: Sequence[tuple[Ready[Any], str]]) -> list[Ready[Any]]:
    """Stage changes that add rows which are new in a state, each with the id of its operation. They are staged
    on top of that state, and not yet of each other."""
    tables: dict[str, list[tuple[int, pa.Table]]] = {}
    for place, (ready, _) in enumerate(changes):
        for key, change in ready.prepared.delta.items():
            tables.setdefault(key, []).append((place, change.upserts.cast(base.schema(key))))
    moves: list[list[StagedMove]] = [[] for _ in changes]
    for key, added in tables.items():
        pin, handle = base.pin(key), base.open(key)
        parts = [(rows, changes[place][1]) for place, rows in added]
        made = stage_appends(handle, pin.location, pin.table_branch, parts)
        fragments = [fragment for one in made for fragment in new_fragments(one)]
        rows = pa.concat_tables(rows for rows, _ in parts)
        base.repository.small_tables.note(pin.ref, base.schema(key), fragments, rows)
        for (place, rows), one in zip(added, made, strict=True):
            moves[place].append(_move(pin, key, pin.ref, StagedTable(one, pin.row_count + rows.num_rows), ()))
    return [replace(ready, base=base, staged=moves[place]) for place, (ready, _) in enumerate(changes)]


def _move(
    before: TablePin, new_key: str, ref: TableRef, table: StagedTable, folded: Sequence[Staged]
) -> StagedMove:
    """A staged table, and what was folded beside it, on top of a version. With another schema the table may have
    another key."""
    versions = (table.staged, *folded)
    after = TablePin(new_key, ref.location, ref.version + len(versions), ref.branch, table.rows)
    move = TableMove(before, after, tuple(version.transaction_id for version in versions))
    return StagedMove(table, versions, move)


def fork(base: Base, tables: Iterable[str], lock: CommitLock | None) -> None:
    """Give the branch its own tree of each table that it writes to for the first time.

    Forks of one branch are made under its lock, one at a time. A fork that is found half made is therefore a dead
    writer's, and is made again from the start.
    """
    branch = base.branch
    shared = [base.ref(key) for key in sorted(tables) if base.pin(key).table_branch != branch.native]
    if branch.native is None or not shared:
        return
    if lock is not None:
        _fork_tables(base, shared, branch.native, lock)
        return
    with base.repository.locks.commit(branch.name) as own:
        _fork_tables(base, shared, branch.native, own)


def _fork_tables(base: Base, shared: list[TableRef], native: str, lock: CommitLock) -> None:
    repository, branch = base.repository, base.branch
    if repository.branches.find(branch.name).ref != branch.ref:
        raise BranchNotFound(branch.name)
    for ref in shared:
        lock.verify()
        repository.tables.fork(ref, native)


def _stage(base: Base, table_key: str, stage: Stage, operation_id: str) -> tuple[TableRef, StagedTable]:
    """Stage one table's change in the branch's own tree."""
    before = base.pin(table_key)
    ref = TableRef(before.location, base.branch.native or before.table_branch, before.table_version)
    return ref, stage(ref, operation_id)


def _stage_rows(
    base: Base, change: TableDelta, rows_per_file: int, ref: TableRef, operation_id: str
) -> StagedTable:
    """Stage a change of rows as an overwrite, an append or a mixture, whichever is cheapest."""
    handle, small = base.repository.tables.open(ref), base.repository.small_tables
    upserts = change.upserts.cast(base.schema(change.table_key))
    rows = base.pin(change.table_key).row_count
    if change.replaces:
        made = stage_overwrite(handle, ref.location, ref.branch, upserts, operation_id, rows_per_file)
        return StagedTable(made, upserts.num_rows)
    if (change.fresh or change.strict) and not len(change.deletes):
        made = stage_append(handle, ref.location, ref.branch, upserts, operation_id, rows_per_file)
        small.note(ref, upserts.schema, new_fragments(made), upserts)
        return StagedTable(made, rows + upserts.num_rows)
    handle = base.repository.tables.verified(ref, LOOKUP_BYTES)
    mixed = stage_changes(
        handle,
        ref.location,
        ref.branch,
        upserts,
        change.deletes,
        operation_id,
        rows_per_file,
        located=base.located(change.table_key, change.replaced),
    )
    small.note(ref, upserts.schema, new_fragments(mixed.staged), mixed.written)
    return StagedTable(mixed.staged, rows + mixed.inserted - mixed.deleted)


def discard(ready: Ready[Result]) -> None:
    """Remove the rows that were staged for nothing. What a writer staged itself it may use again."""
    base = ready.base
    for one in ready.staged:
        key = one.move.table_key
        if key in ready.prepared.delta:
            discard_change(base.repository.tables, one.table.staged, has_blobs=has_blobs(base.schema(key)))
