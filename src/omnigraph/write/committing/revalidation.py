"""What speaks against committing a staged change, found out under the branch's lock."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import (
    ConflictError,
    ManifestConflict,
    OmniError,
    PreconditionFailed,
    SchemaChanged,
    StagedFilesRemoved,
    TableDrift,
)
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.streams import require_next
from omnigraph.recovery.classify import ref_before
from omnigraph.recovery.late import undo_late_version
from omnigraph.recovery.sidecar import is_pending
from omnigraph.storage import layout
from omnigraph.storage.files.presence import first_absent
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef
from omnigraph.write.changes import Ready, Result, WriteRequest
from omnigraph.write.committing.entry import settle
from omnigraph.write.evaluator import read_set
from omnigraph.write.reservations import require_new

LATE_VERSION_UNDONE: Final = ConflictError("a late request of a dead writer was undone; the write is retried")
"""A reason to prepare any change again, even one that is not repeatable: nothing that it read has changed."""

REARRANGED: Final = ConflictError("a table was compacted or indexed meanwhile; the write is retried")
"""Another such reason."""

HEALED: Final = ConflictError("an interrupted write was resolved; the write is retried")
"""Another such reason: the write comes after the one that was resolved."""


def require_unchanged(request: WriteRequest, snapshot: Snapshot) -> None:
    """What the caller relies on: the branch is at ``if_commit``, it has the schema that the change was compiled
    for, and the stream's ``batch`` comes next."""
    if request.batch is not None:
        require_next(snapshot.streams, request.branch.name, request.branch.native, request.batch)
    if request.compiled_for is not None and request.compiled_for.schema_digest != snapshot.schema_digest:
        raise SchemaChanged(request.branch.name)
    actual = None if snapshot.commit is None else snapshot.commit.graph_commit_id
    if request.if_commit is not None and request.if_commit != actual:
        raise PreconditionFailed(request.branch.name, request.if_commit, actual)


def find_conflict(request: WriteRequest, ready: Ready[Result], lock: CommitLock) -> OmniError | None:
    """Under the lock: what speaks against committing a staged change."""
    try:
        return _revalidate(request, ready, lock)
    except OmniError as error:
        return error


def _revalidate(request: WriteRequest, ready: Ready[Result], lock: CommitLock) -> OmniError | None:
    """Under the lock: the conflict, if a table that the change depends on has moved since it was captured.

    A writer that died in between has left a sidecar, which is healed first and may be the cause of the conflict.
    """
    base, prepared = ready.base, ready.prepared
    repository = base.repository
    starts = _starts(ready)
    state, moved, is_healed = settle(repository, request.branch, lock, list(starts.values()))
    current = repository.snapshot(request.branch, state)
    require_new(repository, request.branch, request.graph_commit_id, current, base.snapshot)
    require_unchanged(request, current)
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
                if is_healed:
                    return HEALED
                return ManifestConflict(key, before.table_version, 0 if pin is None else pin.table_version)
            is_rearranged = True
        if is_rearranged:
            return REARRANGED
    removed = _removed(repository, ready) if repository.cleanups.may_have_removed(ready.cleanups) else None
    if removed is not None:
        return StagedFilesRemoved(removed)
    for key, start in starts.items():
        if start in moved:
            lock.verify()
            if undo_late_version(repository, request.branch.ref, current.tables[key], start.branch, lock):
                return LATE_VERSION_UNDONE
            return _drift(repository, request, key, start.version)
    return None


def _starts(ready: Ready[Result]) -> dict[str, TableRef]:
    """The version of each table that a change is put on top of, in the tree that it writes to."""
    if ready.is_staged:
        return {one.move.table_key: ref_before(one.move) for one in ready.staged}
    return {key: ready.base.ref(key) for key in ready.prepared.tables}


def _removed(repository: Repository, ready: Ready[Result]) -> str | None:
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


def _drift(repository: Repository, request: WriteRequest, table_key: str, version: int) -> TableDrift:
    """The error about a table that is ahead of the manifest, with the remedy that fits the pending writes."""
    match is_pending(repository.objects, request.branch.ref):
        case True:
            reason = "an interrupted write is still being recovered; retry, or reopen the graph"
        case False:
            reason = "nothing of OmniGraph's did that; run `omnigraph repair`"
        case None:
            reason = "the pending writes cannot be listed; retry when the store answers, or run `omnigraph repair`"
    return TableDrift(table_key, version, reason)
