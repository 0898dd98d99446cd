"""What became of a write that failed after its sidecar was written.

From then on recovery can finish the write or undo it, so the error alone does not say which of the two happened.
The writer gives up its lock and looks for its commit in the manifest, and at its tables for what recovery will do.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import OmniError, OutcomeUnknown, StorageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.recovery.heal import can_arrive_late, heal, will_be_undone
from omnigraph.recovery.sidecar import Sidecar


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
        return "its last request may still arrive"
    return None


def _unknown(doubt: InDoubt, problem: str) -> OutcomeUnknown:
    """The causes without their remedies, which advise a retry: that must wait until the outcome is known."""
    causes = "; ".join(reason.partition(". ")[0].rstrip(".") for reason in (str(doubt.cause), problem))
    return OutcomeUnknown(doubt.sidecar.branch.name, doubt.sidecar.draft.graph_commit_id, causes)
