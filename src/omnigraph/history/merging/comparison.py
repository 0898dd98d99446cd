"""Comparing the branches of a merge with what they have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.errors import Conflict, RequestError
from omnigraph.history.merging.bases import MergeBase, merge_base, readable_states
from omnigraph.history.merging.brought import brought
from omnigraph.history.merging.plans import MergeOutcome, MergePlan
from omnigraph.history.merging.sides import Combine, Combined, Decisions, Three, combine_in_memory
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.storage.locks import Held
from omnigraph.write.base import Base


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """Which branch is merged into which, and how. ``if_commit`` names the commit that the target must be at.

    ``planned`` is a plan that the merge must come to, from the source commit that it names.
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
    planned: MergePlan | None = None
    graph_commit_id: str | None = None
    """The id that the commit gets, if its caller chose one."""


def compared(request: MergeRequest, source: Snapshot, base: Base) -> tuple[MergePlan, Combined]:
    """Compare both branches with their merge base, and put their changes together."""
    target = base.snapshot
    ancestor = common_base(base.repository, request, source, target)
    base_id = ancestor.commit.graph_commit_id
    if base_id == source.graph_commit_id:
        plan = plan_of(MergeOutcome.ALREADY_UP_TO_DATE, request, source, target, base_id, {})
        return plan, Combined({}, frozenset())
    sides = three_sides(base.repository, request, ancestor, source, target)
    found = request.combine(base, sides, request.decisions)
    outcome = outcome_of(base_id, target)
    return plan_of(outcome, request, source, target, base_id, found.counts, found.conflicts), found


def three_sides(
    repository: Repository, request: MergeRequest, ancestor: MergeBase, source: Snapshot, target: Snapshot
) -> Three:
    """The states that a merge compares. What merges brought from a base that is gone is put on top of the base."""
    before = repository.snapshot_at(request.target, ancestor.commit.graph_commit_id)
    merges = [_around(repository, request.target, each) for each in ancestor.merges]
    return Three(before, source, target, brought(repository.tables, before, merges, target))


def outcome_of(base_id: str, target: Snapshot) -> MergeOutcome:
    """What a merge comes to that brings something."""
    return MergeOutcome.FAST_FORWARD if base_id == target.graph_commit_id else MergeOutcome.MERGED


def common_base(repository: Repository, request: MergeRequest, source: Snapshot, target: Snapshot) -> MergeBase:
    """The merge base of two states, which may be older than the newest ones of their branches."""
    ours = target.commit or next(repository.commits.of(request.target), None)
    theirs = source.commit or next(repository.commits.of(request.source), None)
    if ours is None or theirs is None:
        raise RequestError(f"'{request.target.name}' and '{request.source.name}' have no history in common")
    ancestry = repository.commits.ancestry(request.target, request.source)
    return merge_base(ancestry, ours, theirs, readable_states(repository))


def _around(repository: Repository, branch: Branch, commit: Commit) -> tuple[Snapshot, Snapshot]:
    """The states before and after a commit, along its first parent."""
    before, after = commit.parents[0], commit.graph_commit_id
    return repository.snapshot_at(branch, before), repository.snapshot_at(branch, after)


def plan_of(
    outcome: MergeOutcome,
    request: MergeRequest,
    source: Snapshot,
    target: Snapshot,
    base: str,
    changes: Mapping[str, Mapping[str, int]],
    conflicts: tuple[Conflict, ...] = (),
) -> MergePlan:
    """The plan of a merge that comes to this."""
    return MergePlan(
        outcome,
        request.source.name,
        request.target.name,
        source.graph_commit_id,
        target.graph_commit_id,
        base,
        changes,
        conflicts,
        request.decisions,
        request.squash,
    )
