"""Merging one branch into another: one commit with two parents, or all conflicts, or nothing to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from omnigraph.arguments import LONGEST_ACTOR, LONGEST_MESSAGE, optional_text
from omnigraph.errors import (
    HistoryReclaimed,
    InvalidArgument,
    MergeConflicts,
    MergeUnfinished,
    OmniError,
    OutcomeUnknown,
    PreconditionFailed,
)
from omnigraph.failpoints import hit
from omnigraph.history.merging.adopting import Previewed, preview
from omnigraph.history.merging.comparison import MergeRequest, compared
from omnigraph.history.merging.plans import MergeOutcome, MergePlan, MergeResult
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.recovery.heal import heal_branch
from omnigraph.storage.locks import CommitLock
from omnigraph.write.base import Base, capture
from omnigraph.write.committing.outcomes import InDoubt, find_out
from omnigraph.write.evolution.apply import SchemaChange
from omnigraph.write.protocol import Prepare, Prepared, WriteRequest, commit_holding, commit_write


def merge(repository: Repository, request: MergeRequest) -> MergeResult:
    """Merge, as one commit; raises MergeConflicts, with all of them, if anything stands in the way.

    If the target has to adopt the source's schema, that is a commit of its own before it. Both are checked before
    either is made, and no other writer can commit in between.
    """
    _check(request)
    with _while_there(repository, request):
        source = repository.snapshot(request.source)
        _check_source(request, source)
        target = repository.snapshot(request.target)
        if source.schema_digest != target.schema_digest:
            found = _possible(preview(request, source, Base(repository, request.target, target)))
            if found.schema is not None:
                return _merge_adopting(repository, request, source, (target, found))
        written = commit_write(repository, _write(request, source), _prepare(request, source), request.job_lock)
        return MergeResult(written.result, written.commit)


@contextmanager
def _while_there(repository: Repository, request: MergeRequest) -> Iterator[None]:
    """Raise BranchNotFound if the rows of a branch are gone because it was deleted meanwhile."""
    try:
        yield
    except HistoryReclaimed:
        for branch in (request.source, request.target):
            repository.manifest.require_branch(branch.ref)
        raise


def _write(request: MergeRequest, source: Snapshot) -> WriteRequest:
    parents = () if request.squash or source.graph_commit_id is None else (source.graph_commit_id,)
    return WriteRequest(
        "merge",
        request.target,
        request.actor,
        request.message,
        request.if_commit,
        merged_parents=parents,
        graph_commit_id=request.graph_commit_id,
    )


def _prepare(request: MergeRequest, source: Snapshot) -> Prepare[MergePlan]:
    def prepare(base: Base) -> Prepared[MergePlan]:
        plan, found = compared(request, source, base)
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

    return prepare


def _merge_adopting(
    repository: Repository, request: MergeRequest, source: Snapshot, checked: tuple[Snapshot, Previewed]
) -> MergeResult:
    """Adopt the source's schema and merge, while no other writer can commit to the target.

    ``checked`` is a state of the target and what the merge comes to there. It is looked at again only if the
    target has moved since.
    """
    if request.planned is not None:
        reason = "it changes the schema too, which is a commit of its own; merge the branch without a stored plan"
        raise InvalidArgument("plan", reason)
    repository.require_writable()
    optional_text("actor", request.actor, LONGEST_ACTOR)
    optional_text("message", request.message, LONGEST_MESSAGE)
    hit("merge.after_check")
    with repository.locks.commit(request.target.name) as lock:
        heal_branch(repository, request.target.name, lock)
        base = capture(repository, request.target)
        seen, found = checked
        if base.snapshot.manifest_version != seen.manifest_version:
            found = _possible(preview(request, source, base))
        adopted = None if found.schema is None else SchemaChange(repository, found.schema).apply_holding(lock)
        if not isinstance(adopted, InDoubt):
            schema = None if adopted is None else adopted.commit
            plan, end = _merge_holding(repository, request, source, schema, lock)
    if isinstance(adopted, InDoubt):
        return merge(repository, _behind(request, find_out(repository, adopted)))
    with _unfinished_without(request, schema):
        commit = find_out(repository, end) if isinstance(end, InDoubt) else end
    return MergeResult(replace(plan, schema=found.plan.schema), commit)


def _merge_holding(
    repository: Repository, request: MergeRequest, source: Snapshot, schema: Commit | None, lock: CommitLock
) -> tuple[MergePlan, Commit | InDoubt | None]:
    """Merge the rows behind the commit that has adopted the schema."""
    behind = _behind(request, schema)
    with _unfinished_without(request, schema):
        hit("merge.after_schema")
        return commit_holding(repository, _write(behind, source), _prepare(behind, source), lock)


def _behind(request: MergeRequest, schema: Commit | None) -> MergeRequest:
    """The request for a target that has adopted a schema since its caller looked at it."""
    if schema is None or request.if_commit is None:
        return request
    return replace(request, if_commit=schema.graph_commit_id)


@contextmanager
def _unfinished_without(request: MergeRequest, schema: Commit | None) -> Iterator[None]:
    """Raise MergeUnfinished if a block fails, after whose beginning the target has a schema without its rows."""
    try:
        yield
    except OutcomeUnknown:
        raise
    except OmniError as error:
        if schema is None:
            raise
        names = request.source.name, request.target.name
        raise MergeUnfinished(*names, schema.graph_commit_id, str(error)) from error


def _possible(found: Previewed) -> Previewed:
    """What a merge comes to; MergeConflicts if it is not possible."""
    if found.plan.conflicts:
        raise MergeConflicts(found.plan.source, found.plan.target, found.plan.conflicts, found.total)
    return found


def preview_merge(repository: Repository, request: MergeRequest) -> MergePlan:
    """What a merge would do now; nothing is written."""
    _check(request)
    source, target = repository.snapshot(request.source), repository.snapshot(request.target)
    if request.if_commit is not None and request.if_commit != target.graph_commit_id:
        raise PreconditionFailed(request.target.name, request.if_commit, target.graph_commit_id)
    base = Base(repository, request.target, target)
    if source.schema_digest == target.schema_digest:
        return compared(request, source, base)[0]
    return preview(request, source, base).plan


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
