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

from ulid import ULID

from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.resumable import resumable
from omnigraph.errors import BatchDone, BranchNotFound
from omnigraph.failpoints import hit
from omnigraph.manifest.branches import Branch, native_name
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.pipeline.frameloads import RowSource, stage_frames
from omnigraph.pipeline.pinned import require_shared
from omnigraph.pipeline.preparing import LeftOutOthers, Preparation, Staged
from omnigraph.pipeline.scratch import scratch_folder
from omnigraph.pipeline.sources import Slice, SourceFile, cut, rows_per_file
from omnigraph.pipeline.staging import SliceReport, StagePlan, stage_slice
from omnigraph.pipeline.tasks import Runner
from omnigraph.recovery.jobs import JobRecord, RunningJob, running
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import Destination
from omnigraph.write.base import Base, capture
from omnigraph.write.engines import LoadOptions
from omnigraph.write.forks import take_back
from omnigraph.write.protocol import WriteRequest, commit_write
from omnigraph.write.requests import LoadResult
from omnigraph.write.rules import SHOWN


@dataclass(frozen=True, slots=True)
class Input:
    """The files and DataFrames of a load."""

    files: Sequence[SourceFile] = ()
    frames: Sequence[RowSource] = ()


def load(
    repository: Repository,
    runner: Runner,
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
        tuple(sorted(pin.location for pin in ground.state.tables.values())),
        options.actor,
        dt.datetime.now(dt.UTC),
    )
    targets = {key: destination(repository, ground, branch, key) for key in ground.state.tables}
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
        staged = _stage(runner, plan, slices, given.frames)
        staged.count(options.mode)
        hit("pipeline.after_stage")
        preparation = Preparation(runner, plan, staged, options, slices, cores)
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
            take_back(repository, branch)
            raise


def commit_reports(
    repository: Repository,
    runner: Runner,
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
    preparation = Preparation(runner, plan, staged, options)
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


def destination(repository: Repository, base: Base, branch: Branch, table_key: str) -> Destination:
    """Where the files of a table go that are to be committed to a branch."""
    pin = base.pin(table_key)
    native = branch.native
    folder = f"{repository.address.lance_root}/{layout.native_prefix(pin.location, native)}"
    version = str(base.open(table_key).data_storage_version)
    return Destination(table_key, repository.address, folder, base.schema(table_key), version)


def _stage(runner: Runner, plan: StagePlan, slices: list[Slice], frames: Sequence[RowSource]) -> Staged:
    reports: list[SliceReport] = runner.run("reading and staging", partial(stage_slice, plan), slices)
    staged = Staged(reports, [part.file.name for part in slices])
    for frame in frames:
        more = stage_frames(runner, plan, frame, first=len(staged.reports))
        staged.reports += more
        staged.sources += [frame.name] * len(more)
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
    commit = _committed(repository, job, branch, preparation, options)
    job.committed = preparation.used
    if commit is None:
        assert options.batch is not None  # noqa: S101  every other load commits
        raise BatchDone(options.batch.stream, branch.name, options.batch.number)
    preparation.write_bad(repository)
    staged, left_out = preparation.staged, preparation.bad.left_out()
    skipped = left_out if options.skip_bad else {}
    counts = {key: count - skipped.get(key, 0) for key, count in staged.counts.items()}
    return LoadResult(
        branch.name,
        options.mode.value,
        _counts(counts, "node"),
        _counts(counts, "edge"),
        commit,
        base_branch=options.fork_from,
        branch_created=created,
        warnings=tuple(sorted(staged.unembedded)),
    )


def _committed(
    repository: Repository, job: RunningJob, branch: Branch, preparation: Preparation, options: LoadOptions
) -> Commit | None:
    """Commit; the message tells how many records are left out, so these are known, and written down, before."""
    while True:
        if options.skip_bad:
            preparation.check(capture(repository, branch))
            preparation.write_bad(repository)
        message = preparation.announced = preparation.bad.message(options.message)
        request = WriteRequest("load", branch, options.actor, message, batch=options.batch)
        try:
            return commit_write(repository, request, preparation, job.lock)
        except LeftOutOthers:
            continue


def _counts(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    """The counts of one kind of table, by type."""
    return {key.partition(":")[2]: count for key, count in sorted(counts.items()) if key.startswith(f"{kind}:")}
