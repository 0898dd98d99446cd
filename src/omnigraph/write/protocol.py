"""The one way to write: every writer gives `commit_write` a function that prepares its change.

::

    heal         finish or undo what dead writers left
    capture      pin the branch's newest snapshot
    prepare      the writer computes its change in memory
    validate     the change keeps every rule of the schema
    stage        the change is written as files that no table refers to yet; small files are folded beside it
    lock         take the branch's commit lock
    revalidate   nothing the change depends on has moved; else retry (the last time under the lock), or a conflict
    Phase A      write the sidecar
    Phase B      commit each staged table, and what was folded
    Phase C      publish the manifest: the compare-and-swap that makes the write visible
    Phase D      remove the sidecar

What the writer's function found out on the way comes back with the commit, as `Written.result`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Generic, TypeVar

from ulid import ULID

from omnigraph.arguments import LONGEST_ACTOR, LONGEST_MESSAGE, optional_text
from omnigraph.errors import (
    BranchNotFound,
    ConflictError,
    ManifestConflict,
    OmniError,
    PreconditionFailed,
    SchemaChanged,
    StagedFilesRemoved,
    TableDrift,
    TableMoved,
)
from omnigraph.failpoints import hit
from omnigraph.manifest.drafts import CommitDraft, SchemaMove
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.manifest.streams import Batch, require_next
from omnigraph.recovery.classify import ref_before
from omnigraph.recovery.heal import heal, heal_branch
from omnigraph.recovery.late import undo_late_version
from omnigraph.recovery.sidecar import Sidecar, TableMove, delete_sidecar, is_pending, write_sidecar
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import has_blobs
from omnigraph.storage.files.presence import first_absent
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.storage.stage.changes import ROWS_PER_FILE, Staged, stage_append, stage_changes, stage_overwrite
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base, capture
from omnigraph.write.delta import TableDelta
from omnigraph.write.discarding import discard_change
from omnigraph.write.evaluator import read_set, validate
from omnigraph.write.folding import Folding
from omnigraph.write.outcomes import InDoubt, find_out, require_noted
from omnigraph.write.reservations import require_new
from omnigraph.write.rules import SHOWN

OPTIMISTIC_ATTEMPTS: Final = 2
"""How often a change is prepared without the lock before it is prepared under it."""

SCHEMA_ATTEMPTS: Final = 3
"""How often a write is compiled again because the schema has changed, before it is given up."""

Result = TypeVar("Result")
"""What a writer finds out while it prepares: counts, a plan, a report."""


@dataclass(frozen=True, slots=True)
class StagedTable:
    """The staged change of one table, and how many rows the table has with it.

    ``files`` names the data files that a bulk job wrote before and that the change refers to.
    """

    staged: Staged
    rows: int
    files: frozenset[str] = frozenset()


Fold = Callable[[TableRef, Staged, str], tuple[Staged, ...]]
"""Folds small files of a table, given its staged change and the id of the operation: what to commit after it."""

Stage = Callable[[TableRef, str], StagedTable]
"""Stages the change of one table, given where the table is and the id of the operation. No table moves."""


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Result]):
    """A change that is ready to be validated and staged, and what the writer found out while preparing it.

    A ``repeatable`` change may be prepared again when a table has moved; any other fails with the conflict. A
    change of no table is committed only if it is ``lineage_only``.
    """

    delta: Mapping[str, TableDelta]
    """Rows by table. They are validated, then staged."""

    result: Result
    """Given back in `Written`."""

    repeatable: bool
    lineage_only: bool = False
    stages: Mapping[str, Stage] = field(default_factory=dict)
    """Tables that the writer has validated and stages itself."""

    reads: frozenset[str] = frozenset()
    """Tables whose rows the writer relied on to validate ``stages``."""

    schema: SchemaMove | None = None
    """A change of the schema that is published together with the tables."""

    message: str | None = None
    """The commit's message, if not the one of the request."""

    limit: int = SHOWN
    """How many violations an error lists."""

    @property
    def tables(self) -> set[str]:
        """The tables that change."""
        return {*self.delta, *self.stages}

    @property
    def is_empty(self) -> bool:
        """Is there nothing to commit?"""
        return not self.tables and not self.lineage_only and self.schema is None


