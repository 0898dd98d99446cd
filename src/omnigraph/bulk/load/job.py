"""A load as a job: workers read, check and stage the records; the driver checks keys and commits once.

::

    find         the files, and the slices they are cut into
    stage        each slice: records into rows, each row checked, good ones into data files     (workers)
    check        keys, unique groups, ends of edges, cardinality: on the staged key columns    (workers)
    merge        which rows are new and which replace others, against the pinned snapshot     (workers)
    commit       the ordinary write protocol, with the staged files                            (driver)

No table refers to the files before the commit. A job that ends early removes them, and one that is killed leaves a
record by which others can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

import pyarrow as pa

from omnigraph.bulk.jobs import destinations, job_record, planned_branch
from omnigraph.bulk.load.checking.joins import KeyJoins
from omnigraph.bulk.load.options import LoadOptions, LoadResult, Mode
from omnigraph.bulk.load.preparer import LoadPreparer, StagedInput
from omnigraph.bulk.load.sources.cutting import Cuts, certain_cuts, is_cut, likely_cuts
from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.slices import Slice, rows_per_file, slices_of
from omnigraph.bulk.load.staging.stager import SliceReport, StagePlan, stage_slice
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.runner import Runner
from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.resumable import resumable
from omnigraph.errors import BatchDone, BranchExists, BranchNotFound, SourceUnusable
from omnigraph.failpoints import hit
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.forks import discard_branch
from omnigraph.recovery.jobs import RunningJob, running
from omnigraph.settings import BulkSettings
from omnigraph.storage import layout
from omnigraph.write.base import Base, capture
from omnigraph.write.protocol import WriteRequest, commit_write


class RowSource(Protocol):
    """Rows that an engine holds, such as a DataFrame, and stages itself."""

    @property
    def name(self) -> str:
        """The name of the source in errors."""

    def stage(self, plan: StagePlan, first: int) -> list[SliceReport]:
        """Stage all rows; a report for each part that has any, numbered from ``first``."""


@dataclass(frozen=True, slots=True)
class LoadEngine:
    """What carries out one attempt at a load.

    ``runner`` runs its tasks, ``joins`` check keys that exceed the memory of a task, and ``rows`` are sources that
    the engine holds itself.
    """

    runner: Runner
    joins: KeyJoins
    rows: Sequence[RowSource] = ()


def load(
    repository: Repository,
    files: Sequence[SourceFile],
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    start: Callable[[], LoadEngine],
    *,
    repeats: bool = True,
) -> LoadResult:
    """Load files and the rows of the engine as one commit, or not at all.

    ``start`` makes the engine of an attempt. There is a second attempt if another writer creates the branch after
    the first one has staged files for it, if ``repeats`` says that the rows can be read again. A stream's batch
    that is done, or has no rows, raises BatchDone.
    """
    repository.require_writable()
    require_shared(repository.address)
    try:
        return _attempt(repository, files, options, embedder, start())
    except BranchExists:
        if not repeats:
            raise
        return _attempt(repository, files, options, embedder, start())


def _attempt(
    repository: Repository,
    files: Sequence[SourceFile],
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    engine: LoadEngine,
) -> LoadResult:
    branch, exists = _target(repository, options)
    base = capture(repository, branch if exists else repository.branches.find(options.fork_from or ""))
    plan = _plan(base, branch, files, options, embedder, engine.runner.job)
    pins = base.snapshot.tables.values()
    record = job_record(plan.job, "load", branch, pins, options.actor, forks=not exists)
    with running(repository, record) as job:
        staged = _stage(engine, plan, files, options)
        hit("load.after_stage")
        preparer = LoadPreparer(engine.runner, engine.joins, plan, staged, options)
        preparer.require_readable(repository)
        if exists:
            hit("load.after_check")
            return _commit(repository, job, branch, preparer, created=False)
        parent = repository.branches.find(options.fork_from or "")
        preparer.check(capture(repository, parent))
        with repository.locks.control() as lock:
            branch = repository.branches.create(branch.name, parent.name, lock, options.actor, branch.incarnation)
        try:
            hit("load.after_check")
            return _commit(repository, job, branch, preparer, created=True)
        except BaseException:
            discard_branch(repository, branch)
            raise


def commit_reports(
    repository: Repository,
    engine: LoadEngine,
    job: RunningJob,
    branch: Branch,
    plan: StagePlan,
    reports: Sequence[SliceReport],
    options: LoadOptions,
    source: str,
) -> LoadResult:
    """Commit the rows of one source that tasks have staged already; errors call it by its name."""
    staged = StagedInput.of(reports, [source] * len(reports), (), options.mode)
    preparer = LoadPreparer(engine.runner, engine.joins, plan, staged, options)
    preparer.require_readable(repository)
    return _commit(repository, job, branch, preparer, created=False)


def _target(repository: Repository, options: LoadOptions) -> tuple[Branch, bool]:
    """The branch to load into, and whether it exists. One that is to be forked gets its native name now, so that
    files can be staged in its tree."""
    try:
        return repository.branches.find(options.branch), True
    except BranchNotFound:
        if options.fork_from is None:
            raise
    return planned_branch(repository, options.branch, options.fork_from), False


def _plan(
    base: Base,
    branch: Branch,
    files: Sequence[SourceFile],
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    job: str,
) -> StagePlan:
    return StagePlan(
        job,
        base.catalog,
        base.snapshot.schema_digest,
        destinations(base, branch),
        resumable(embedder, base.repository.address, layout.job_folder(job)),
        error_limit=options.error_limit,
        stop_at_limit=options.max_errors is not None,
        skip_bad=options.skip_bad,
        writes_bad_records=options.bad_records is not None,
        rows_per_file=rows_per_file(files, options.settings),
        blobs=options.blobs,
    )


def _stage(engine: LoadEngine, plan: StagePlan, files: Sequence[SourceFile], options: LoadOptions) -> StagedInput:
    slices, reports = _stage_files(engine.runner, plan, files, options.settings)
    sources = [part.file.name for part in slices]
    for source in engine.rows:
        more = source.stage(plan, first=len(reports))
        reports += more
        sources += [source.name] * len(more)
    pa.default_memory_pool().release_unused()  # Arrow keeps what reading took, and no later step takes as much
    return StagedInput.of(reports, sources, slices, options.mode)


def _stage_files(
    runner: Runner, plan: StagePlan, files: Sequence[SourceFile], settings: BulkSettings
) -> tuple[list[Slice], list[SliceReport]]:
    """Stage files in slices; once more if large CSV files turn out not to have been cut at ends of records."""

    def staged(cuts: Cuts) -> tuple[list[Slice], list[SliceReport]]:
        slices = slices_of(files, runner.cores, settings, cuts)
        return slices, runner.run("reading and staging", partial(stage_slice, plan), slices)

    likely = likely_cuts(runner, files, settings)
    try:
        slices, reports = staged(likely)
        if not any(_is_doubtful(part, report, likely) for part, report in zip(slices, reports, strict=True)):
            return slices, reports
    except SourceUnusable:
        if not likely:
            raise
    return staged(certain_cuts(runner, files, settings))


def _is_doubtful(part: Slice, report: SliceReport, likely: Cuts) -> bool:
    """May a slice that others follow end elsewhere than with a record?"""
    return is_cut(part, likely) and (report.is_partial or not report.is_closed)


def _commit(
    repository: Repository, job: RunningJob, branch: Branch, preparer: LoadPreparer, *, created: bool
) -> LoadResult:
    options, staged = preparer.options, preparer.staged
    request = WriteRequest(
        "load",
        branch,
        options.actor,
        options.message,
        batch=options.batch,
        graph_commit_id=options.graph_commit_id,
    )
    written = commit_write(repository, request, preparer, job.lock)
    job.committed = written.files
    if written.commit is None and options.batch is not None:
        raise BatchDone(options.batch.stream, branch.name, options.batch.number)
    preparer.write_bad(repository)
    preparer.save_topologies(repository, branch)
    counts = {key: count - written.result.get(key, 0) for key, count in staged.counts.items()}
    return LoadResult(
        branch.name,
        options.mode.value,
        _counts(counts, "node"),
        _counts(counts, "edge"),
        written.commit,
        base_branch=options.fork_from,
        branch_created=created,
        warnings=tuple(sorted(staged.unembedded)),
        edges_without_identity=_edges_without_identity(staged, counts) if options.mode is Mode.MERGE else 0,
    )


def _edges_without_identity(staged: StagedInput, counts: Mapping[str, int]) -> int:
    """How many edges got an id that was made up for them; no more than were loaded, if bad ones were skipped."""
    found = staged.anonymous.items()
    return sum(min(number, counts[key]) for key, number in found if key.startswith("edge:"))


def _counts(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    """The counts of one kind of table, by type."""
    return {key.partition(":")[2]: count for key, count in sorted(counts.items()) if key.startswith(f"{kind}:")}
