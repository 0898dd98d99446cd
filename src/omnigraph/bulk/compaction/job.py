"""`optimize` for tables of any size: small ones in the calling thread, large ones by tasks.

::

    plan         groups of small files, and segments of indexes                     (driver)
    rewrite      each group as a few files, each segment                            (workers)
    commit       the ordinary write protocol, with what was written                 (driver)

No table refers to the new files before the commit; they are removed if there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Self

from omnigraph.bulk.compaction.tasks import RewriteTask, SegmentTask, build_segment, rewrite_group
from omnigraph.bulk.jobs import LateJob
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.runner import Engine, RunnerChoice
from omnigraph.failpoints import hit
from omnigraph.maintenance.optimize import WRITER, OptimizeReport, OptimizeRequest, Workshop, optimize
from omnigraph.manifest.repository import Repository
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import Scheme
from omnigraph.storage.stage.compaction import CompactionPlan, Rewritten
from omnigraph.storage.stage.indexes import BuiltSegment, SegmentBuild
from omnigraph.storage.tables import TableRef

LARGE_STEP: Final = 200_000_000
"""About how many rows one step writes again or indexes on Spark."""


def optimize_large(
    repository: Repository, request: OptimizeRequest, runners: RunnerChoice, settings: BulkSettings
) -> OptimizeReport:
    """Optimize a branch; the work on large tables is done by tasks."""
    if runners.engine is Engine.SPARK:
        require_shared(repository.address)
    if runners.needs_spark:
        request = replace(request, step_rows=LARGE_STEP)
    with OptimizeJob(repository, request, runners, settings) as job:
        return optimize(repository, request, job)


class OptimizeJob(Workshop):
    """Does the work of one run, table by table, each in the way that suits its size.

    It is also the lock that a commit verifies. At its end it removes the files that no table refers to.
    """

    def __init__(
        self, repository: Repository, request: OptimizeRequest, runners: RunnerChoice, settings: BulkSettings
    ) -> None:
        super().__init__(repository)
        self._repository = repository
        self._runners = runners
        self._settings = settings
        self._job = LateJob(repository, runners, WRITER, request.branch, request.actor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._job.end(kind, error, trace)

    def verify(self) -> None:
        """Raise LockLost if the job has lost its lock: the process that took it may have removed staged files."""
        self._job.verify()

    def rewrite(self, ref: TableRef, plan: CompactionPlan) -> list[Rewritten]:
        """Write the groups of a plan again."""
        if self._is_small(plan):
            self._runners.local().require_active()
            return super().rewrite(ref, plan)
        runner, job = self._job.begin()
        address = self._repository.address
        tasks = [RewriteTask(job.record.job, address, ref, group) for group in plan.groups]
        done = runner.run("writing files again", rewrite_group, tasks)
        hit("optimize.after_tasks")
        return done

    def index(self, ref: TableRef, builds: Sequence[SegmentBuild]) -> list[BuiltSegment]:
        """Build segments of indexes."""
        if self._repository.address.scheme is Scheme.MEMORY or not self._runners.needs_spark:
            self._runners.local().require_active()
            return super().index(ref, builds)
        runner, _ = self._job.begin()
        tasks = [SegmentTask(self._repository.address, ref, build) for build in builds]
        return runner.run("building indexes", build_segment, tasks)

    def _is_small(self, plan: CompactionPlan) -> bool:
        if self._repository.address.scheme is Scheme.MEMORY:
            return True
        files = (file for group in plan.groups for fragment in group.fragments for file in fragment.files)
        size = sum(file.file_size_bytes or 0 for file in files)
        return not self._runners.needs_spark and size <= self._settings.small_rewrite
