"""`maintain`: everything that keeps a graph fast and small, as far as a policy asks for it.

::

    heal         what interrupted writes left is finished or undone
    jobs         files of bulk jobs that were killed are removed
    optimize     each branch: small files, and indexes that lack rows
    cleanup      old states, only if the policy says how much of the history stays

One process at a time maintains a graph. A step that fails is reported, and the others go on; the next run does
what a killed one has not finished. Writers and readers go on meanwhile.
"""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from omnigraph.arguments import number_argument
from omnigraph.errors import BranchNotFound, InvalidArgument, LockLost, LockTimeout, MaintenanceRunning, OmniError
from omnigraph.failpoints import hit
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.maintenance.cleanup.report import CleanupReport
from omnigraph.maintenance.cleanup.retention import Duration, Retention, retention
from omnigraph.maintenance.cleanup.run import cleanup
from omnigraph.maintenance.index_plan import IndexLag
from omnigraph.maintenance.optimize import OptimizeReport, OptimizeRequest, optimize
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.audit import Recovery
from omnigraph.recovery.heal import heal
from omnigraph.recovery.jobs import LeftJob, reclaim
from omnigraph.storage.locks import Held


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """From when on maintenance is worth its commits, and how much of the history stays.

    All of the history stays unless ``keep`` or ``older_than`` is given; they and ``grace`` are those of `cleanup`.
    """

    small_files: int = 8
    """Neighbouring small files of a table are put together if there are at least so many."""
    index_lag: int = 1_000
    """Indexes catch up if they lack more rows than this, or more than a tenth of a table."""
    keep: int | None = None
    older_than: Duration | None = None
    grace: Duration | None = None

    @property
    def retention(self) -> Retention | None:
        """How much of the history stays; None if all of it. InvalidArgument if that makes no sense."""
        if self.keep is None and self.older_than is None:
            if self.grace is not None:
                raise InvalidArgument(
                    "grace", "it needs keep or older_than, without which the whole history stays"
                )
            return None
        return retention(self.keep, self.older_than, self.grace)

    @property
    def lag(self) -> IndexLag:
        """How many rows indexes may lack."""
        if number_argument("index_lag", self.index_lag) < 0:
            raise InvalidArgument("index_lag", f"it is a number of rows, not {self.index_lag}")
        return IndexLag(self.index_lag)

    @property
    def fewest_files(self) -> int:
        """How many small files are put together at least."""
        if number_argument("small_files", self.small_files) < 2:
            raise InvalidArgument("small_files", f"two or more files can be put together, not {self.small_files}")
        return self.small_files


@dataclass(frozen=True, slots=True)
class MaintenanceFailure:
    """A step that failed, the branch that it was about, and why."""

    step: str
    branch: str | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"step": self.step, "branch": self.branch, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class MaintenanceReport:
    """What one run did. ``cleanup`` is None if the policy keeps the whole history, or if the cleanup failed."""

    recovered: tuple[Recovery, ...]
    jobs: tuple[LeftJob, ...]
    branches: tuple[OptimizeReport, ...]
    cleanup: CleanupReport | None
    failures: tuple[MaintenanceFailure, ...]

    @property
    def is_idle(self) -> bool:
        """Was there nothing to do?"""
        removed = 0 if self.cleanup is None else self.cleanup.files_removed + self.cleanup.objects_removed
        worked = any(branch.commits for branch in self.branches)
        return not (self.recovered or self.jobs or worked or removed or self.failures)

    def as_json(self) -> dict[str, Any]:
        return {
            "recovered": [recovery.as_json() for recovery in self.recovered],
            "jobs": [job.as_json() for job in self.jobs],
            "branches": [branch.as_json() for branch in self.branches],
            "cleanup": None if self.cleanup is None else self.cleanup.as_json(),
            "failures": [failure.as_json() for failure in self.failures],
        }


def maintain(repository: Repository, policy: MaintenancePolicy, actor: str | None = None) -> MaintenanceReport:
    """Do what the policy asks for; MaintenanceRunning if another process, or another thread, does so already."""
    repository.require_writable()
    run = _Run(repository, policy.fewest_files, policy.lag, policy.retention, actor)
    with ExitStack() as stack:
        try:
            run.lock = stack.enter_context(repository.locks.maintenance())
        except LockTimeout as error:
            raise MaintenanceRunning(str(repository.address)) from error
        hit("maintain.after_lock")
        return run.all_steps()


@dataclass(slots=True)
class _Run:
    """One run: what it is to do, and what came of it so far."""

    repository: Repository
    small_files: int
    lag: IndexLag
    retention: Retention | None
    actor: str | None
    lock: Held | None = None
    failures: list[MaintenanceFailure] = field(default_factory=list)

    def all_steps(self) -> MaintenanceReport:
        """Do one step after the other."""
        recovered: list[Recovery] = []
        jobs: list[LeftJob] = []
        branches: list[OptimizeReport] = []
        cleaned: list[CleanupReport] = []
        self._try("heal", None, lambda: recovered.extend(heal(self.repository)))
        self._try("jobs", None, lambda: jobs.extend(reclaim(self.repository)))
        for branch in self._branches():
            self._try("optimize", branch.name, partial(self._optimize, branch, branches))
            hit("maintain.between_branches")
        keeping = self.retention
        if keeping is not None:
            self._try("cleanup", None, lambda: cleaned.append(cleanup(self.repository, keeping)))
        hit("maintain.before_end")
        return MaintenanceReport(
            tuple(recovered), tuple(jobs), tuple(branches), next(iter(cleaned), None), tuple(self.failures)
        )

    def _branches(self) -> list[Branch]:
        found: list[Branch] = []
        self._try("optimize", None, lambda: found.extend(self.repository.branches.all()))
        return found

    def _try(self, step: str, branch: str | None, work: Callable[[], None]) -> None:
        """Do one step. If it fails, note why, unless its branch has been deleted meanwhile."""
        if self.lock is not None:
            self.lock.verify()
        try:
            work()
        except LockLost:
            raise
        except BranchNotFound as error:
            if branch is None:
                self.failures.append(MaintenanceFailure(step, branch, str(error)))
        except OmniError as error:
            self.failures.append(MaintenanceFailure(step, branch, str(error)))

    def _optimize(self, branch: Branch, done: list[OptimizeReport]) -> None:
        keys = table_keys(self.repository.snapshot(branch).catalog, None)
        request = OptimizeRequest(branch, keys, self.actor, self.small_files, self.lag)
        done.append(optimize(self.repository, request))


Outcome = MaintenanceReport | OmniError
"""What came of one run: its report, or why there was none."""


def maintain_every(
    run: Callable[[], MaintenanceReport],
    interval: dt.timedelta,
    stop: threading.Event,
    listener: Callable[[Outcome], None],
) -> None:
    """Maintain a graph again and again until ``stop`` is set, with pauses between the runs.

    A run that fails, or that finds another one going on, is reported and tried again after the next pause.
    """
    while not stop.is_set():
        try:
            listener(run())
        except OmniError as error:
            listener(error)
        stop.wait(interval.total_seconds())