@dataclass(frozen=True, slots=True)
class Written(Generic[Result]):
    """What became of a write: its commit, None if there was nothing to change, and the writer's own result.

    ``files`` names the data files of a bulk job that the commit refers to.
    """

    commit: Commit | None
    result: Result
    files: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """Who writes to which branch, and on which condition: ``if_commit`` names the commit the branch must be at.

    A ``batch`` of a stream is written once, and only after the batch before it. ``rows_per_file`` is the size of
    the data files that the protocol stages itself.
    """

    writer: str
    branch: Branch
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    batch: Batch | None = None
    merged_parents: tuple[str, ...] = ()
    """Heads of other branches that the commit brings into this one."""
    rows_per_file: int = ROWS_PER_FILE
    graph_commit_id: str | None = None
    """The id that the commit gets, chosen by the caller; CommitDone if the branch has it already."""
    compiled_for: Snapshot | None = None
    """The state with whose schema the change was compiled; SchemaChanged if the branch has another schema. None
    for a change that is computed from its base alone."""


@dataclass(frozen=True, slots=True)
class _StagedMove:
    """One staged table: the versions to commit one after the other, and the move from the table's version now to
    the last of them. The first has the change, the others rearrange files."""

    table: StagedTable
    versions: tuple[Staged, ...]
    move: TableMove


@dataclass(frozen=True, slots=True)
class _Ready(Generic[Result]):
    """A change that is staged, and the state it was prepared against."""

    base: Base
    prepared: Prepared[Result]
    staged: list[_StagedMove]
    cleanups: int = 0
    """The newest mark of a cleanup before anything of the write was staged."""


Prepare = Callable[[Base], Prepared[Result]]
"""A writer's own part: computes its change over one state of the branch. It is called again for a retry."""

_LATE_VERSION_UNDONE: Final = ConflictError("a late request of a dead writer was undone; the write is retried")
"""A reason to prepare any change again, even one that is not repeatable: nothing that it read has changed."""

_REARRANGED: Final = ConflictError("a table was compacted or indexed meanwhile; the write is retried")
"""Another such reason."""


def repeated_if_schema_changed(work: Callable[[], Result]) -> Result:
    """Do a piece of work that compiles and writes; once more, a few times, if the schema changes in between."""
    for _ in range(SCHEMA_ATTEMPTS):
        try:
            return work()
        except SchemaChanged:
            continue
    return work()


def commit_write(
    repository: Repository, request: WriteRequest, prepare: Prepare[Result], job_lock: Held | None = None
) -> Written[Result]:
    """Run a write to its end: its commit, and the result of the ``prepare`` call that was committed.

    A repeatable change is prepared up to twice without the lock; if other writers are faster both times, it is
    prepared once more under the lock. A batch of a stream that is committed already raises BatchDone. A bulk job
    passes its ``job_lock``: only while the job holds it are its staged files safe from `recovery.jobs.reclaim`.
    """
    repository.require_writable()
    optional_text("actor", request.actor, LONGEST_ACTOR)
    optional_text("message", request.message, LONGEST_MESSAGE)
    folding = Folding(repository.tables, repository.settings)
    ready, end = _prepare_and_commit(repository, request, prepare, folding, job_lock)
    folding.discard_unused()
    commit = find_out(repository, end) if isinstance(end, InDoubt) else end
    files = (one.table.files for one in ready.staged)
    return Written(commit, ready.prepared.result, frozenset().union(*files))


def _prepare_and_commit(
    repository: Repository,
    request: WriteRequest,
    prepare: Prepare[Result],
    folding: Folding,
    job_lock: Held | None,
) -> tuple[_Ready[Result], Commit | InDoubt | None]:
    """The change that was prepared last, and its commit; None if it changes nothing. Holds no lock afterwards."""
    operation_id = str(ULID())
    cleanups: int | None = None
    for _ in range(OPTIMISTIC_ATTEMPTS):
        heal(repository, request.branch.name)
        cleanups = repository.cleanups.latest if cleanups is None else cleanups
        ready = _make_ready(repository, request, prepare, operation_id, folding, None)
        ready = replace(ready, cleanups=cleanups)
        if ready.prepared.is_empty:
            _finish_empty(repository, request, None)
            return ready, None
        hit("write.after_stage")
        with repository.locks.commit(request.branch.name) as lock:
            hit("write.after_lock")
            conflict = _conflict(request, ready, lock)
            if conflict is None:
                return ready, _commit(repository, request, operation_id, ready, lock, job_lock)
        _discard(ready)
        is_moved = ready.prepared.repeatable and isinstance(conflict, ManifestConflict)
        is_harmless = conflict is _LATE_VERSION_UNDONE or conflict is _REARRANGED
        is_retried = is_harmless or isinstance(conflict, SchemaChanged | StagedFilesRemoved)
        if not is_moved and not is_retried:
            folding.begin()
            folding.discard_unused()
            raise conflict
        if isinstance(conflict, StagedFilesRemoved):
            folding.forget()
    with repository.locks.commit(request.branch.name) as lock:
        return _prepare_under_lock(repository, request, prepare, folding, lock, job_lock, operation_id, cleanups)


