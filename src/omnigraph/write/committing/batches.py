"""Commits of several threads in a row: who holds a branch's lock commits the changes that wait for it as well.

Each change keeps its own commit, sidecar and versions. They are planned one on top of the other: the state after
the first is known before it is published, so the second can be put there. Their sidecars are written as one object
before the first table moves; after that one write is published after the other. A write begins to move
tables only when the one before it is published, so at most one of them can be interrupted in the middle, and those
behind it have changed nothing.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ulid import ULID

from omnigraph.errors import OmniError
from omnigraph.manifest.drafts import Change, CommitDraft
from omnigraph.manifest.publisher import COMMIT_TAIL
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.recovery.sidecar import Sidecar
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.stage.changes import Staged
from omnigraph.storage.tables import NextVersion, TableRef
from omnigraph.storage.together import at_once
from omnigraph.write.base import Base
from omnigraph.write.changes import Fold, Ready, WriteRequest
from omnigraph.write.committing.entry import Settled, moved_tables
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.committing.rebasing import Footprint, can_follow, moved_onto, only_adds
from omnigraph.write.committing.staging import are_new, stage_together, staged
from omnigraph.write.upkeep.folding import Folding

MOST_TOGETHER: Final = COMMIT_TAIL
"""How many changes are committed in a row before others are looked at: at most as many as the manifest has room
for, because all of their states are foreseen."""


@dataclass(slots=True, eq=False)
class Waiting:
    """A staged change whose thread waits for the branch's lock, and its commit if another thread took it along.

    Without an ``end`` it has to be prepared again; nothing of it was written.
    """

    request: WriteRequest
    operation_id: str
    ready: Ready[Any]
    end: Commit | InDoubt | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A change that is committed after others: its sidecar, the state before it, and the one after it unless
    commits are archived in between."""

    waiting: Waiting
    sidecar: Sidecar
    before: ManifestState
    after: ManifestState | None
    is_leaving: bool = False
    """Is the oldest commit archived already, so that the state after it leaves it out?"""
    versions: tuple[NextVersion, ...] = ()
    """The versions of its tables, where they are known before they are made."""


def plan(
    repository: Repository, own: Waiting, known: Settled, lock: CommitLock, folding: Folding
) -> list[Planned]:
    """The thread's own change, and those of other threads that can be committed right after it. These are taken
    out of the line, and have to be answered. What is not staged yet is staged here."""
    row = [own]
    try:
        row.extend(other for other in _joining(repository, own, known, lock) if lock.accept(other))
        leaving, fold = _staged_beside(repository, row, known, folding)
        planned = list(_planned(repository, row, known, leaving, fold))
    except BaseException:
        for other in row[1:]:
            lock.answer(other)
        raise
    for other in row[len(planned) :]:
        lock.answer(other)
    return planned


def _joining(repository: Repository, own: Waiting, known: Settled, lock: CommitLock) -> list[Waiting]:
    """The changes of other threads that would be the same after the thread's own and after each other."""
    prepared = own.ready.prepared
    if not prepared.tables or prepared.stages or prepared.schema is not None:
        return []
    if not own.ready.is_staged:
        lock.await_offers(MOST_TOGETHER - 1)
    found: list[Waiting] = []
    before = Footprint().and_then(prepared.delta)
    taken = {own.request.graph_commit_id}
    for other in _unmoved(repository, own, known, lock):
        if len(found) == MOST_TOGETHER - 1:
            break
        has_folded = any(len(one.versions) > 1 for one in other.ready.staged)
        if has_folded or not _may_join(other, own, known.state, taken):
            continue
        if can_follow(other.ready, known.state, before):
            found.append(other)
            before = before.and_then(other.ready.prepared.delta)
            taken.add(other.request.graph_commit_id)
    left = [other for other in found if not other.ready.is_staged]
    is_new = are_new(_base(repository, own, known), [other.ready for other in left])
    old = [other for other, new in zip(left, is_new, strict=True) if not new]
    return [other for other in found if other not in old]


def _base(repository: Repository, own: Waiting, known: Settled) -> Base:
    """The newest state of the branch, as a base to stage on."""
    branch = own.request.branch
    return Base(repository, branch, repository.snapshot(branch, known.state))


def _staged_beside(
    repository: Repository, row: Sequence[Waiting], known: Settled, folding: Folding
) -> tuple[int, Fold]:
    """Stage what is not staged of a row. Beside that archive commits that it leaves no room for, and write small
    files again that the last change may fold. How many commits were archived, and what to fold.

    A change that is alone folds as any other does, though under the lock: on a branch of several processes most
    writes take the lock first, and if they did not fold, its tables would fall apart into files.
    """
    own = row[0]
    if len(row) == 1 and not own.ready.is_staged:
        own.ready = replace(own.ready, base=_base(repository, own, known))
        own.ready = staged(own.ready, own.request, folding.fold, own.operation_id)
        return 0, _nothing
    make_room = partial(repository.manifest.make_room, known.state, len(row))
    if own.ready.is_staged or not all(only_adds(each.ready) for each in row):
        _stage(repository, row, known)
        return make_room(), _nothing
    added = {key for each in row for key in each.ready.prepared.tables}
    refs = [known.state.tables[key].ref for key in sorted(added)]
    _, leaving, fold = at_once(partial(_stage, repository, row, known), make_room, partial(folding.beside, refs))
    return leaving, fold if all(only_adds(each.ready) for each in row) else _nothing


