"""Merging one branch into another: one commit with two parents, or all conflicts, or nothing to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from omnigraph.errors import (
    Conflict,
    ConflictKind,
    InvalidArgument,
    MergeConflicts,
    PreconditionFailed,
    RequestError,
)
from omnigraph.history.merging.adoption import Adoption, adoption
from omnigraph.history.merging.bases import MergeBase, merge_base, readable_states
from omnigraph.history.merging.brought import brought
from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
from omnigraph.history.merging.sides import Combine, Combined, Decisions, Three, combine_in_memory, merge_sides
from omnigraph.history.tables import RowDeltas
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import SchemaIR
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.storage.locks import Held
from omnigraph.write.base import Base
from omnigraph.write.evolution.apply import apply_schema
from omnigraph.write.evolution.plan import SchemaRequest
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write


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


def merge(repository: Repository, request: MergeRequest) -> MergeResult:
    """Merge, as one commit; raises MergeConflicts, with all of them, if anything stands in the way."""
    _check(request)
    source = repository.snapshot(request.source)
    _check_source(request, source)
    request = _with_schema(repository, request, source)

    def prepare(base: Base) -> Prepared[MergePlan]:
        plan, found = _compared(request, source, base)
        if plan.conflicts:
            raise MergeConflicts(plan.source, plan.target, plan.conflicts, found.total)
        if request.planned is not None and plan.digest != request.planned.digest:
            raise InvalidArgument("plan", "the merge would come to something else by now; preview it again")
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
    base = Base(repository, request.target, target)
    if source.schema_digest == target.schema_digest:
        return _compared(request, source, base)[0]
    return _previewed(request, source, base)[0]


def _with_schema(repository: Repository, request: MergeRequest, source: Snapshot) -> MergeRequest:
    """Let the target adopt what it lacks of the source's schema, by a commit of its own.

    Conflicts of rows are looked for before that, so that a merge which is not possible leaves the schema as it is.
    """
    target = repository.snapshot(request.target)
    if source.schema_digest == target.schema_digest:
        return request
    plan, found = _previewed(request, source, Base(repository, request.target, target))
    is_blocked = any(conflict.kind is ConflictKind.SCHEMA_CONFLICT for conflict in plan.conflicts)
    if found is None and not is_blocked:
        return request
    if found is None or plan.conflicts:
        raise MergeConflicts(plan.source, plan.target, plan.conflicts)
    if request.planned is not None:
        reason = "it changes the schema too, which is a commit of its own; merge the branch without a stored plan"
        raise InvalidArgument("plan", reason)
    message = f"schema of '{request.source.name}', to merge it"
    wanted = SchemaRequest(
        request.target,
        found.desired,
        actor=request.actor,
        message=message,
        if_commit=request.if_commit,
        adopted=found.ir,
    )
    commit = apply_schema(repository, wanted).commit
    if request.if_commit is None or commit is None:
        return request
    return replace(request, if_commit=commit.graph_commit_id)


def _previewed(request: MergeRequest, source: Snapshot, base: Base) -> tuple[MergePlan, Adoption | None]:
    """What a merge would do, and the schema that the target would adopt first; None if it need not."""
    repository, target = base.repository, base.snapshot
    ancestor = _base(repository, request, source, target)
    origin = repository.snapshot_at(request.target, ancestor.commit.graph_commit_id)
    wanted = adoption(repository, origin, source, target)
    if ancestor.commit.graph_commit_id == source.graph_commit_id or wanted is None:
        return _compared(request, source, base)[0], None
    outcome = MergeOutcome.MERGED
    if origin.graph_commit_id == target.graph_commit_id:
        outcome = MergeOutcome.FAST_FORWARD
    named = (outcome, request, source, target, ancestor.commit.graph_commit_id)
    if isinstance(wanted, tuple):
        return _plan(*named, {}, wanted), None
    virtual = replace(target, catalog=Catalog(wanted.ir), schema_digest="", tables=_renamed(target, wanted.ir))
    sides = Three(origin, source, virtual)
    found = merge_sides(base, sides, request.decisions, RowDeltas(repository.tables), {})
    counts = {key: table.counts() for key, table in found.theirs.items()}
    steps = tuple(str(step) for step in wanted.steps)
    return replace(_plan(*named, counts, tuple(found.conflicts)), schema=steps), wanted


def _renamed(target: Snapshot, ir: SchemaIR) -> dict[str, TablePin]:
    """The tables of a state by the keys that they have under another schema."""
    after = Catalog(ir)
    return {
        after.by_id[entity.id].table_key: target.tables[entity.table_key]
        for entity in target.catalog.by_id.values()
        if entity.id in after.by_id
    }


def _check(request: MergeRequest) -> None:
    if request.source.name == request.target.name:
        raise InvalidArgument("source", f"'{request.source.name}' cannot be merged into itself")


def _check_source(request: MergeRequest, source: Snapshot) -> None:
    """Refuse a source that has moved since the merge was planned."""
    expected = None if request.planned is None else request.planned.source_commit
    if expected is not None and expected != source.graph_commit_id:
        raise PreconditionFailed(request.source.name, expected, source.graph_commit_id)


def apply_request(plan: MergePlan, source: Branch, target: Branch) -> MergeRequest:
    """The request for exactly the merge that was planned; MergeConflicts if conflicts are left in the plan."""
    if plan.conflicts:
        raise MergeConflicts(plan.source, plan.target, plan.conflicts)
    if plan.source_commit is None or plan.target_commit is None:
        raise InvalidArgument("plan", "it names no commits; preview it on a graph that is opened for writing")
    return MergeRequest(
        source,
        target,
        decisions=plan.decisions,
        squash=plan.squash,
        if_commit=plan.target_commit,
        planned=plan,
    )


def _compared(request: MergeRequest, source: Snapshot, base: Base) -> tuple[MergePlan, Combined]:
    """Compare both branches with their merge base, and put their changes together."""
    repository, target = base.repository, base.snapshot
    ancestor = _base(repository, request, source, target)
    base_id = ancestor.commit.graph_commit_id
    if base_id == source.graph_commit_id:
        plan = _plan(MergeOutcome.ALREADY_UP_TO_DATE, request, source, target, base_id, {})
        return plan, Combined({}, frozenset())
    sides = Three(repository.snapshot_at(request.target, base_id), source, target)
    outcome = MergeOutcome.FAST_FORWARD if base_id == target.graph_commit_id else MergeOutcome.MERGED
    merges = [_around(repository, request.target, each) for each in ancestor.merges]
    sides = replace(sides, lost=brought(repository.tables, sides.base, merges, target))
    found = request.combine(base, sides, request.decisions)
    return _plan(outcome, request, source, target, base_id, found.counts, found.conflicts), found


def _base(repository: Repository, request: MergeRequest, source: Snapshot, target: Snapshot) -> MergeBase:
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
        request.decisions,
        request.squash,
    )
