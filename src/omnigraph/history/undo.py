"""Undoing and repeating commits: each is a new commit, and nothing of the history is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import InvalidArgument, MergeConflicts
from omnigraph.history.sides import Combine, Decisions, Three, combine_in_memory
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.storage.locks import Held
from omnigraph.write.base import Base
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write

Counts = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """Which branch gets the new commit, on which conditions, and how the changed rows are combined."""

    branch: Branch
    actor: str | None = None
    message: str | None = None
    decisions: Decisions = field(default_factory=Decisions)
    if_commit: str | None = None
    combine: Combine = combine_in_memory
    job_lock: Held | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What was changed, by table and operation. ``commit`` is None if there was nothing to change."""

    branch: str
    kind: str
    of: str
    changes: Counts
    commit: Commit | None

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "kind": self.kind,
            "of": self.of,
            "changes": {key: dict(counts) for key, counts in self.changes.items()},
            "commit": None if self.commit is None else self.commit.as_json(),
        }


def revert(repository: Repository, request: UndoRequest, commit: Commit) -> UndoResult:
    """Undo what a commit changed; later changes of the same entities are conflicts, as in a merge."""
    before, after = _around(repository, request.branch, commit)
    message = request.message or f"revert {commit.graph_commit_id}"
    return _apply(repository, request, "revert", commit, message, lambda target: Three(after, before, target))


def cherry_pick(repository: Repository, request: UndoRequest, commit: Commit) -> UndoResult:
    """Do once more, on this branch, what a commit of any branch changed."""
    before, after = _around(repository, request.branch, commit)
    message = request.message or commit.message or f"cherry-pick {commit.graph_commit_id}"
    return _apply(repository, request, "cherry_pick", commit, message, lambda target: Three(before, after, target))


def reset(repository: Repository, request: UndoRequest, commit: Commit) -> UndoResult:
    """Bring the branch back to the content it had at a commit."""
    wanted = repository.snapshot_at(request.branch, commit.graph_commit_id)
    message = request.message or f"reset to {commit.graph_commit_id}"
    return _apply(repository, request, "reset", commit, message, lambda target: Three(target, wanted, target))


def _around(repository: Repository, branch: Branch, commit: Commit) -> tuple[Snapshot, Snapshot]:
    """The states before and after a commit, along its first parent."""
    if not commit.parents:
        reason = f"commit {commit.graph_commit_id} created the graph; there is no state before it"
        raise InvalidArgument("commit", reason)
    before = repository.snapshot_at(branch, commit.parents[0])
    return before, repository.snapshot_at(branch, commit.graph_commit_id)


def _apply(
    repository: Repository,
    request: UndoRequest,
    kind: str,
    commit: Commit,
    message: str,
    sides: Callable[[Snapshot], Three],
) -> UndoResult:
    def prepare(base: Base) -> Prepared[Counts]:
        found = request.combine(base, sides(base.snapshot), request.decisions)
        if found.conflicts:
            source = f"{kind} of {commit.graph_commit_id}"
            raise MergeConflicts(source, request.branch.name, found.conflicts, found.total)
        return Prepared(found.delta, found.counts, repeatable=False, stages=found.stages, reads=found.reads)

    write = WriteRequest(kind, request.branch, request.actor, message, request.if_commit)
    written = commit_write(repository, write, prepare, request.job_lock)
    return UndoResult(request.branch.name, kind, commit.graph_commit_id, written.result, written.commit)
