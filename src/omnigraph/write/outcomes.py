"""What became of a write that failed behind its sidecar. Others may finish it or undo it, so it is looked up."""

from __future__ import annotations

from omnigraph.errors import OmniError, OutcomeUnknown, StorageError
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.recovery.heal import can_arrive_late, heal, will_be_undone
from omnigraph.recovery.sidecar import Sidecar


class InDoubt(Exception):
    """A write failed behind its point of no return; ``cause`` says why."""

    def __init__(self, sidecar: Sidecar, cause: Exception) -> None:
        super().__init__(sidecar, cause)
        self.sidecar = sidecar
        self.cause = cause


def find_out(repository: Repository, doubt: InDoubt) -> Commit:
    """The commit of a write that failed and is in the graph nevertheless; the writer holds no lock any more.

    If the write was undone, its cause is raised: nothing was written. If that cannot be told, OutcomeUnknown.
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
    """Resolve the write like that of any dead writer; what keeps us from knowing how it ended, if that fails."""
    try:
        heal(repository, doubt.sidecar.branch.name)
    except OmniError as error:
        return str(error)
    if not doubt.sidecar.moves and isinstance(doubt.cause, StorageError) and can_arrive_late(repository):
        return "its last request may still arrive"
    return None


def _unknown(doubt: InDoubt, problem: str) -> OutcomeUnknown:
    """The causes' own remedies are left out: to retry is what must not be done now."""
    causes = "; ".join(reason.partition(". ")[0].rstrip(".") for reason in (str(doubt.cause), problem))
    return OutcomeUnknown(doubt.sidecar.branch.name, doubt.sidecar.draft.graph_commit_id, causes)