def commit_holding(
    repository: Repository, request: WriteRequest, prepare: Prepare[Result], lock: CommitLock
) -> tuple[Result, Commit | InDoubt | None]:
    """Run a write whose caller holds the whole graph: the writer's result, and its commit.

    A write in doubt is given back as it is; the caller finds out about it when it has given up its lock.
    """
    folding = Folding(repository.tables, repository.settings)
    ready, end = _prepare_under_lock(repository, request, prepare, folding, lock, None, str(ULID()), None)
    return ready.prepared.result, end


def _prepare_under_lock(
    repository: Repository,
    request: WriteRequest,
    prepare: Prepare[Result],
    folding: Folding,
    lock: CommitLock,
    job_lock: Held | None,
    operation_id: str,
    cleanups: int | None,
) -> tuple[_Ready[Result], Commit | InDoubt | None]:
    """Prepare and commit while no other writer can move the branch."""
    while True:
        heal_branch(repository, request.branch.name, lock)
        cleanups = repository.cleanups.latest if cleanups is None else cleanups
        ready = _make_ready(repository, request, prepare, operation_id, folding, lock)
        ready = replace(ready, cleanups=cleanups)
        if ready.prepared.is_empty:
            _finish_empty(repository, request, lock)
            return ready, None
        conflict = _conflict(request, ready, lock)
        if conflict is None:
            return ready, _commit(repository, request, operation_id, ready, lock, job_lock)
        _discard(ready)
        if conflict is not _LATE_VERSION_UNDONE:
            raise conflict


def _make_ready(
    repository: Repository,
    request: WriteRequest,
    prepare: Prepare[Result],
    operation_id: str,
    folding: Folding,
    lock: CommitLock | None,
) -> _Ready[Result]:
    """Capture, prepare, validate and stage. No table moves. Under the lock nothing new is folded."""
    folding.begin()
    base = capture(repository, request.branch)
    _require_unchanged(request, base.snapshot)
    require_new(repository, request.branch, request.graph_commit_id, base.snapshot, base.snapshot)
    prepared = prepare(base)
    optional_text("message", prepared.message, LONGEST_MESSAGE)
    if prepared.is_empty:
        return _Ready(base, prepared, [])
    validate(prepared.delta, base, prepared.limit)
    _fork(base, prepared.tables, lock)
    stages: dict[str, Stage] = {
        key: partial(_stage_rows, base, change, request.rows_per_file) for key, change in prepared.delta.items()
    }
    stages.update(prepared.stages)
    renamed = {} if prepared.schema is None else prepared.schema.renamed
    fold = folding.fold if lock is None else folding.reuse
    staged = [_stage(base, key, renamed.get(key, key), stage, fold, operation_id) for key, stage in stages.items()]
    return _Ready(base, prepared, staged)


def _finish_empty(repository: Repository, request: WriteRequest, lock: CommitLock | None) -> None:
    """There is nothing to change: a stream's batch without rows is marked as done, under the lock."""
    if request.batch is None:
        return
    with repository.locks.commit(request.branch.name) if lock is None else nullcontext(lock) as held:
        heal_branch(repository, request.branch.name, held)
        _require_unchanged(request, repository.snapshot(request.branch))
        try:
            repository.manifest.note_batch(request.branch.ref, request.batch, held)
        except Exception as error:  # noqa: BLE001  whatever it is, the mark may be there
            require_noted(repository, request.branch, request.batch, error)


