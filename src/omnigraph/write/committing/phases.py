"""The durable part of writes: sidecars, tables, manifest, sidecars again. The caller holds the branch's lock."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial

from omnigraph.errors import ManifestConflict, OmniError, TableMoved
from omnigraph.failpoints import hit
from omnigraph.manifest.publisher import Following
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.recovery.sidecar import Sidecar, delete_sidecars, write_sidecars
from omnigraph.storage.address import Scheme
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.storage.tables import NextVersion, TableRef
from omnigraph.storage.together import at_once, side_by_side
from omnigraph.write.changes import StagedMove
from omnigraph.write.committing.batches import Planned, Waiting, foreseen, plan, with_checksums
from omnigraph.write.committing.entry import Settled
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.committing.rebasing import remember
from omnigraph.write.upkeep.folding import Folding


def commit(
    repository: Repository, own: Waiting, lock: CommitLock, job_lock: Held | None, folding: Folding
) -> Commit | InDoubt:
    """Phases A to D of a staged change, and of those of other threads that can be committed right after it.

    An error before the sidecar is written means that nothing was written. After that, recovery can finish the
    write as well as this writer, so an error leaves it in doubt.
    """
    lock.verify()
    if job_lock is not None:
        job_lock.verify()
    known = lock.settled
    assert isinstance(known, Settled)  # noqa: S101  the change was revalidated under this lock
    planned = plan(repository, own, known, lock, folding)
    try:
        _commit_all(repository, planned, known, lock)
    finally:
        for each in planned[1:]:
            lock.answer(each.waiting)
    assert own.end is not None  # noqa: S101  the first one is committed or in doubt
    return own.end


def _commit_all(repository: Repository, planned: list[Planned], known: Settled, lock: CommitLock) -> None:
    """Commit changes one after the other, as far as that succeeds. Those behind one that fails are not begun.

    Threads whose changes are committed on a disk go on together when the last one is: they then share what they
    read of the newest state. On an object store each goes on at once, because the next one takes longer.
    """
    is_local = repository.address.scheme is Scheme.LOCAL
    if is_local and len(planned) > 1:
        planned = foreseen(repository, planned)
    planned, begun = _begin(repository, planned, known, lock)
    published: list[Sidecar] = []
    doubtful: Sidecar | None = None
    for each, prepared in zip(planned, begun, strict=True):
        following = prepared if known.state is each.before else Following(known.state)
        try:
            hit("write.between_writes" if published else "write.after_sidecar")
            moved = _move_all(repository, each, lock)
            state = _publish(repository, each.sidecar, moved, lock, following, each is planned[-1])
            hit("write.after_publish")
        except Exception as error:  # noqa: BLE001  whatever it is, recovery may finish the write
            each.waiting.end = InDoubt(each.sidecar, error)
            doubtful = each.sidecar
            break
        published.append(each.sidecar)
        each.waiting.end = _commit_of(repository, state, each.sidecar)
        is_next = state.version == known.state.version + 1
        if is_next:
            remember(repository, each.sidecar.branch.native, state.version, each.waiting.ready.prepared)
        known = known.followed_by(state, list(moved.values()))
        if len(published) > 1 and not is_local:
            lock.answer(each.waiting)
        if not is_next or (following.successor is not None and following.successor is not state):
            break  # another process has published it: this one does not hold the lock any more
    if len(published) < len(planned):
        _drop(planned[len(published) :], begun[len(published) :])
    lock.commits += len(published)
    lock.settled = None
    if doubtful is None:
        finish = partial(_finish, repository, published[0], known.state)
        if lock.defer(finish) or finish():
            lock.settled = known
    elif doubtful.row is not None:
        _leave(repository, doubtful, known.state)
    hit("write.after_sidecar_delete")


def _begin(
    repository: Repository, planned: list[Planned], known: Settled, lock: CommitLock
) -> tuple[list[Planned], list[Following]]:
    """Phase A: write the sidecars of all changes. What will be published is prepared beside them, and the writes
    of the thread before come to their end."""
    sidecars = [each.sidecar for each in planned]
    if not sidecars[0].moves:
        return planned, [Following(known.state)]
    try:
        if planned[0].versions:
            return _begin_ahead(repository, planned, lock)
        follow, is_remote = repository.manifest.follow, repository.address.scheme is Scheme.S3
        _, *made = side_by_side(
            repository.address,
            partial(write_sidecars, repository.objects, sidecars),
            *(
                partial(follow, each.sidecar.branch, each.before, each.after if is_remote else None)
                for each in planned
            ),
            *lock.take_deferred(),
        )
        return planned, made[: len(planned)]
    except Exception:
        with suppress(OmniError):  # no table has moved: recovery undoes what stays
            delete_sidecars(repository.objects, sidecars[0].key)
        raise


def _begin_ahead(
    repository: Repository, planned: list[Planned], lock: CommitLock
) -> tuple[list[Planned], list[Following]]:
    """Phase A on a disk, of changes whose versions are known, at least those of the first: the files of these
    versions, of the tables and of the manifest, are on the disk before the first of them gets its name."""
    states = [(each.before, each.after) for each in planned if each.versions and each.after is not None]
    versions = [version for each in planned for version in each.versions]
    _, ahead, following, *_ = at_once(
        partial(write_sidecars, repository.objects, [each.sidecar for each in planned]),
        partial(repository.tables.write_ahead, versions),
        partial(repository.manifest.follow_each, planned[0].sidecar.branch, states),
        *lock.take_deferred(),
    )
    waiting = iter(ahead)
    written = [replace(each, versions=tuple(next(waiting) for _ in each.versions)) for each in planned]
    return written, [*following, *(Following(each.before) for each in planned[len(states) :])]


def _drop(planned: list[Planned], begun: list[Following]) -> None:
    """Remove the files of versions that were not put in their places."""
    versions = [version for each in planned for version in each.versions]
    versions += [each.version for each in begun if each.version is not None]
    for version in versions:
        if version.ahead is not None:
            version.ahead.drop()


def _leave(repository: Repository, doubtful: Sidecar, state: ManifestState) -> None:
    """Leave the sidecar of a write in doubt alone in the object of its row. The writes before it are published,
    those behind it have moved nothing and are prepared again; recovery resolves whatever stays of them."""
    with suppress(OmniError):
        write_sidecars(repository.objects, [doubtful])
    repository.manifest.note_newest(doubtful.branch.native, state.version)


def _move_all(repository: Repository, planned: Planned, lock: CommitLock) -> dict[str, TableRef]:
    """Phase B: commit each table; the version that it has then, by its key after the write. On an object store all
    tables move at the same time: a write of which some have moved is undone, whichever they are."""

    staged = planned.waiting.ready.staged

    def move(index: int) -> TableRef:
        if index:
            hit("write.between_tables")
        known = planned.versions[index] if planned.versions else None
        return _move(repository, staged[index], known, lock)

    reached = side_by_side(repository.address, *(partial(move, index) for index in range(len(staged))))
    hit("write.after_tables")
    return {one.move.after.table_key: ref for one, ref in zip(staged, reached, strict=True)}


def _publish(
    repository: Repository,
    sidecar: Sidecar,
    moved: Mapping[str, TableRef],
    lock: CommitLock,
    following: Following,
    is_last: bool,
) -> ManifestState:
    """Phase C: publish all tables at once. Meanwhile their new versions are opened, which the next write needs. On
    a disk that takes as long as the publish, and is done behind the last write of a row only."""
    is_opened = is_last or repository.address.scheme is Scheme.S3
    change = with_checksums(sidecar, list(moved.values()))
    made: tuple[ManifestState, ...] = side_by_side(
        repository.address,
        lambda: repository.manifest.swap_in(
            sidecar.branch, change, sidecar.expected, sidecar.draft, lock, following
        ),
        *(partial(_open, repository, ref) for ref in moved.values() if is_opened),
    )
    return made[0]


def _open(repository: Repository, ref: TableRef) -> None:
    with suppress(OmniError):  # it is opened when it is needed
        repository.tables.open(ref)


def _finish(repository: Repository, sidecar: Sidecar, state: ManifestState) -> bool:
    """Phase D: remove the sidecars of a row and leave a hint about the newest version. Are the sidecars gone?"""
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


def _move(repository: Repository, one: StagedMove, known: NextVersion | None, lock: CommitLock) -> TableRef:
    """Commit the versions of one table, the last of which is returned. The first may be known already."""
    change, *folded = one.versions
    try:
        lock.verify()
        done = repository.tables.commit_staged(change, known)
        for version in folded:
            hit("write.before_fold")
            lock.verify()
            done = repository.tables.commit_staged(version)
            hit("write.after_fold")
    except TableMoved as error:
        lock.verify()  # a writer that has lost its lock is told that, and not what the next one has moved
        move = one.move
        raise ManifestConflict(move.table_key, move.before.table_version, move.after.table_version) from error
    return done


def _is_removed(repository: Repository, sidecar: Sidecar) -> bool:
    """Remove the sidecar. The write is done; a sidecar that cannot be removed is left to the next write."""
    try:
        delete_sidecars(repository.objects, sidecar.key)
    except OmniError as error:
        warnings.warn(
            f"the write succeeded, but its sidecar {sidecar.key} could not be removed ({error}); "
            "the next write will",
            RuntimeWarning,
            stacklevel=2,
        )
        return False
    return True
