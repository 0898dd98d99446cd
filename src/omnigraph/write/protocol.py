"""The one way to write: every writer prepares a change and hands it to `commit_write`.

::

    heal         resolve what dead writers left
    capture      pin the branch's state
    prepare      the writer executes and validates in memory, and its change is staged; no table moves
    lock         the branch's commit lock
    revalidate   nothing moved since; else prepare again (in the end under the lock), or a typed conflict
    Phase A      the sidecar
    Phase B      commit each staged table
    Phase C      publish the manifest
    Phase D      remove the sidecar
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from ulid import ULID

from omnigraph.arguments import LONGEST_ACTOR, LONGEST_MESSAGE, optional_text
from omnigraph.errors import (
    BranchNotFound,
    ConflictError,
    ManifestConflict,
    OmniError,
    PreconditionFailed,
    TableDrift,
    TableMoved,
)
from omnigraph.failpoints import hit
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.publisher import CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.manifest.streams import Batch, require_next
from omnigraph.recovery.heal import heal, heal_branch
from omnigraph.recovery.late import undo_late_version
from omnigraph.recovery.sidecar import Sidecar, TableMove, delete_sidecar, is_pending, write_sidecar
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.storage.staging import Staged, stage_append, stage_changes, stage_overwrite
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base, capture
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import read_set, validate
from omnigraph.write.outcomes import InDoubt, find_out
from omnigraph.write.rules import SHOWN

OPTIMISTIC_ATTEMPTS: Final = 2
"""How often a change is prepared without the lock before it is prepared under it."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The staged change of one table, and how many rows the table has with it."""

    staged: Staged
    rows: int


Stage = Callable[[TableRef, str], StagedTable]
"""Stages the change of one table, given where the table is and the id of the operation. No table moves."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change a writer wants committed. ``repeatable`` ones may be prepared again when something moved.

    ``delta`` has rows, which are validated and then staged. ``stages`` has tables of which the writer knows
    better how to stage their change, and that no rule of the schema can object to it; ``reads`` names the tables
    whose rows told it so. Of what objects, the first ``most`` are listed.
    """

    delta: Mapping[str, TableDelta]
    repeatable: bool
    lineage_only: bool = False
    stages: Mapping[str, Stage] = field(default_factory=dict)
    reads: frozenset[str] = frozenset()
    most: int = SHOWN

    @property
    def tables(self) -> set[str]:
        """The tables that change."""
        return {*self.delta, *self.stages}


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Who writes what kind of change to which branch; a ``batch`` of a stream is written once, in its turn."""

    writer: str
    branch: Branch
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class _StagedMove:
    staged: Staged
    move: TableMove


@dataclass(frozen=True, slots=True)
class _Ready:
    """A change that is staged, and the state it was prepared against."""

    base: Base
    prepared: Prepared
    staged: list[_StagedMove]


Prepare = Callable[[Base], Prepared]

_PUT_RIGHT: Final = ConflictError("a late request of a dead writer was undone; the write is prepared again")
"""Says that a write has to be prepared again although nothing that it read has changed."""


def commit_write(
    repository: Repository, request: WriteRequest, prepare: Prepare, keeper: Held | None = None
) -> Commit | None:
    """Run a write to its end; the commit it published, or None if there was nothing to change.

    A batch of a stream that is committed already raises BatchDone. A change that may be prepared again is first
    prepared without the lock. If others are faster each time, it takes the lock first, and then none can be.
    A ``keeper`` is a lock of the writer's own, without which others may have removed what it has staged.
    """
    repository.require_writable()
    optional_text("actor", request.actor, LONGEST_ACTOR)
    optional_text("message", request.message, LONGEST_MESSAGE)
    try:
        return _commit_write(repository, request, prepare, keeper)
    except InDoubt as error:
        doubt = error
    return find_out(repository, doubt)


def _commit_write(
    repository: Repository, request: WriteRequest, prepare: Prepare, keeper: Held | None
) -> Commit | None:
    operation_id = str(ULID())
    for _ in range(OPTIMISTIC_ATTEMPTS):
        heal(repository, request.branch.name)
        ready = _make_ready(repository, request, prepare, operation_id, None)
        if ready is None:
            _finish_empty(repository, request, None)
            return None
        hit("write.after_stage")
        with repository.locks.commit(request.branch.name) as lock:
            hit("write.after_lock")
            conflict = _revalidate(request, ready, lock)
            if conflict is None:
                return _commit(repository, request, operation_id, ready.staged, lock, keeper)
        if not (conflict is _PUT_RIGHT or (ready.prepared.repeatable and isinstance(conflict, ManifestConflict))):
            raise conflict
    with repository.locks.commit(request.branch.name) as lock:
        while True:
            heal_branch(repository, request.branch.name, lock)
            ready = _make_ready(repository, request, prepare, operation_id, lock)
            if ready is None:
                _finish_empty(repository, request, lock)
                return None
            conflict = _revalidate(request, ready, lock)
            if conflict is None:
                return _commit(repository, request, operation_id, ready.staged, lock, keeper)
            if conflict is not _PUT_RIGHT:
                raise conflict


def _make_ready(
    repository: Repository, request: WriteRequest, prepare: Prepare, operation_id: str, lock: CommitLock | None
) -> _Ready | None:
    """Capture, prepare, validate and stage; None if there is nothing to change. No table moves."""
    base = capture(repository, request.branch)
    _require_unchanged(request, base.snapshot)
    prepared = prepare(base)
    if not prepared.tables and not prepared.lineage_only:
        return None
    validate(prepared.delta, base, prepared.most)
    _fork(base, prepared.tables, lock)
    stages: dict[str, Stage] = {key: partial(_stage_rows, base, change) for key, change in prepared.delta.items()}
    stages.update(prepared.stages)
    staged = [_stage(base, key, stage, operation_id) for key, stage in stages.items()]
    return _Ready(base, prepared, staged)


def _finish_empty(repository: Repository, request: WriteRequest, lock: CommitLock | None) -> None:
    """Nothing is to be changed: a stream's batch without rows is noted as done, under the lock."""
    if request.batch is None:
        return
    with repository.locks.commit(request.branch.name) if lock is None else nullcontext(lock) as held:
        heal_branch(repository, request.branch.name, held)
        _require_unchanged(request, repository.snapshot(request.branch))
        repository.manifest.note_batch(request.branch.ref, request.batch, held)


