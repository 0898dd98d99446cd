"""Commits of several threads in a row: who holds a branch's lock commits the changes that wait for it as well.

Each change keeps its own commit, sidecar and versions. They are planned one on top of the other: the state after
the first is known before it is published, so the second can be put there. Their sidecars are written as one object
before the first table moves; after that one write is published after the other. A write begins to move
tables only when the one before it is published, so at most one of them can be interrupted in the middle, and those
behind it have changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ulid import ULID

from omnigraph.errors import OmniError
from omnigraph.manifest.drafts import Change, CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, ManifestState
from omnigraph.recovery.sidecar import Sidecar
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import NextVersion, TableRef
from omnigraph.write.changes import Ready, WriteRequest
from omnigraph.write.committing.entry import Settled, moved_tables
from omnigraph.write.committing.outcomes import InDoubt
from omnigraph.write.committing.rebasing import Delta, joined

MOST_TOGETHER: Final = 16
"""How many changes are committed in a row before others are looked at."""


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
    versions: tuple[NextVersion, ...] = ()
    """The versions of its tables, where they are known before they are made."""


def plan(repository: Repository, own: Waiting, known: Settled, lock: CommitLock) -> list[Planned]:
    """The thread's own change, and those of other threads that can be committed right after it. These are taken
    out of the line, and have to be answered."""
    planned = [_planned(repository, own, known.state)]
    if not own.ready.staged or own.ready.prepared.stages or own.ready.prepared.schema is not None:
        return planned
    made: dict[int, Delta] = {known.state.version + 1: own.ready.prepared.delta}
    try:
        for other in _unmoved(repository, own, known, lock):
            state = planned[-1].after
            if state is None or len(planned) == MOST_TOGETHER:
                break
            ready = joined(other.ready, state, made, other.operation_id) if _may_join(other, own, state) else None
            if ready is not None and lock.accept(other):
                other.ready = ready
                planned.append(_planned(repository, other, state))
                made[state.version + 1] = ready.prepared.delta
    except BaseException:
        for each in planned[1:]:
            lock.answer(each.waiting)
        raise
    return planned if len(planned) == 1 else [_in_row(each, planned[0].sidecar) for each in planned]


def _in_row(planned: Planned, first: Sidecar) -> Planned:
    """A change whose sidecar lies in the object of the first one of its row."""
    return replace(planned, sidecar=replace(planned.sidecar, row=first.operation_id))


def _planned(repository: Repository, waiting: Waiting, before: ManifestState) -> Planned:
    request, ready = waiting.request, waiting.ready
    message = request.message if ready.prepared.message is None else ready.prepared.message
    wanted = request.graph_commit_id or str(ULID())
    draft = CommitDraft(request.writer, wanted, request.actor, message, request.merged_parents, request.batch)
    moves = tuple(one.move for one in ready.staged)
    schema = ready.prepared.schema
    sidecar = Sidecar(waiting.operation_id, request.writer, request.branch.ref, draft, moves, schema=schema)
    after = repository.manifest.foresee(sidecar.branch, before, sidecar.change, draft)
    return Planned(waiting, sidecar, before, after)


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
        after = repository.manifest.foresee(each.sidecar.branch, before, change, each.sidecar.draft)
        found.append(replace(each, before=before, after=after, versions=tuple(versions)))
    return found + planned[len(found) :]


def with_checksums(sidecar: Sidecar, reached: Sequence[TableRef]) -> Change:
    """The change of the manifest that publishes a write, with the checksums of the versions that it has made."""
    pins = dict(sidecar.change.pins)
    for move, ref in zip(sidecar.moves, reached, strict=True):
        pins[move.after.table_key] = replace(pins[move.after.table_key], checksum=ref.checksum)
    return replace(sidecar.change, pins=pins)


def _may_join(other: Waiting, own: Waiting, state: ManifestState) -> bool:
    """Does what the caller of another write relies on still hold after the writes before it?"""
    request, captured = other.request, other.ready.base.snapshot
    if request.branch.ref != own.request.branch.ref or request.if_commit is not None or request.batch is not None:
        return False
    if request.compiled_for is not None and request.compiled_for.schema_digest != state.schema:
        return False
    if request.graph_commit_id is None:
        return True
    recent = {commit.graph_commit_id for commit in state.commits}
    return request.graph_commit_id not in recent and captured.graph_commit_id in recent


def _unmoved(repository: Repository, own: Waiting, known: Settled, lock: CommitLock) -> Iterator[Waiting]:
    """The changes that wait, if their tables are where the newest state has them and their files are there."""
    waiting = [other for other in lock.offers() if isinstance(other, Waiting)]
    places = {(one.move.after.location, one.move.after.table_branch) for one in own.ready.staged} | known.own
    unknown = {
        pin.ref
        for other in waiting
        for one in other.ready.staged
        if (pin := known.state.tables.get(one.move.table_key)) is not None
        and (pin.location, pin.table_branch) not in places
    }
    try:
        moved = {(ref.location, ref.branch) for ref in moved_tables(repository, list(unknown))}
    except OmniError:  # each of them will find out for itself
        return
    for other in waiting:
        places = {(one.move.after.location, one.move.after.table_branch) for one in other.ready.staged}
        if moved.isdisjoint(places) and not repository.cleanups.may_have_removed(other.ready.cleanups):
            yield other
