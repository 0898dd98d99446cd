"""Undoing and repeating commits: each is a new commit, and nothing of the history is lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omnigraph.errors import InvalidArgument, MergeConflicts
from omnigraph.history.log import LogFilter
from omnigraph.history.merging.sides import Combine, Combined, Decisions, Three, combine_in_memory
from omnigraph.history.merging.steps import combine_steps
from omnigraph.manifest.refs.branches import Branch
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
    graph_commit_id: str | None = None


@dataclass(frozen=True, slots=True)
class UndoResult:
    """What was changed, by table and operation. ``commit`` is None if there was nothing to change.

    ``of`` are the ids of the commits that were undone, repeated or gone back to.
    """

    branch: str
    kind: str
    of: tuple[str, ...]
    changes: Counts
    commit: Commit | None

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "kind": self.kind,
            "of": list(self.of),
            "changes": {key: dict(counts) for key, counts in self.changes.items()},
            "commit": None if self.commit is None else self.commit.as_json(),
        }


def revert(repository: Repository, request: UndoRequest, commits: Sequence[Commit]) -> UndoResult:
    """Undo what commits changed, the newest first, as one commit.

    Later changes of the same entities are conflicts, as in a merge. All commits are in the branch's history.
    """
    ordered = _newest_first(repository, request.branch, commits)
    pairs = [_around(repository, request.branch, commit) for commit in ordered]
    of = tuple(commit.graph_commit_id for commit in ordered)

    def combined(base: Base) -> Combined:
        steps = [Three(after, before, base.snapshot) for before, after in pairs]
        if len(steps) == 1:
            return request.combine(base, steps[0], request.decisions)
        return combine_steps(base, steps, request.decisions)

    return _apply(repository, request, "revert", of, request.message or f"revert {', '.join(of)}", combined)


def cherry_pick(repository: Repository, request: UndoRequest, commit: Commit) -> UndoResult:
    """Do once more, on this branch, what a commit of any branch changed."""
    before, after = _around(repository, request.branch, commit)
    message = request.message or commit.message or f"cherry-pick {commit.graph_commit_id}"

    def combined(base: Base) -> Combined:
        return request.combine(base, Three(before, after, base.snapshot), request.decisions)

    return _apply(repository, request, "cherry_pick", (commit.graph_commit_id,), message, combined)


def reset(repository: Repository, request: UndoRequest, commit: Commit) -> UndoResult:
    """Bring the branch back to the content it had at a commit."""
    wanted = repository.snapshot_at(request.branch, commit.graph_commit_id)
    if wanted.catalog != repository.snapshot(request.branch).catalog:
        reason = (
            f"commit {commit.graph_commit_id} has another schema; apply that one first: "
            f"`omnigraph schema show --at {commit.graph_commit_id}` prints it"
        )
        raise InvalidArgument("commit", reason)
    message = request.message or f"reset to {commit.graph_commit_id}"

    def combined(base: Base) -> Combined:
        return request.combine(base, Three(base.snapshot, wanted, base.snapshot), request.decisions)

    return _apply(repository, request, "reset", (commit.graph_commit_id,), message, combined)


def _newest_first(repository: Repository, branch: Branch, commits: Sequence[Commit]) -> list[Commit]:
    """Commits in the order of a branch's history; InvalidArgument for one that is not in it, or named twice."""
    wanted = {commit.graph_commit_id: commit for commit in commits}
    if not commits or len(wanted) < len(commits):
        raise InvalidArgument("commit", "name one commit or several, each of them once")
    found: list[Commit] = []
    behind = LogFilter(since=min(commit.created_at for commit in commits))
    for commit in repository.commits.of(branch):
        if commit.graph_commit_id in wanted:
            found.append(wanted.pop(commit.graph_commit_id))
        if not wanted or behind.ends_at(commit):
            break
    for missing in wanted.values():
        reason = (
            f"commit {missing.graph_commit_id} of '{missing.branch}' is not in the history of '{branch.name}', so "
            "there is nothing to undo; revert the commit that brought its changes there, or revert it on its own "
            "branch. To do on a branch what it did, cherry-pick it"
        )
        raise InvalidArgument("commit", reason)
    return found


def _around(repository: Repository, branch: Branch, commit: Commit) -> tuple[Snapshot, Snapshot]:
    """The states before and after a commit, along its first parent."""
    if not commit.parents:
        reason = f"commit {commit.graph_commit_id} created the graph; there is no state before it"
        raise InvalidArgument("commit", reason)
    before = repository.snapshot_at(branch, commit.parents[0])
    after = repository.snapshot_at(branch, commit.graph_commit_id)
    if before.schema_digest != after.schema_digest:
        reason = (
            f"commit {commit.graph_commit_id} changed the schema, not rows; apply the schema that you want with "
            f"`omnigraph schema apply` (`omnigraph schema show --at {commit.parents[0]}` prints the one before)"
        )
        raise InvalidArgument("commit", reason)
    return before, after


def _apply(
    repository: Repository,
    request: UndoRequest,
    kind: str,
    of: tuple[str, ...],
    message: str,
    combined: Callable[[Base], Combined],
) -> UndoResult:
    def prepare(base: Base) -> Prepared[Counts]:
        found = combined(base)
        if found.conflicts:
            source = f"{kind} of {', '.join(of)}"
            raise MergeConflicts(source, request.branch.name, found.conflicts, found.total)
        return Prepared(found.delta, found.counts, repeatable=False, stages=found.stages, reads=found.reads)

    write = WriteRequest(
        kind,
        request.branch,
        request.actor,
        message,
        request.if_commit,
        graph_commit_id=request.graph_commit_id,
    )
    written = commit_write(repository, write, prepare, request.job_lock)
    return UndoResult(request.branch.name, kind, of, written.result, written.commit)
