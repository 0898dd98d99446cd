"""Merging one branch into another: one commit with two parents, or all conflicts, or nothing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.errors import Conflict, InvalidArgument, MergeConflicts, PreconditionFailed
from omnigraph.history.bases import merge_base
from omnigraph.history.sides import Combine, Combined, Decisions, Three, combine_in_memory
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.storage.locks import Held
from omnigraph.write.base import Base
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write


class MergeOutcome(StrEnum):
    """What a merge came to."""

    ALREADY_UP_TO_DATE = "already_up_to_date"
    FAST_FORWARD = "fast_forward"
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Which branch is merged into which, and how. ``if_commit`` names the commit that the target must be at.

    ``combine`` puts the changed rows together; a job that does so by tasks holds its ``job_lock`` meanwhile.
    """

    source: Branch
    target: Branch
    actor: str | None = None
    message: str | None = None
    decisions: Decisions = field(default_factory=Decisions)
    squash: bool = False
    if_commit: str | None = None
    combine: Combine = combine_in_memory
    job_lock: Held | None = None


@dataclass(frozen=True, slots=True)
class MergePlan:
    """What a merge would do: its outcome, what it changes in the target, and the conflicts in its way."""

    outcome: MergeOutcome
    source: str
    target: str
    source_commit: str | None
    target_commit: str | None
    base_commit: str | None
    changes: Mapping[str, Mapping[str, int]]
    conflicts: tuple[Conflict, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "outcome": self.outcome.value,
            "source": self.source,
            "target": self.target,
            "source_commit": self.source_commit,
            "target_commit": self.target_commit,
            "base_commit": self.base_commit,
            "changes": {key: dict(counts) for key, counts in self.changes.items()},
            "conflicts": [conflict.as_json() for conflict in self.conflicts],
        }


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What a merge did. ``commit`` is None if there was nothing to merge."""

    plan: MergePlan
    commit: Commit | None

    @property
    def outcome(self) -> MergeOutcome:
        return self.plan.outcome

    def as_json(self) -> dict[str, Any]:
        commit = None if self.commit is None else self.commit.as_json()
        return {**self.plan.as_json(), "commit": commit}


def merge(repository: Repository, request: MergeRequest) -> MergeResult:
    """Merge, as one commit; raises MergeConflicts, with all of them, if anything stands in the way."""
    _check(request)
    source = repository.snapshot(request.source)

    def prepare(base: Base) -> Prepared[MergePlan]:
        plan, found = _compared(request, source, base)
        if plan.conflicts:
            raise MergeConflicts(plan.source, plan.target, plan.conflicts, found.total)
        return Prepared(
            found.delta,
            plan,
            repeatable=False,
            lineage_only=plan.outcome is not MergeOutcome.ALREADY_UP_TO_DATE,
            stages=found.stages,
            reads=found.reads,
        )

    parents = () if request.squash or source.graph_commit_id is None else (source.graph_commit_id,)
    write = WriteRequest(
        "merge", request.target, request.actor, request.message, request.if_commit, merged_parents=parents
    )
    written = commit_write(repository, write, prepare, request.job_lock)
    return MergeResult(written.result, written.commit)


def preview_merge(repository: Repository, request: MergeRequest) -> MergePlan:
    """What a merge would do now; nothing is written."""
    _check(request)
    source, target = repository.snapshot(request.source), repository.snapshot(request.target)
    if request.if_commit is not None and request.if_commit != target.graph_commit_id:
        raise PreconditionFailed(request.target.name, request.if_commit, target.graph_commit_id)
    return _compared(request, source, Base(repository, request.target, target))[0]


def _check(request: MergeRequest) -> None:
    if request.source.name == request.target.name:
        raise InvalidArgument("source", f"'{request.source.name}' cannot be merged into itself")


def _compared(request: MergeRequest, source: Snapshot, base: Base) -> tuple[MergePlan, Combined]:
    """Compare both branches with their merge base, and put their changes together."""
    repository, target = base.repository, base.snapshot
    ancestor = merge_base(repository, request.target, request.source)
    base_id = ancestor.graph_commit_id
    if base_id == source.graph_commit_id:
        plan = _plan(MergeOutcome.ALREADY_UP_TO_DATE, request, source, target, base_id, {})
        return plan, Combined({}, frozenset())
    sides = Three(repository.snapshot_at(request.target, base_id), source, target)
    outcome = MergeOutcome.FAST_FORWARD if base_id == target.graph_commit_id else MergeOutcome.MERGED
    found = request.combine(base, sides, request.decisions)
    return _plan(outcome, request, source, target, base_id, found.counts, found.conflicts), found


def _plan(
    outcome: MergeOutcome,
    request: MergeRequest,
    source: Snapshot,
    target: Snapshot,
    base: str,
    changes: Mapping[str, Mapping[str, int]],
    conflicts: tuple[Conflict, ...] = (),
) -> MergePlan:
    return MergePlan(
        outcome,
        request.source.name,
        request.target.name,
        source.graph_commit_id,
        target.graph_commit_id,
        base,
        changes,
        conflicts,
    )
