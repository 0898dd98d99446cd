"""Healing: resolve the sidecars that dead writers left, under the lock that proves the writer dead."""

from __future__ import annotations

import datetime as dt
import hashlib
import warnings
from contextlib import suppress
from dataclasses import replace
from typing import Final

from omnigraph.errors import OmniError, RecoveryBlocked, SidecarUnreadable, TableMoved
from omnigraph.failpoints import hit
from omnigraph.manifest.publisher import Change, CommitDraft
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import ManifestState, TablePin
from omnigraph.records import dataclass
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.classify import (
    Decision,
    Movement,
    at,
    decide,
    keeping,
    movements_of,
    ref_before,
    restoring,
    versions_made,
)
from omnigraph.recovery.sidecar import Sidecar, TableMove, end_sidecar, list_sidecars, read_sidecars
from omnigraph.storage.address import Scheme
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.tables import TableRef

RECOVERY_ACTOR: Final = "omnigraph:recovery"

_LATE_ARRIVALS: Final = 3
"""How often a recovery is retried because a late request of the dead writer has moved a table."""


def heal(repository: Repository, branch: str | None = None) -> list[Recovery]:
    """Resolve the sidecars of dead writers on one branch, or on all; a writer that lives is waited for.

    If there are none, that costs one listing. Each write heals only its own branch, so that a sidecar which cannot
    be resolved blocks no other branch.
    """
    healed = _heal(repository, branch)
    if healed.problems:
        raise healed.problems[0]
    return healed.recoveries


def sweep(repository: Repository) -> list[Recovery]:
    """Heal all branches when a graph is opened. What cannot be resolved is a warning: a graph always opens."""
    healed = _heal(repository, None)
    for problem in healed.problems:
        warnings.warn(str(problem), RuntimeWarning, stacklevel=3)
    return healed.recoveries


@dataclass(frozen=True, slots=True)
class _Healed:
    """The writes that were resolved, and what prevents the others from being resolved."""

    recoveries: list[Recovery]
    problems: list[OmniError]


def _heal(repository: Repository, branch: str | None) -> _Healed:
    found, unreadable = _pending(repository)
    recoveries: list[Recovery] = []
    problems: list[OmniError] = [*unreadable]
    for name in sorted({sidecar.branch.name for sidecar in found}):
        if branch in (None, name):
            try:
                with repository.locks.commit(name) as lock:
                    healed = _resolve_all(repository, _of_branch(_pending(repository)[0], name), lock)
            except OmniError as error:
                problems.append(error)
            else:
                recoveries += healed.recoveries
                problems += healed.problems
    return _Healed(recoveries, problems)


def will_be_undone(repository: Repository, sidecar: Sidecar) -> bool:
    """Is it certain that recovery will undo a write? Its tables show that, unless one of its requests may still
    arrive at the store."""
    if can_arrive_late(repository):
        return False
    state = repository.manifest.latest(sidecar.branch.native)
    return decide(movements_of(sidecar, state, repository.tables)) is Decision.ROLL_BACK


def can_arrive_late(repository: Repository) -> bool:
    """Can a request of a dead writer reach the store after the writer died? On a disk it cannot."""
    return repository.address.scheme is Scheme.S3


def _pending(repository: Repository) -> tuple[list[Sidecar], list[SidecarUnreadable]]:
    """All sidecars that can be read, and an error for each that cannot."""
    found: list[Sidecar] = []
    unreadable: list[SidecarUnreadable] = []
    for key in list_sidecars(repository.objects, repository.cleanups):
        try:
            found += read_sidecars(repository.objects, key)
        except SidecarUnreadable as error:
            unreadable.append(error)
    return found, unreadable


def heal_branch(repository: Repository, branch: str, lock: CommitLock) -> list[Recovery]:
    """Resolve the sidecars of one branch whose commit lock the caller holds."""
    found, unreadable = _pending(repository)
    healed = _resolve_all(repository, _of_branch(found, branch), lock)
    problems = [*healed.problems, *unreadable]
    if problems:
        raise problems[0]
    return healed.recoveries


def _of_branch(sidecars: list[Sidecar], branch: str) -> list[Sidecar]:
    return [sidecar for sidecar in sidecars if sidecar.branch.name == branch]