def _require_unchanged(request: WriteRequest, snapshot: Snapshot) -> None:
    """What the caller relies on: the branch is at ``if_commit``, it has the schema that the change was compiled
    for, and the stream's ``batch`` comes next."""
    if request.batch is not None:
        require_next(snapshot.streams, request.branch.name, request.branch.native, request.batch)
    if request.compiled_for is not None and request.compiled_for.schema_digest != snapshot.schema_digest:
        raise SchemaChanged(request.branch.name)
    actual = None if snapshot.commit is None else snapshot.commit.graph_commit_id
    if request.if_commit is not None and request.if_commit != actual:
        raise PreconditionFailed(request.branch.name, request.if_commit, actual)


def _fork(base: Base, tables: Iterable[str], lock: CommitLock | None) -> None:
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


def _stage(base: Base, table_key: str, new_key: str, stage: Stage, fold: Fold, operation_id: str) -> _StagedMove:
    """Stage one table's change in the branch's own tree. With another schema the table may have another key."""
    before = base.pin(table_key)
    ref = TableRef(before.location, base.branch.native or before.table_branch, before.table_version)
    table = stage(ref, operation_id)
    versions = (table.staged, *fold(ref, table.staged, operation_id))
    after = TablePin(new_key, ref.location, ref.version + len(versions), ref.branch, table.rows)
    move = TableMove(before, after, tuple(version.transaction_id for version in versions))
    return _StagedMove(table, versions, move)


def _stage_rows(
    base: Base, change: TableDelta, rows_per_file: int, ref: TableRef, operation_id: str
) -> StagedTable:
    """Stage a change of rows as an overwrite, an append or a mixture, whichever is cheapest."""
    handle = base.repository.tables.open(ref)
    upserts = change.upserts.cast(base.schema(change.table_key))
    rows = base.pin(change.table_key).row_count
    if change.replaces:
        staged = stage_overwrite(handle, ref.location, ref.branch, upserts, operation_id, rows_per_file)
        return StagedTable(staged, upserts.num_rows)
    if (change.fresh or change.strict) and not len(change.deletes):
        staged = stage_append(handle, ref.location, ref.branch, upserts, operation_id, rows_per_file)
        return StagedTable(staged, rows + upserts.num_rows)
    handle = base.repository.tables.verified(ref, LOOKUP_BYTES)
    mixed = stage_changes(handle, ref.location, ref.branch, upserts, change.deletes, operation_id, rows_per_file)
    return StagedTable(mixed.staged, rows + mixed.inserted - mixed.deleted)


def _conflict(request: WriteRequest, ready: _Ready[Result], lock: CommitLock) -> OmniError | None:
    """Under the lock: what speaks against committing a staged change."""
    try:
        return _revalidate(request, ready, lock)
    except OmniError as error:
        return error


def _discard(ready: _Ready[Result]) -> None:
    """Remove the rows that were staged for nothing. What a writer staged itself it may use again."""
    base = ready.base
    for one in ready.staged:
        key = one.move.table_key
        if key in ready.prepared.delta:
            discard_change(base.repository.tables, one.table.staged, has_blobs=has_blobs(base.schema(key)))


def _revalidate(request: WriteRequest, ready: _Ready[Result], lock: CommitLock) -> OmniError | None:
    """Under the lock: the conflict, if a table that the change depends on has moved since it was captured.

    A writer that died in between has left a sidecar, which is healed first and may be the cause of the conflict.
    """
    base, prepared = ready.base, ready.prepared
    repository = base.repository
    heal_branch(repository, request.branch.name, lock)
    current = repository.snapshot(request.branch)
    _require_unchanged(request, current)
    require_new(repository, request.branch, request.graph_commit_id, current, base.snapshot)
    if current.schema_digest != base.snapshot.schema_digest:
        return SchemaChanged(request.branch.name)
    if current.manifest_version != base.snapshot.manifest_version:
        read = read_set(prepared.delta, base.catalog) | prepared.tables | prepared.reads
        is_rearranged = False
        for key in sorted(read, key=lambda key: (key not in prepared.tables, key)):
            pin, before = current.tables.get(key), base.snapshot.tables[key]
            if pin is not None and (pin.table_version, pin.location) == (before.table_version, before.location):
                continue
            if prepared.repeatable or pin is None or not repository.tables.is_rearranged(before.ref, pin.ref):
                return ManifestConflict(key, before.table_version, 0 if pin is None else pin.table_version)
            is_rearranged = True
        if is_rearranged:
            return _REARRANGED
    removed = _removed(repository, ready) if repository.cleanups.may_have_removed(ready.cleanups) else None
    if removed is not None:
        return StagedFilesRemoved(removed)
    for one in ready.staged:
        start = ref_before(one.move)
        if repository.tables.moved(start):
            lock.verify()
            pin = current.tables[one.move.table_key]
            if undo_late_version(repository, request.branch.ref, pin, start.branch, lock):
                return _LATE_VERSION_UNDONE
            return _drift(repository, request, one.move)
    return None


