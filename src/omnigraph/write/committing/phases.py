"""The durable part of a write: sidecar, tables, manifest, sidecar again. The caller holds the branch's lock."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from ulid import ULID

from omnigraph.errors import ManifestConflict, OmniError, TableMoved
from omnigraph.failpoints import hit
from omnigraph.manifest.drafts import CommitDraft
from omnigraph.manifest.publisher import Following
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.recovery.sidecar import Sidecar, delete_sidecar, write_sidecar
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.storage.tables import TableRef
from omnigraph.storage.together import side_by_side
from omnigraph.write.changes import Ready, Result, StagedMove, WriteRequest
from omnigraph.write.committing.entry import Settled
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.committing.rebasing import remember


def commit(
    repository: Repository,
    request: WriteRequest,
    operation_id: str,
    ready: Ready[Result],
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
    known = lock.settled
    assert isinstance(known, Settled)  # noqa: S101  the change was revalidated under this lock
    following = _begin(repository, sidecar, known, lock)
    try:
        hit("write.after_sidecar")
        moved = _move_all(repository, ready.staged, lock)
        state = _publish(repository, sidecar, moved, lock, following)
        hit("write.after_publish")
    except Exception as error:  # noqa: BLE001  whatever it is, recovery may finish the write
        return InDoubt(sidecar, error)
    if state.version == known.state.version + 1:
        remember(repository, sidecar.branch.native, state.version, ready.prepared)
    if lock.defer(partial(_finish, repository, sidecar, state)) or _finish(repository, sidecar, state):
        lock.settled = known.followed_by(state, list(moved.values()))
    hit("write.after_sidecar_delete")
    return _commit_of(repository, state, sidecar)


def _begin(repository: Repository, sidecar: Sidecar, known: Settled, lock: CommitLock) -> Following:
    """Phase A: write the sidecar. What will be published is prepared beside it, and the write of the thread before
    comes to its end."""
    if not sidecar.moves:
        return Following(known.state)
    made: tuple[Any, Following] = side_by_side(
        repository.address,
        lambda: write_sidecar(repository.objects, sidecar),
        lambda: repository.manifest.follow(sidecar.branch, known.state, sidecar.change, sidecar.draft),
        *lock.take_deferred(),
    )
    return made[1]


def _move_all(repository: Repository, staged: list[StagedMove], lock: CommitLock) -> dict[str, TableRef]:
    """Phase B: commit each table; the version that it has then, by its key after the write. On an object store all
    tables move at the same time: a write of which some have moved is undone, whichever they are."""

    def move(index: int) -> TableRef:
        if index:
            hit("write.between_tables")
        return _move(repository, staged[index], lock)

    reached = side_by_side(repository.address, *(partial(move, index) for index in range(len(staged))))
    hit("write.after_tables")
    return {one.move.after.table_key: ref for one, ref in zip(staged, reached, strict=True)}


def _publish(
    repository: Repository,
    sidecar: Sidecar,
    moved: Mapping[str, TableRef],
    lock: CommitLock,
    following: Following,
) -> ManifestState:
    """Phase C: publish all tables at once. Meanwhile their new versions are opened, which the next write needs."""
    pins = dict(sidecar.change.pins)
    for key, ref in moved.items():
        pins[key] = replace(pins[key], checksum=ref.checksum)
    change = replace(sidecar.change, pins=pins)
    made: tuple[ManifestState, ...] = side_by_side(
        repository.address,
        lambda: repository.manifest.swap_in(
            sidecar.branch, change, sidecar.expected, sidecar.draft, lock, following
        ),
        *(partial(_open, repository, ref) for ref in moved.values()),
    )
    return made[0]


def _open(repository: Repository, ref: TableRef) -> None:
    with suppress(OmniError):  # it is opened when it is needed
        repository.tables.open(ref)


def _finish(repository: Repository, sidecar: Sidecar, state: ManifestState) -> bool:
    """Phase D: remove the sidecar and leave a hint about the newest version. Is the sidecar gone?"""
    _, is_removed = side_by_side(
        repository.address,
        lambda: repository.manifest.note_newest(sidecar.branch.native, state.version),
        lambda: not sidecar.moves or _is_removed(repository, sidecar),
    )
    return is_removed


def _commit_of(repository: Repository, state: ManifestState, sidecar: Sidecar) -> Commit:
    wanted = sidecar.draft.graph_commit_id
    found = next((c for c in state.commits if c.graph_commit_id == wanted), None)
    found = found or repository.manifest.archive.find(wanted)
    assert found is not None  # noqa: S101  it is published, perhaps by recovery and long ago
    return found


def _move(repository: Repository, one: StagedMove, lock: CommitLock) -> TableRef:
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


def _is_removed(repository: Repository, sidecar: Sidecar) -> bool:
    """Remove the sidecar. The write is done; a sidecar that cannot be removed is left to the next write."""
    try:
        delete_sidecar(repository.objects, sidecar.key)
    except OmniError as error:
        warnings.warn(
            f"the write succeeded, but its sidecar {sidecar.key} could not be removed ({error}); "
            "the next write will",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True