def _resolve_all(repository: Repository, waiting: list[Sidecar], lock: CommitLock) -> _Healed:
    """Resolve the sidecars of one branch. One that is blocked is retried as long as others are resolved."""
    recoveries: list[Recovery] = []
    while waiting:
        blocked: dict[str, OmniError] = {}
        for sidecar in waiting:
            try:
                recoveries.append(_resolve(repository, sidecar, lock))
            except RecoveryBlocked as error:
                blocked[sidecar.operation_id] = error
            except OmniError as error:
                return _Healed(recoveries, [error])
            except Exception as error:  # noqa: BLE001  one write must not keep the rest from being resolved
                reason = f"{type(error).__name__}: {error}"
                blocked[sidecar.operation_id] = RecoveryBlocked(sidecar.operation_id, reason)
        if len(blocked) == len(waiting):
            return _Healed(recoveries, [blocked[waiting[0].operation_id]])
        waiting = [sidecar for sidecar in waiting if sidecar.operation_id in blocked]
    return _Healed(recoveries, [])


def _resolve(repository: Repository, sidecar: Sidecar, lock: CommitLock) -> Recovery:
    """Finish or undo one interrupted write: publish, record, remove the sidecar. Each step can be repeated.

    If a late request of the dead writer moves a table meanwhile, the write is classified again.
    """
    for _ in range(_LATE_ARRIVALS):
        with suppress(TableMoved):
            return _resolve_once(repository, sidecar, lock)
    return _resolve_once(repository, sidecar, lock)


def _resolve_once(repository: Repository, sidecar: Sidecar, lock: CommitLock) -> Recovery:
    known = AuditLog(repository.tables).find(sidecar.operation_id)
    if known is not None:
        hit("recovery.after_audit")
        end_sidecar(repository.objects, sidecar)
        return known
    if not repository.branches.has(sidecar.branch):
        return _finish(repository, sidecar, "OrphanedBranchDiscarded", None, {})
    state = repository.manifest.latest(sidecar.branch.native)
    if repository.manifest.find_commit(sidecar.branch.native, sidecar.draft.graph_commit_id) is not None:
        outcomes = {move.table_key: Movement.ROLLED_PAST_EXPECTED.value for move in sidecar.moves}
        return _finish(repository, sidecar, "RolledForward", sidecar.draft.graph_commit_id, outcomes)
    movements = movements_of(sidecar, state, repository.tables)
    outcomes = {table_key: movement.value for table_key, movement in movements.items()}
    match decide(movements):
        case Decision.STOP:
            raise RecoveryBlocked(sidecar.operation_id, _why_stopped(movements))
        case Decision.ROLL_FORWARD:
            change = _reached(repository, sidecar, movements, lock)
            repository.manifest.publish(sidecar.branch, change, sidecar.expected, sidecar.draft, lock)
            hit("recovery.after_publish")
            return _finish(repository, sidecar, "RolledForward", sidecar.draft.graph_commit_id, outcomes)
        case Decision.ROLL_BACK:
            commit_id = _roll_back(repository, sidecar, movements, state, lock)
            return _finish(repository, sidecar, "RolledBack", commit_id, outcomes)


def _reached(repository: Repository, sidecar: Sidecar, movements: dict[str, Movement], lock: CommitLock) -> Change:
    """The change of a write that is rolled forward, with the versions that its tables have reached and their
    checksums.

    Where a late request of the dead writer may arrive, a missing version that only rearranges files is fenced
    first: the table gets a version with the content that it has.
    """
    tables, pins = repository.tables, dict(sidecar.change.pins)
    for move in sidecar.moves:
        start = ref_before(move)
        head = at(start, start.version + versions_made(move, tables))
        match movements[move.table_key]:
            case Movement.UPKEEP_MISSING if can_arrive_late(repository):
                lock.verify()
                head = tables.restore(head, head.version, keeping(sidecar.operation_id))
                hit("recovery.after_upkeep_fence")
            case Movement.UPKEEP_FENCED:
                head = at(head, head.version + 1)
        pins[move.after.table_key] = replace(move.after, table_version=head.version)
    whole = {key: replace(pin, checksum=tables.version_checksum(pin.ref)) for key, pin in pins.items()}
    return replace(sidecar.change, pins=whole)


