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
from dataclasses import dataclass, field, replace
from functools import partial

from ulid import ULID

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import BranchNotFound, ConstraintViolation, DataError, RecordError, RecordProblem
from omnigraph.failpoints import hit
from omnigraph.manifest.branches import Branch, native_name
from omnigraph.manifest.repository import Repository
from omnigraph.pipeline.asking import raise_objections
from omnigraph.pipeline.badrecords import BadRecords
from omnigraph.pipeline.checks import Ground, light
from omnigraph.pipeline.committing import staged_tables
from omnigraph.pipeline.frameloads import FrameSource, stage_frames
from omnigraph.pipeline.merging import Matches, losers, replaced_rows
from omnigraph.pipeline.pinned import PinnedGraph, require_shared
from omnigraph.pipeline.scratch import Drops
from omnigraph.pipeline.skipping import find_bad_rows
from omnigraph.pipeline.sources import Slice, SourceFile, cut
from omnigraph.pipeline.staging import SliceReport, StagePlan, stage_slice
from omnigraph.pipeline.tasks import Runner
from omnigraph.recovery.jobs import JobRecord, RunningJob, running
from omnigraph.storage import layout
from omnigraph.storage.datafiles import Destination, StagedFile
from omnigraph.write.base import Base, capture
from omnigraph.write.engines import LoadOptions
from omnigraph.write.evaluator import read_set
from omnigraph.write.loads import Mode
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.requests import LoadResult
from omnigraph.write.rules import SHOWN


@dataclass(frozen=True, slots=True)
class Input:
    """The files and DataFrames of a load."""

    files: Sequence[SourceFile] = ()
    frames: Sequence[FrameSource] = ()