def _require_unchanged(request: WriteRequest, snapshot: Snapshot) -> None:
    """Compare-and-swap: on the branch's head, if the caller asked for it, and on how far a stream has come."""
    if request.batch is not None:
        require_next(snapshot.streams, request.branch.name, request.branch.native, request.batch)
    actual = None if snapshot.commit is None else snapshot.commit.graph_commit_id
    if request.if_commit is not None and request.if_commit != actual:
        raise PreconditionFailed(request.branch.name, request.if_commit, actual)


def _fork(base: Base, tables: Iterable[str], lock: CommitLock | None) -> None:
    """Give the branch its own tree of each table it writes to for the first time.

    A fork that another one interrupts is made again from nothing, so they take turns under the lock, and one that
    is found half done is a dead writer's.
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


def _stage(base: Base, table_key: str, stage: Stage, operation_id: str) -> _StagedMove:
    """Write one table's change as files that nothing refers to yet, in the branch's own tree."""
    before = base.pin(table_key)
    ref = TableRef(before.location, base.branch.native or before.table_branch, before.table_version)
    done = stage(ref, operation_id)
    after = TablePin(table_key, ref.location, ref.version + 1, ref.branch, done.rows)
    return _StagedMove(done.staged, TableMove(before, after, (done.staged.transaction_id,)))


def _stage_rows(base: Base, change: TableDelta, ref: TableRef, operation_id: str) -> StagedTable:
    """Stage a change of rows in the cheapest way that fits it."""
    handle = base.repository.tables.open(ref)
    upserts = change.upserts.cast(base.schema(change.table_key))
    rows = base.pin(change.table_key).row_count
    if change.replaces:
        staged = stage_overwrite(handle, ref.location, ref.branch, upserts, operation_id)
        return StagedTable(staged, upserts.num_rows)
    if (change.fresh or change.strict) and not len(change.deletes):
        staged = stage_append(handle, ref.location, ref.branch, upserts, operation_id)
        return StagedTable(staged, rows + upserts.num_rows)
    handle = base.repository.tables.verified(ref, LOOKUP_BYTES)
    mixed = stage_changes(handle, ref.location, ref.branch, upserts, change.deletes, operation_id)
    return StagedTable(mixed.staged, rows + mixed.inserted - mixed.deleted)


def _revalidate(request: WriteRequest, ready: _Ready, lock: CommitLock) -> OmniError | None:
    """Under the lock: does the change still fit? The conflict, if it does not.

    A writer that died since we looked has left a sidecar; it is healed here, and the change prepared again.
    """
    base, prepared = ready.base, ready.prepared
    repository = base.repository
    heal_branch(repository, request.branch.name, lock)
    current = repository.snapshot(request.branch)
    _require_unchanged(request, current)
    if current.manifest_version != base.snapshot.manifest_version:
        read = read_set(prepared.delta, base.catalog) | prepared.tables | prepared.reads
        for key in sorted(read, key=lambda key: (key not in prepared.tables, key)):
            pin, before = current.tables.get(key), base.snapshot.tables[key]
            if pin is None or (pin.table_version, pin.location) != (before.table_version, before.location):
                actual = 0 if pin is None else pin.table_version
                return ManifestConflict(key, before.table_version, actual)
    for table in ready.staged:
        after = table.move.after
        if repository.tables.moved(TableRef(after.location, after.table_branch, after.table_version - 1)):
            lock.verify()
            pin = current.tables[table.move.table_key]
            if undo_late_version(repository, request.branch.ref, pin, after.table_branch, lock):
                return _PUT_RIGHT
            return _drift(repository, request, table.move)
    return None


def _drift(repository: Repository, request: WriteRequest, move: TableMove) -> TableDrift:
    """A table ahead of the manifest, with the way out that fits what can be told about it."""
    match is_pending(repository.objects, request.branch.ref):
        case True:
            reason = "an interrupted write is still being recovered; retry, or reopen the graph"
        case False:
            reason = "nothing of OmniGraph's did that; run `omnigraph repair`"
        case None:
            reason = "the pending writes cannot be listed; retry when the store answers, or run `omnigraph repair`"
    return TableDrift(move.table_key, move.before.table_version, reason)


def _commit(
    repository: Repository,
    request: WriteRequest,
    operation_id: str,
    staged: list[_StagedMove],
    lock: CommitLock,
    keeper: Held | None,
) -> Commit:
    """Phases A to D. Until there is a sidecar, an error means that nothing was written. From then on the write can
    be finished by this writer or by recovery, and an error leaves it in doubt."""
    draft = CommitDraft(request.writer, str(ULID()), request.actor, request.message, batch=request.batch)
    sidecar = Sidecar(operation_id, request.writer, request.branch.ref, draft, tuple(t.move for t in staged))
    lock.verify()
    if keeper is not None:
        keeper.verify()
    if sidecar.moves:
        write_sidecar(repository.objects, sidecar)
    try:
        hit("write.after_sidecar")
        commit = _move_and_publish(repository, sidecar, staged, lock)
        hit("write.after_publish")
    except Exception as error:  # noqa: BLE001  whatever it is, others may finish the write
        raise InDoubt(sidecar, error) from None
    if sidecar.moves:
        _remove_sidecar(repository, sidecar)
    hit("write.after_sidecar_delete")
    return commit


def _move_and_publish(
    repository: Repository, sidecar: Sidecar, staged: list[_StagedMove], lock: CommitLock
) -> Commit:
    """Phases B and C: commit each table, then make all of it visible."""
    pins: dict[str, TablePin] = {}
    for index, table in enumerate(staged):
        if index:
            hit("write.between_tables")
        lock.verify()
        move = table.move
        try:
            done = repository.tables.commit_staged(table.staged)
        except TableMoved as error:
            raise ManifestConflict(move.table_key, move.before.table_version, move.after.table_version) from error
        pins[move.table_key] = replace(move.after, checksum=done.checksum)
    hit("write.after_tables")
    change = replace(sidecar.change, pins=pins)
    state = repository.manifest.publish(sidecar.branch, change, sidecar.expected, sidecar.draft, lock)
    wanted = sidecar.draft.graph_commit_id
    commit = next((c for c in state.commits if c.graph_commit_id == wanted), None)
    commit = commit or repository.manifest.archive.find(wanted)
    assert commit is not None  # noqa: S101  it is published, perhaps by recovery and long ago
    return commit


def _remove_sidecar(repository: Repository, sidecar: Sidecar) -> None:
    """Phase D. The write is done; a sidecar that stays is removed by the next one."""
    try:
        delete_sidecar(repository.objects, sidecar.key)
    except OmniError as error:
        warnings.warn(
            f"the write succeeded, but its sidecar {sidecar.key} could not be removed ({error}); "
            "the next write will",
            RuntimeWarning,
            stacklevel=2,
        )