def _removed(repository: Repository, ready: _Ready[Result]) -> str | None:
    """The first thing that was staged for the write and that a cleanup has removed; None if all of it is there."""
    for version in (version for one in ready.staged for version in one.versions):
        absent = first_absent(repository.objects, version)
        if absent is not None:
            return absent
    schema = ready.prepared.schema
    if schema is None:
        return None
    if not repository.objects.has(layout.schema_object(schema.digest)):
        return layout.schema_object(schema.digest)
    return next((pin.location for pin in schema.added if not repository.tables.exists(pin.ref)), None)


def _drift(repository: Repository, request: WriteRequest, move: TableMove) -> TableDrift:
    """The error about a table that is ahead of the manifest, with the remedy that fits the pending writes."""
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
    ready: _Ready[Result],
    lock: CommitLock,
    job_lock: Held | None,
) -> Commit | InDoubt:
    """Phases A to D. An error before the sidecar is written means that nothing was written. After that, recovery
    can finish the write as well as this writer, so an error leaves it in doubt."""
    message = request.message if ready.prepared.message is None else ready.prepared.message
    parents = request.merged_parents
    wanted = request.graph_commit_id or str(ULID())
    draft = CommitDraft(request.writer, wanted, request.actor, message, parents, request.batch)
    moves = tuple(one.move for one in ready.staged)
    sidecar = Sidecar(operation_id, request.writer, request.branch.ref, draft, moves, schema=ready.prepared.schema)
    lock.verify()
    if job_lock is not None:
        job_lock.verify()
    if sidecar.moves:
        write_sidecar(repository.objects, sidecar)
    try:
        hit("write.after_sidecar")
        commit = _move_and_publish(repository, sidecar, ready.staged, lock)
        hit("write.after_publish")
    except Exception as error:  # noqa: BLE001  whatever it is, recovery may finish the write
        return InDoubt(sidecar, error)
    if sidecar.moves:
        _remove_sidecar(repository, sidecar)
    hit("write.after_sidecar_delete")
    return commit


def _move_and_publish(
    repository: Repository, sidecar: Sidecar, staged: list[_StagedMove], lock: CommitLock
) -> Commit:
    """Phases B and C: commit each table, then publish all of them at once."""
    pins = dict(sidecar.change.pins)
    for index, one in enumerate(staged):
        if index:
            hit("write.between_tables")
        move = one.move
        pins[move.after.table_key] = replace(move.after, checksum=_move(repository, one, lock).checksum)
    hit("write.after_tables")
    change = replace(sidecar.change, pins=pins)
    state = repository.manifest.publish(sidecar.branch, change, sidecar.expected, sidecar.draft, lock)
    wanted = sidecar.draft.graph_commit_id
    commit = next((c for c in state.commits if c.graph_commit_id == wanted), None)
    commit = commit or repository.manifest.archive.find(wanted)
    assert commit is not None  # noqa: S101  it is published, perhaps by recovery and long ago
    return commit


def _move(repository: Repository, one: _StagedMove, lock: CommitLock) -> TableRef:
    """Commit the versions of one table, the last of which is returned."""
    change, *folded = one.versions
    try:
        lock.verify()
        done = repository.tables.commit_staged(change)
        for version in folded:
            hit("write.before_fold")
            lock.verify()
            done = repository.tables.commit_staged(version)
            hit("write.after_fold")
    except TableMoved as error:
        move = one.move
        raise ManifestConflict(move.table_key, move.before.table_version, move.after.table_version) from error
    return done


def _remove_sidecar(repository: Repository, sidecar: Sidecar) -> None:
    """Phase D. The write is done; a sidecar that cannot be removed is left to the next write."""
    try:
        delete_sidecar(repository.objects, sidecar.key)
    except OmniError as error:
        warnings.warn(
            f"the write succeeded, but its sidecar {sidecar.key} could not be removed ({error}); "
            "the next write will",
            RuntimeWarning,
            stacklevel=2,
        )