@dataclass(slots=True)
class _Staged:
    """What the first pass found and left, in the order of the input."""

    reports: list[SliceReport]
    sources: list[str]
    files: dict[str, tuple[StagedFile, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    unembedded: set[str] = field(default_factory=set)

    def before(self) -> list[int]:
        """How many lines of its file come before each slice."""
        lines: dict[str, int] = {}
        counted: list[int] = []
        for report, source in zip(self.reports, self.sources, strict=True):
            counted.append(lines.get(source, 0))
            lines[source] = counted[-1] + report.lines
        return counted


def load(
    repository: Repository,
    runner: Runner,
    given: Input,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    cores: int,
) -> LoadResult:
    """Load as one commit, or not at all."""
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
    targets = {key: _destination(repository, ground, branch, key) for key in ground.state.tables}
    slices = cut(given.files, cores)
    bad = BadRecords(options.bad_records, skips=options.skip_bad)
    plan = StagePlan(
        runner.job,
        ground.catalog,
        targets,
        embedder,
        most=max(SHOWN, options.max_errors or 0),
        stops=options.max_errors is not None,
        skips=options.skip_bad,
        bad_records=options.bad_records,
    )
    with running(repository, record) as job:
        staged = _stage(runner, plan, slices, given.frames)
        bad.note_unreadable(repository, runner, plan, slices, staged.reports, staged.before())
        if not options.skip_bad and any(report.errors for report in staged.reports):
            bad.finish(repository.address)
            _raise_unreadable(staged, plan.most)
        hit("pipeline.after_stage")
        preparation = _Preparation(runner, plan, slices, staged, options, bad, cores)
        if not exists:
            preparation.check(ground)
            with repository.locks.control() as lock:
                branch = repository.branches.create(
                    branch.name, options.fork_from or "", lock, options.actor, branch.incarnation
                )
        hit("pipeline.after_check")
        return _commit(repository, job, branch, preparation, options, created=not exists)


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


def _destination(repository: Repository, base: Base, branch: Branch, table_key: str) -> Destination:
    pin = base.pin(table_key)
    native = branch.native
    folder = f"{repository.address.lance_root}/{layout.native_prefix(pin.location, native)}"
    version = str(base.open(table_key).data_storage_version)
    return Destination(table_key, folder, base.schema(table_key), version, dict(repository.address.options))


def _stage(runner: Runner, plan: StagePlan, slices: list[Slice], frames: Sequence[FrameSource]) -> _Staged:
    reports: list[SliceReport] = runner.run("reading and staging", partial(stage_slice, plan), slices)
    staged = _Staged(reports, [part.file.name for part in slices])
    for frame in frames:
        more = stage_frames(runner, plan, frame, first=len(staged.reports))
        staged.reports += more
        staged.sources += [frame.name] * len(more)
    files: dict[str, list[StagedFile]] = {}
    for report in staged.reports:
        for file in report.files:
            files.setdefault(file.table_key, []).append(file)
        for key, count in report.records.items():
            staged.counts[key] = staged.counts.get(key, 0) + count
        staged.unembedded |= report.unembedded
    staged.files = {key: tuple(files[key]) for key in staged.counts if key in files}
    return staged


def _raise_unreadable(staged: _Staged, most: int) -> None:
    """Raise what single records are wrong with: first those that cannot be read, then those that break a rule."""
    before = staged.before()
    located = list(zip(staged.reports, staged.sources, before, strict=True))
    unreadable = sum(report.unreadable_total for report in staged.reports)
    if unreadable:
        problems = [
            RecordProblem(source, bad.line + skipped, bad.column, bad.reason)
            for report, source, skipped in located
            for bad in report.unreadable
        ]
        raise RecordError(problems[:most], unreadable)
    broken = sum(report.violations_total for report in staged.reports)
    if broken:
        violations = [
            replace(violation, line=None if violation.line is None else violation.line + skipped)
            for report, _, skipped in located
            for violation in report.violations
        ]
        raise ConstraintViolation(violations[:most], broken)


class _Preparation:
    """The staged files against one state of the branch after another: asked once per state."""

    def __init__(
        self,
        runner: Runner,
        plan: StagePlan,
        slices: list[Slice],
        staged: _Staged,
        options: LoadOptions,
        bad: BadRecords,
        cores: int,
    ) -> None:
        self.runner = runner
        self.plan = plan
        self.slices = slices
        self.staged = staged
        self.options = options
        self.bad = bad
        self.cores = cores
        self.used: set[str] = set()
        self._checked: tuple[object, Ground, Matches] | None = None

    def check(self, base: Base) -> tuple[Ground, Matches]:
        """Ask everything there is to ask about the staged rows on top of a state; raises what objects."""
        pins = {key: (pin.location, pin.table_version) for key, pin in base.state.tables.items()}
        if self._checked is not None and self._checked[0] == pins:
            return self._checked[1], self._checked[2]
        graph = PinnedGraph(base.repository.address, base.catalog, dict(base.state.tables))
        ground = Ground(
            graph,
            base.branch,
            light(base.state),
            self.options.mode,
            self.plan.targets,
            self.staged.files,
            left_out={
                (report.slice, key): tuple(places)
                for report in self.staged.reports
                for key, places in report.left_out.items()
            },
            most=self.plan.most,
        )
        ground = replace(ground, drops=losers(self.runner, ground))
        if self.options.skip_bad:
            ground = replace(ground, drops=self._without_bad(ground))
        try:
            raise_objections(self.runner, ground, self.cores, self.slices, self.staged.before())
        except DataError:
            if self.bad.path is not None and not self.options.skip_bad:
                self._without_bad(ground)
                self.bad.finish(ground.graph.address)
            raise
        matches = replaced_rows(self.runner, ground)
        self._checked = (pins, ground, matches)
        return ground, matches

    def _without_bad(self, ground: Ground) -> Drops:
        """What is not to be loaded if records that are wrong beside others are left out too; they are noted."""
        drops, rows = find_bad_rows(self.runner, ground)
        self.bad.note_rows(ground.graph.address, self.runner, ground.graph.catalog, self.slices, rows)
        return drops

    def __call__(self, base: Base) -> Prepared:
        ground, matches = self.check(base)
        stages = staged_tables(self.runner, ground, matches, self.used)
        reads = _reads(ground)
        return Prepared({}, self.options.mode is not Mode.OVERWRITE, lineage_only=True, stages=stages, reads=reads)


def _reads(ground: Ground) -> frozenset[str]:
    """The tables whose rows decided whether the load is allowed."""
    empty = {key: ground.change(key, ["id"], ()) for key in ground.files}
    read = read_set(empty, ground.graph.catalog)
    for key in ground.files:
        kind, _, name = key.partition(":")
        if kind == "edge":
            edge = ground.graph.catalog.edges[name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
    return frozenset(read)


def _commit(
    repository: Repository,
    job: RunningJob,
    branch: Branch,
    preparation: _Preparation,
    options: LoadOptions,
    *,
    created: bool,
) -> LoadResult:
    if options.skip_bad:
        preparation.check(capture(repository, branch))
    request = WriteRequest("load", branch, options.actor, preparation.bad.message(options.message))
    commit = commit_write(repository, request, preparation)
    assert commit is not None  # noqa: S101  a load always commits
    job.committed = preparation.used
    staged = preparation.staged
    preparation.bad.finish(repository.address)
    counts = {key: count - preparation.bad.left_out.get(key, 0) for key, count in staged.counts.items()}
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


def _counts(counts: Mapping[str, int], kind: str) -> dict[str, int]:
    """The counts of one kind of table, by type."""
    return {key.partition(":")[2]: count for key, count in sorted(counts.items()) if key.startswith(f"{kind}:")}