def _roll_back(
    repository: Repository,
    sidecar: Sidecar,
    movements: dict[str, Movement],
    state: ManifestState,
    lock: CommitLock,
) -> str | None:
    """Restore the content of every table that the write moved, and publish the restored versions.

    Where a late request of the dead writer may arrive, the tables that it has not moved are fenced first: they get
    a version with their old content, so that the late request finds its version number taken.
    """
    restored: dict[str, TableRef] = {}
    for move in sorted(sidecar.moves, key=lambda move: movements[move.table_key] is not Movement.NO_MOVEMENT):
        start = ref_before(move)
        head = start.version + versions_made(move, repository.tables)
        match movements[move.table_key]:
            case Movement.NO_MOVEMENT if can_arrive_late(repository) and _is_where_it_was(move, state):
                restored[move.table_key] = _bring_back(repository, sidecar, start, start.version, lock)
                hit("recovery.after_fence")
            case Movement.FENCED:
                restored[move.table_key] = at(start, start.version + 1)
            case Movement.ROLLED_PAST_EXPECTED | Movement.UPKEEP_MISSING:
                restored[move.table_key] = _bring_back(repository, sidecar, start, head, lock)
                hit("recovery.after_restore")
            case Movement.RESTORED:
                restored[move.table_key] = at(start, head + 1)
    if not restored:
        return None
    pins = {
        move.table_key: replace(
            _before(move, state),
            table_version=restored[move.table_key].version,
            table_branch=move.after.table_branch,
            checksum=repository.tables.version_checksum(restored[move.table_key]),
        )
        for move in sidecar.moves
        if move.table_key in restored
    }
    draft = CommitDraft(
        "recovery",
        recovery_commit_id(sidecar.operation_id),
        RECOVERY_ACTOR,
        f"undo interrupted {sidecar.writer} {sidecar.operation_id}",
    )
    expected = {key: version for key, version in sidecar.expected.items() if key in pins}
    repository.manifest.publish(sidecar.branch, Change(pins), expected, draft, lock)
    hit("recovery.after_publish")
    return draft.graph_commit_id


def _is_where_it_was(move: TableMove, state: ManifestState) -> bool:
    """Is the table still published at the version that the write found? If not, another writer has moved it, and
    the version that a late request would make exists."""
    pin = state.tables.get(move.table_key)
    return pin is not None and (pin.location, pin.table_version) == (
        move.before.location,
        move.before.table_version,
    )


def _before(move: TableMove, state: ManifestState) -> TablePin:
    """The table before the write. What is published counts: a write that was to follow another one, which was
    undone, has found the table with rows that never came."""
    return state.tables[move.table_key] if _is_where_it_was(move, state) else move.before


def _bring_back(
    repository: Repository, sidecar: Sidecar, start: TableRef, head: int, lock: CommitLock
) -> TableRef:
    lock.verify()
    return repository.tables.restore(start, head, restoring(sidecar.operation_id))


def recovery_commit_id(operation_id: str) -> str:
    """The id of the commit that undoes a write, derived from the operation so that a repetition is recognised."""
    alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    digest = hashlib.sha256(f"undo {operation_id}".encode()).digest()
    return operation_id[:10] + "".join(alphabet[byte % 32] for byte in digest[:16])


def _finish(
    repository: Repository, sidecar: Sidecar, kind: str, commit_id: str | None, outcomes: dict[str, str]
) -> Recovery:
    recovery = Recovery(
        sidecar.operation_id,
        kind,
        sidecar.writer,
        sidecar.draft.actor_id,
        sidecar.branch.name,
        commit_id,
        outcomes,
        dt.datetime.now(dt.UTC),
        tuple(transaction for move in sidecar.moves for transaction in move.transaction_ids),
    )
    AuditLog(repository.tables).record(recovery)
    hit("recovery.after_audit")
    end_sidecar(repository.objects, sidecar)
    return recovery


def _why_stopped(movements: dict[str, Movement]) -> str:
    reasons = {
        Movement.INVARIANT_VIOLATION: "is older than the graph says",
        Movement.UNEXPECTED_AT_P1: "was moved by somebody else",
        Movement.UNEXPECTED_MULTISTEP: "was moved further by somebody else",
        Movement.UPKEEP_FENCED: "was kept by a recovery that other tables contradict",
    }
    return "; ".join(f"{key} {reasons[movement]}" for key, movement in movements.items() if movement in reasons)
