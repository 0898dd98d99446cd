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

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Final

from ulid import ULID

from omnigraph.arguments import LONGEST_ACTOR, LONGEST_MESSAGE, optional_text
from omnigraph.errors import ManifestConflict, OmniError, SchemaChanged, StagedFilesRemoved
from omnigraph.failpoints import hit
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.policy.actions import Action
from omnigraph.recovery.heal import heal_branch
from omnigraph.storage.address import Scheme
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.write.base import Base
from omnigraph.write.changes import Fold as Fold
from omnigraph.write.changes import Prepare as Prepare
from omnigraph.write.changes import Prepared as Prepared
from omnigraph.write.changes import Ready
from omnigraph.write.changes import Result as Result
from omnigraph.write.changes import Stage as Stage
from omnigraph.write.changes import StagedTable as StagedTable
from omnigraph.write.changes import WriteRequest as WriteRequest
from omnigraph.write.changes import Written as Written
from omnigraph.write.committing.batches import Waiting
from omnigraph.write.committing.entry import enter, heal_dead, settle
from omnigraph.write.committing.outcomes import InDoubt, find_out, require_noted
from omnigraph.write.committing.phases import commit
from omnigraph.write.committing.rebasing import rebased
from omnigraph.write.committing.revalidation import (
    HEALED,
    LATE_VERSION_UNDONE,
    REARRANGED,
    find_conflict,
    require_unchanged,
)
from omnigraph.write.committing.staging import can_be_left, discard, fork, staged
from omnigraph.write.evaluator import validate
from omnigraph.write.reservations import require_new
from omnigraph.write.upkeep.folding import Folding

OPTIMISTIC_ATTEMPTS: Final = 2
"""How often a change is prepared without the lock before it is prepared under it."""

