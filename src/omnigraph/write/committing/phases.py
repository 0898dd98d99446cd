"""The durable part of writes: sidecars, tables, manifest, sidecars again. The caller holds the branch's lock."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

from omnigraph.errors import ManifestConflict, OmniError, TableMoved
from omnigraph.failpoints import hit
from omnigraph.manifest.publisher import Following
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.recovery.sidecar import Sidecar, delete_sidecar, write_sidecar
from omnigraph.storage.address import Scheme
from omnigraph.storage.locks import CommitLock, Held
from omnigraph.storage.tables import NextVersion, TableRef
from omnigraph.storage.together import at_once, side_by_side
from omnigraph.write.changes import StagedMove
from omnigraph.write.committing.batches import Planned, Waiting, foreseen, plan, with_checksums
from omnigraph.write.committing.entry import Settled
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.committing.rebasing import remember


def commit(repository: Repository, own: Waiting, lock: CommitLock, job_lock: Held | None) -> Commit | InDoubt:
    """Phases A to D of a staged change, and of those of other threads that can be committed right after it.

    An error before the sidecar is written means that nothing was written. After that, recovery can finish the
    write as well as this writer, so an error leaves it in doubt.
    """
    lock.verify()
    if job_lock is not None:
        job_lock.verify()
    known = lock.settled
    assert isinstance(known, Settled)  # noqa: S101  the change was revalidated under this lock
    planned = plan(repository, own, known, lock)
    try:
        _commit_all(repository, planned, known, lock)
    finally:
        for each in planned[1:]:
            lock.answer(each.waiting)
    assert own.end is not None  # noqa: S101  the first one is committed or in doubt
    return own.end


def _commit_all(repository: Repository, planned: list[Planned], known: Settled, lock: CommitLock) -> None:
    """Commit changes one after the other, as far as that succeeds. The other sidecars are removed again."""
    if repository.address.scheme is Scheme.LOCAL and len(planned) > 1:
        planned = foreseen(repository, planned)
    begun = _begin(repository, planned, known, lock)
    published: list[Sidecar] = []
    is_certain = True
    for each, prepared in zip(planned, begun, strict=False):
        following = prepared if known.state is each.before else Following(known.state)
        try:
            hit("write.between_writes" if published else "write.after_sidecar")
            moved = _move_all(repository, each, lock)
            is_last = each is planned[len(begun) - 1]
            state = _publish(repository, each.sidecar, moved, lock, following, is_last)
            hit("write.after_publish")
        except Exception as error:  # noqa: BLE001  whatever it is, recovery may finish the write
            each.waiting.end = InDoubt(each.sidecar, error)
            is_certain = False
            break
        published.append(each.sidecar)
        each.waiting.end = _commit_of(repository, state, each.sidecar)
        is_next = state.version == known.state.version + 1
        if is_next:
            remember(repository, each.sidecar.branch.native, state.version, each.waiting.ready.prepared)
        known = known.followed_by(state, list(moved.values()))
        if len(published) > 1:
            lock.answer(each.waiting)
        if not is_next or (following.successor is not None and following.successor is not state):
            break  # another process has published it: this one does not hold the lock any more
    lock.commits += len(published)
    lock.settled = None
    untouched = [each.sidecar for each in planned[: len(begun)] if each.waiting.end is None]
    is_certain = _take_back(repository, untouched) and is_certain
    finish = partial(_finish, repository, published, known.state)
    if published and (lock.defer(finish) or finish()) and is_certain:
        lock.settled = known
    hit("write.after_sidecar_delete")


def _begin(repository: Repository, planned: list[Planned], known: Settled, lock: CommitLock) -> list[Following]:
    """Phase A: write the sidecars of all changes; as many of them as have one can go on.

    What will be published is prepared beside them, and the writes of the thread before come to their end.
    """
    sidecars = [each.sidecar for each in planned]
    if not sidecars[0].moves:
        return [Following(known.state)]
    is_remote = repository.address.scheme is Scheme.S3
    run = at_once if len(planned) > 1 else partial(side_by_side, repository.address)
    try:
        made = run(
            *(partial(_failure, repository, sidecar) for sidecar in sidecars),
            *(
                partial(
                    repository.manifest.follow,
                    each.sidecar.branch,
                    each.before,
                    each.after if is_remote or each.versions else None,
                )
                for each in planned
            ),
            *lock.take_deferred(),
        )
    except Exception:
        _take_back(repository, sidecars[1:])
        raise
    failures: tuple[Exception | None, ...] = made[: len(planned)]
    whole = next((place for place, failure in enumerate(failures) if failure is not None), len(planned))
    _take_back(repository, sidecars[max(1, whole) :])
    if failures[0] is not None:
        raise failures[0]
    return list(made[len(planned) : len(planned) + whole])


def _failure(repository: Repository, sidecar: Sidecar) -> Exception | None:
    """Write a sidecar; the error if that fails."""
    try:
        write_sidecar(repository.objects, sidecar)
    except Exception as error:  # noqa: BLE001  it is raised, or the write is prepared again
        return error
    return None


def _take_back(repository: Repository, sidecars: list[Sidecar]) -> bool:
    """Remove the sidecars of writes that have moved nothing; are all of them gone? One that stays is undone by
    recovery."""

    def remove(sidecar: Sidecar) -> bool:
        try:
            delete_sidecar(repository.objects, sidecar.key)
        except OmniError:
            return False
        return True

    return all(side_by_side(repository.address, *(partial(remove, sidecar) for sidecar in sidecars)))


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


def _finish(repository: Repository, sidecars: list[Sidecar], state: ManifestState) -> bool:
    """Phase D: remove the sidecars and leave a hint about the newest version. Are the sidecars gone?"""
    _, *removed = side_by_side(
        repository.address,
        lambda: repository.manifest.note_newest(sidecars[0].branch.native, state.version),
        *(partial(_is_removed, repository, sidecar) for sidecar in sidecars if sidecar.moves),
    )
    return all(removed)


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
