"""What became of a write that failed, where the error alone does not say.

Once the sidecar is written, recovery can finish the write or undo it. The writer gives up its lock and looks for
its commit in the manifest, and at its tables for what recovery will do. A stream's batch without rows has neither
sidecar nor commit; there the mark of the batch is looked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.errors import BatchOutcomeUnknown, OmniError, OutcomeUnknown, StorageError
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.manifest.streams import Batch
from omnigraph.recovery.heal import can_arrive_late, heal, will_be_undone
from omnigraph.recovery.sidecar import Sidecar

_ON_ITS_WAY: Final = "its last request may still arrive"


@dataclass(frozen=True, slots=True)
class InDoubt:
    """A write that failed after its sidecar was written, and the error that ended it."""

    sidecar: Sidecar
    cause: Exception


def find_out(repository: Repository, doubt: InDoubt) -> Commit:
    """The commit of a write in doubt, if it was made after all. The caller holds no lock.

    If the write was undone, its own error is raised: nothing was written. If neither is certain, OutcomeUnknown.
    """
    sidecar, cause = doubt.sidecar, doubt.cause
    try:
        problem = _problem(repository, doubt)
        published = repository.manifest.find_commit(sidecar.branch.native, sidecar.draft.graph_commit_id)
        undone = problem is None or will_be_undone(repository, sidecar)
    except OmniError as error:
        raise _unknown(doubt, str(error)) from cause
    if published is not None:
        return published
    if undone:
        raise cause
    raise _unknown(doubt, str(problem)) from cause


def _problem(repository: Repository, doubt: InDoubt) -> str | None:
    """Heal the branch like after any dead writer; the reason why the outcome stays open, if there is one."""
    try:
        heal(repository, doubt.sidecar.branch.name)
    except OmniError as error:
        return str(error)
    if not doubt.sidecar.moves and isinstance(doubt.cause, StorageError) and can_arrive_late(repository):
        return _ON_ITS_WAY
    return None


def _unknown(doubt: InDoubt, problem: str) -> OutcomeUnknown:
    """The causes without their remedies, which advise a retry: that must wait until the outcome is known."""
    reason = _reason(doubt.cause, problem)
    return OutcomeUnknown(doubt.sidecar.branch.name, doubt.sidecar.draft.graph_commit_id, reason)


def _reason(cause: Exception, problem: str) -> str:
    return "; ".join(text.partition(". ")[0].rstrip(".") for text in (str(cause), problem))


def require_noted(repository: Repository, branch: Branch, batch: Batch, cause: Exception) -> None:
    """Return if a batch without rows is marked as done although marking it failed with ``cause``.

    If it is not, the cause is raised: nothing was written. If neither is certain, BatchOutcomeUnknown.
    """
    if isinstance(cause, OmniError) and not isinstance(cause, StorageError):
        raise cause
    try:
        noted = repository.manifest.has_batch(branch.native, batch)
    except OmniError as error:
        reason = _reason(cause, str(error))
        raise BatchOutcomeUnknown(batch.stream, branch.name, batch.number, reason) from cause
    if noted:
        return
    if isinstance(cause, StorageError) and can_arrive_late(repository):
        reason = _reason(cause, _ON_ITS_WAY)
        raise BatchOutcomeUnknown(batch.stream, branch.name, batch.number, reason) from cause
    raise cause