SCHEMA_ATTEMPTS: Final = 3
"""How often a write is compiled again because the schema has changed, before it is given up."""


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
    prepared once more under the lock; one that is prepared quickly, after the first time. On a branch where this
    process was too late before, a quick change is prepared under the lock to begin with. A batch of a stream that
    is committed already raises BatchDone. A bulk job passes its ``job_lock``: only while the job holds it are its
    staged files safe from `recovery.jobs.reclaim`.
    """
    repository.require_writable()
    optional_text("actor", request.actor, LONGEST_ACTOR)
    optional_text("message", request.message, LONGEST_MESSAGE)
    folding = Folding(repository.tables, repository.settings)
    try:
        ready, end = _prepare_and_commit(repository, request, prepare, folding, job_lock)
        folding.discard_unused()
    finally:
        folding.end()
    made = find_out(repository, end) if isinstance(end, InDoubt) else end
    files = (one.table.files for one in ready.staged)
    return Written(made, ready.prepared.result, frozenset().union(*files))


def _prepare_and_commit(
    repository: Repository,
    request: WriteRequest,
    prepare: Prepare[Result],
    folding: Folding,
    job_lock: Held | None,
) -> tuple[Ready[Result], Commit | InDoubt | None]:
    """The change that was prepared last, and its commit; None if it changes nothing. Holds no lock afterwards."""
    operation_id = str(ULID())
    name, locks = request.branch.name, repository.locks
    entry = request.entry
    cleanups = None if entry is None else entry.cleanups
    is_first_locked = request.is_quick and locks.is_contended(name)
    for _ in range(0 if is_first_locked else OPTIMISTIC_ATTEMPTS):
        with locks.arriving(name) if request.is_quick else nullcontext() as arrival:
            entry = enter(repository, request.branch) if entry is None else entry
            if heal_dead(repository, entry):
                entry = enter(repository, request.branch)
            cleanups = entry.cleanups if cleanups is None else cleanups
            base = Base(repository, request.branch, entry.snapshot)
            entry = None
            folding.begin()
            ready = _checked(base, request, prepare, cleanups, None)
            if ready.prepared.is_empty:
                _finish_empty(repository, request, None)
                return ready, None
            if arrival is None or not arrival.is_crowded or not can_be_left(ready, request):
                with locks.staging() if request.is_quick else nullcontext():
                    ready = staged(ready, request, folding.fold, operation_id)
            hit("write.after_stage")
            mine = Waiting(request, operation_id, ready)
            with locks.turn_or_answer(name, mine if job_lock is None else None, arrival) as lock:
                if lock is None:
                    ready = mine.ready
                    if mine.end is not None:
                        return ready, mine.end
                    operation_id = str(ULID())
                    continue
                hit("write.after_lock")
                ready, conflict = _revalidated(ready, request, folding, operation_id, lock)
                if conflict is None:
                    return _commit(repository, Waiting(request, operation_id, ready), lock, job_lock, folding)
                if not _is_retried(ready, conflict):
                    discard(ready)
                    folding.begin()
                    folding.discard_unused()
                    raise conflict
                if isinstance(conflict, StagedFilesRemoved):
                    folding.forget()
                if request.is_quick:
                    locks.note_contention(name)
                    discard(ready)
                    return _prepare_under_lock(
                        repository, request, prepare, folding, lock, job_lock, operation_id, cleanups
                    )
        discard(ready)
    with locks.turn(name) as lock:
        return _prepare_under_lock(repository, request, prepare, folding, lock, job_lock, operation_id, cleanups)


def _revalidated(
    ready: Ready[Result], request: WriteRequest, folding: Folding, operation_id: str, lock: CommitLock
) -> tuple[Ready[Result], OmniError | None]:
    """A change under the lock, on top of the newest state if it is the same there, and what speaks against it."""
    conflict = find_conflict(request, ready, lock)
    if not isinstance(conflict, ManifestConflict):
        return ready, conflict
    state, _, _ = settle(ready.base.repository, request.branch, lock)
    moved = rebased(ready, state, folding, operation_id)
    return (ready, conflict) if moved is None else (moved, find_conflict(request, moved, lock))


def _commit(
    repository: Repository, own: Waiting, lock: CommitLock, job_lock: Held | None, folding: Folding
) -> tuple[Ready[Any], Commit | InDoubt]:
    """Commit a change, and those of threads that wait with theirs; the change with the files that it has then."""
    end = commit(repository, own, lock, job_lock, folding)
    return own.ready, end


def _is_retried(ready: Ready[Result], conflict: OmniError) -> bool:
    """Is a change prepared again because of a conflict, instead of being refused?"""
    if isinstance(conflict, ManifestConflict):
        return ready.prepared.repeatable
    is_harmless = any(conflict is harmless for harmless in (LATE_VERSION_UNDONE, REARRANGED, HEALED))
    return is_harmless or isinstance(conflict, SchemaChanged | StagedFilesRemoved)


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
) -> tuple[Ready[Result], Commit | InDoubt | None]:
    """Prepare and commit while no other writer can move the branch."""
    while True:
        state, _, _ = settle(repository, request.branch, lock)
        cleanups = repository.cleanups.latest if cleanups is None else cleanups
        base = Base(repository, request.branch, repository.snapshot(request.branch, state))
        folding.begin()
        ready = _checked(base, request, prepare, cleanups, lock)
        if ready.prepared.is_empty:
            _finish_empty(repository, request, lock)
            return ready, None
        if not can_be_left(ready, request):
            is_local = repository.address.scheme is Scheme.LOCAL
            fold = folding.fold if request.is_quick and is_local else folding.reuse
            ready = staged(ready, request, fold, operation_id)
        conflict = find_conflict(request, ready, lock)
        if conflict is None:
            return _commit(repository, Waiting(request, operation_id, ready), lock, job_lock, folding)
        discard(ready)
        if conflict is not LATE_VERSION_UNDONE:
            raise conflict


def _checked(
    base: Base, request: WriteRequest, prepare: Prepare[Result], cleanups: int, lock: CommitLock | None
) -> Ready[Result]:
    """Prepare and validate. Nothing is written, except that the branch gets its own trees of the tables."""
    require_new(base.repository, request.branch, request.graph_commit_id, base.snapshot, base.snapshot)
    require_unchanged(request, base.snapshot)
    prepared = prepare(base)
    guard = base.repository.guard
    if guard is not None:
        guard.require_changes(request.writer, request.actor, request.branch.name, prepared.tables)
        if prepared.schema is not None:
            guard.require(request.actor, Action.SCHEMA_APPLY, None, request.branch.name)
    optional_text("message", prepared.message, LONGEST_MESSAGE)
    if not prepared.is_empty:
        validate(prepared.delta, base, prepared.limit)
        fork(base, prepared.tables, lock)
    return Ready(base, prepared, [], cleanups)


def _finish_empty(repository: Repository, request: WriteRequest, lock: CommitLock | None) -> None:
    """There is nothing to change: a stream's batch without rows is marked as done, under the lock."""
    if request.batch is None:
        return
    with repository.locks.commit(request.branch.name) if lock is None else nullcontext(lock) as held:
        heal_branch(repository, request.branch.name, held)
        require_unchanged(request, repository.snapshot(request.branch))
        try:
            repository.manifest.note_batch(request.branch.ref, request.batch, held)
        except Exception as error:  # noqa: BLE001  whatever it is, the mark may be there
            require_noted(repository, request.branch, request.batch, error)
