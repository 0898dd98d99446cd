"""A load on Spark: the workers read, check and stage; the driver asks the questions and commits once.

::

    find         the files, and how they are cut into slices
    stage        each slice: records into rows, each row checked, good ones into data files     (workers)
    ask          keys, unique groups, ends of edges, cardinality: on the staged key columns    (workers)
    merge        which rows are new and which replace what, against the pinned base           (workers)
    commit       the ordinary write protocol, with the files as they are                       (driver)

Until the commit nothing refers to the files; a job that ends early removes them, and one that is killed leaves a
record from which anybody can.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from ulid import ULID

from omnigraph.bulk.destinations import destination
from omnigraph.bulk.load.forks import discard_branch
from omnigraph.bulk.load.joins import KeyJoins
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.preparing import Preparation, Staged
from omnigraph.bulk.load.sources import Slice, SourceFile, cut, rows_per_file
from omnigraph.bulk.load.staging import SliceReport, StagePlan, stage_slice
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.runner import Runner
from omnigraph.bulk.scratch import scratch_folder
from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.resumable import resumable
from omnigraph.errors import BatchDone, BranchNotFound
from omnigraph.failpoints import hit
from omnigraph.manifest.branches import Branch, native_name
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.jobs import JobRecord, RunningJob, running
from omnigraph.write.base import capture
from omnigraph.write.protocol import WriteRequest, commit_write
from omnigraph.write.rules import SHOWN


class RowSource(Protocol):
    """Rows that an engine holds, and stages where they are."""

    @property
    def name(self) -> str:
        """What errors call it."""

    def stage(self, plan: StagePlan, first: int) -> list[SliceReport]:
        """Stage all rows; a report per part that has any, numbered from ``first``."""


@dataclass(frozen=True, slots=True)
class Input:
    """The files of a load, and its other sources of rows."""

    files: Sequence[SourceFile] = ()
    rows: Sequence[RowSource] = ()


def load(
    repository: Repository,
    runner: Runner,
    joins: KeyJoins,
    given: Input,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    cores: int,
) -> LoadResult:
    """Load as one commit, or not at all. A stream's batch that is done, or has no rows, raises BatchDone."""
    repository.require_writable()
    require_shared(repository.address)
    branch, exists = _target(repository, options)
    ground = capture(repository, branch if exists else repository.branches.find(options.fork_from or ""))
    record = JobRecord(
        runner.job,
        "load",
        branch.name,
        branch.native,
        tuple(sorted(pin.location for pin in ground.snapshot.tables.values())),
        options.actor,
        dt.datetime.now(dt.UTC),
    )
    targets = {key: destination(repository, ground, branch, key) for key in ground.snapshot.tables}
    slices = cut(given.files, cores)
    plan = StagePlan(
        runner.job,
        ground.catalog,
        targets,
        resumable(embedder, repository.address, scratch_folder(runner.job)),
        most=options.max_errors or SHOWN,
        stops=options.max_errors is not None,
        skips=options.skip_bad,
        bad_records=options.bad_records,
        rows_per_file=rows_per_file(given.files),
    )
    with running(repository, record) as job:
        staged = _stage(runner, plan, slices, given.rows)
        staged.count(options.mode)
        hit("pipeline.after_stage")
        preparation = Preparation(runner, joins, plan, staged, options, slices, cores)
        preparation.require_readable(repository)
        if exists:
            hit("pipeline.after_check")
            return _commit(repository, job, branch, preparation, options, created=False)
        parent = repository.branches.find(options.fork_from or "")
        preparation.check(capture(repository, parent))
        with repository.locks.control() as lock:
            branch = repository.branches.create(branch.name, parent.name, lock, options.actor, branch.incarnation)
        try:
            hit("pipeline.after_check")
            return _commit(repository, job, branch, preparation, options, created=True)
        except BaseException:
            discard_branch(repository, branch)
            raise


def commit_reports(
    repository: Repository,
    runner: Runner,
    joins: KeyJoins,
    job: RunningJob,
    branch: Branch,
    plan: StagePlan,
    reports: list[SliceReport],
    options: LoadOptions,
    source: str,
) -> LoadResult:
    """Commit what workers have staged by themselves, all of it from one source, which errors call by its name."""
    staged = Staged(reports, [source] * len(reports))
    staged.count(options.mode)
    preparation = Preparation(runner, joins, plan, staged, options)
    preparation.require_readable(repository)
    return _commit(repository, job, branch, preparation, options, created=False)


def _target(repository: Repository, options: LoadOptions) -> tuple[Branch, bool]:
    """The branch to load into, and whether it exists; one that is to be forked gets its native name in advance, so
    that files can be staged where they will be needed."""
    try:
        return repository.branches.find(options.branch), True
    except BranchNotFound:
        if options.fork_from is None:
            raise
    name, _ = repository.branches.check_create(options.branch, options.fork_from)
    incarnation = str(ULID())
    return Branch(name, native_name(name, incarnation), incarnation, options.fork_from), False


def _stage(runner: Runner, plan: StagePlan, slices: list[Slice], sources: Sequence[RowSource]) -> Staged:
    reports: list[SliceReport] = runner.run("reading and staging", partial(stage_slice, plan), slices)
    staged = Staged(reports, [part.file.name for part in slices])
    for source in sources:
        more = source.stage(plan, first=len(staged.reports))
        staged.reports += more
        staged.sources += [source.name] * len(more)
    return staged


def _commit(
    repository: Repository,
    job: RunningJob,
    branch: Branch,
    preparation: Preparation,
    options: LoadOptions,
    *,
    created: bool,
) -> LoadResult:
    request = WriteRequest("load", branch, options.actor, options.message, batch=options.batch)
    written = commit_write(repository, request, preparation, job.lock)
    job.committed = written.files
    if written.commit is None:
        assert options.batch is not None  # noqa: S101  every other load commits
        raise BatchDone(options.batch.stream, branch.name, options.batch.number)
    preparation.write_bad(repository)
    staged, left_out = preparation.staged, written.result
    counts = {key: count - left_out.get(key, 0) for key, count in staged.counts.items()}
    return LoadResult(
        branch.name,
        options.mode.value,
        _counts(counts, "node"),
        _counts(counts, "edge"),
        written.commit,
        base_branch=options.fork_from,
        branch_created=created,
        warnings=tuple(sorted(staged.unembedded)),
    )


def _counts(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    """The counts of one kind of table, by type."""
    return {key.partition(":")[2]: count for key, count in sorted(counts.items()) if key.startswith(f"{kind}:")}