def _stage(repository: Repository, row: Sequence[Waiting], known: Settled) -> None:
    """Stage those changes of a row that are not staged yet."""
    own = row[0]
    left = [each for each in row if not each.ready.is_staged]
    if not left:
        return
    base = _base(repository, own, known)
    if left[0] is own and not are_new(base, [own.ready])[0]:
        own.ready = staged(replace(own.ready, base=base), own.request, _nothing, own.operation_id)
        left = left[1:]
    made = stage_together(base, [(each.ready, each.operation_id) for each in left])
    for each, ready in zip(left, made, strict=True):
        each.ready = ready


def _planned(
    repository: Repository, row: Sequence[Waiting], known: Settled, leaving: int, fold: Fold
) -> Iterator[Planned]:
    """The changes of a row, each on top of the state that the one before it will make. Those behind one of which
    that is not known are left out. Small files are folded behind the last one."""
    state: ManifestState | None = known.state
    for place, each in enumerate(row):
        if state is None:
            return
        if place:
            moved = moved_onto(each.ready, state, fold if place == len(row) - 1 else _nothing, each.operation_id)
            if moved is None:
                return
            each.ready = moved
        planned = _foreseen_by(repository, each, state, place < leaving)
        if len(row) > 1:
            planned = replace(planned, sidecar=replace(planned.sidecar, row=row[0].operation_id))
        yield planned
        state = planned.after


def _nothing(_ref: TableRef, _change: Staged, _operation: str) -> tuple[Staged, ...]:
    return ()


def _foreseen_by(repository: Repository, waiting: Waiting, before: ManifestState, is_leaving: bool) -> Planned:
    request, ready = waiting.request, waiting.ready
    message = request.message if ready.prepared.message is None else ready.prepared.message
    wanted = request.graph_commit_id or str(ULID())
    draft = CommitDraft(request.writer, wanted, request.actor, message, request.merged_parents, request.batch)
    moves = tuple(one.move for one in ready.staged)
    schema = ready.prepared.schema
    sidecar = Sidecar(waiting.operation_id, request.writer, request.branch.ref, draft, moves, schema=schema)
    after = repository.manifest.foresee(sidecar.branch, before, sidecar.change, draft, is_leaving)
    return Planned(waiting, sidecar, before, after, is_leaving)


def foreseen(repository: Repository, planned: list[Planned]) -> list[Planned]:
    """The same changes on a disk with the versions that their tables will have, as far as those can be known. The
    checksums of these are part of the states, which are published as they are here."""
    found: list[Planned] = []
    newest: dict[tuple[str, str | None], NextVersion] = {}
    for each in planned:
        before = found[-1].after if found else each.before
        if before is None:
            break
        versions: list[NextVersion] = []
        for one in each.waiting.ready.staged:
            place = one.move.after.location, one.move.after.table_branch
            made = None
            if len(one.versions) == 1:
                made = repository.tables.foresee(one.table.staged, newest.get(place))
            if made is None:
                return found + planned[len(found) :]
            newest[place] = made
            versions.append(made)
        change = with_checksums(each.sidecar, [version.ref for version in versions])
        after = repository.manifest.foresee(
            each.sidecar.branch, before, change, each.sidecar.draft, each.is_leaving
        )
        found.append(replace(each, before=before, after=after, versions=tuple(versions)))
    return found + planned[len(found) :]


def with_checksums(sidecar: Sidecar, reached: Sequence[TableRef]) -> Change:
    """The change of the manifest that publishes a write, with the checksums of the versions that it has made."""
    pins = dict(sidecar.change.pins)
    for move, ref in zip(sidecar.moves, reached, strict=True):
        pins[move.after.table_key] = replace(pins[move.after.table_key], checksum=ref.checksum)
    return replace(sidecar.change, pins=pins)


def _may_join(other: Waiting, own: Waiting, state: ManifestState, taken: Container[str | None]) -> bool:
    """Does what the caller of another write relies on still hold after those before it, whose ids are taken?"""
    request, captured = other.request, other.ready.base.snapshot
    if request.branch.ref != own.request.branch.ref or request.if_commit is not None or request.batch is not None:
        return False
    if request.compiled_for is not None and request.compiled_for.schema_digest != state.schema:
        return False
    if request.graph_commit_id is None:
        return True
    recent = {commit.graph_commit_id for commit in state.commits}
    if request.graph_commit_id in taken:
        return False
    return request.graph_commit_id not in recent and captured.graph_commit_id in recent


def _unmoved(repository: Repository, own: Waiting, known: Settled, lock: CommitLock) -> Iterator[Waiting]:
    """The changes that wait, if their tables are where the newest state has them and their files are there."""
    waiting = [other for other in lock.offers() if isinstance(other, Waiting)]
    places = _places(own.ready) | known.own
    unknown = {
        pin.ref
        for other in waiting
        for key in other.ready.prepared.tables
        if (pin := known.state.tables.get(key)) is not None and (pin.location, pin.table_branch) not in places
    }
    try:
        moved = {(ref.location, ref.branch) for ref in moved_tables(repository, list(unknown))}
    except OmniError:  # each of them will find out for itself
        return
    for other in waiting:
        is_there = not (other.ready.staged and repository.cleanups.may_have_removed(other.ready.cleanups))
        if is_there and moved.isdisjoint(_places(other.ready)):
            yield other


def _places(ready: Ready[Any]) -> set[tuple[str, str | None]]:
    """Where the tables lie that a change moves, by location and native branch."""
    if ready.is_staged:
        return {(one.move.after.location, one.move.after.table_branch) for one in ready.staged}
    pins = map(ready.base.pin, ready.prepared.tables)
    return {(pin.location, pin.table_branch) for pin in pins}
