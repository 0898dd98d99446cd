"""What a graph does for its own upkeep: indexes, compaction, repairs, copies, interrupted writes, killed jobs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from omnigraph.errors import InvalidArgument
from omnigraph.keywords import At, EngineName, engine_named
from omnigraph.lang.schema.lookup import table_keys
from omnigraph.manifest.refs.branches import Branch
from omnigraph.policy.actions import Action
from omnigraph.storage.address import parse_address
from omnigraph.versions import VersionedGraph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from omnigraph.bulk.runner import Listener, RunnerChoice
    from omnigraph.maintenance.cleanup.report import CleanupReport
    from omnigraph.maintenance.cleanup.retention import Duration
    from omnigraph.maintenance.copying.backup import BackupReport
    from omnigraph.maintenance.copying.clone import CopyReport
    from omnigraph.maintenance.copying.extent import Wanted
    from omnigraph.maintenance.copying.transfer import CopyEvent
    from omnigraph.maintenance.doctor.report import DoctorReport, ProgressListener
    from omnigraph.maintenance.indices import IndexReport
    from omnigraph.maintenance.maintain import MaintenancePolicy, MaintenanceReport
    from omnigraph.maintenance.optimize import OptimizeReport, OptimizeRequest
    from omnigraph.maintenance.repair.report import RepairReport
    from omnigraph.read.limits import Cancellation
    from omnigraph.recovery.audit import Recovery
    from omnigraph.recovery.jobs import LeftJob


class MaintainedGraph(VersionedGraph):
    """A graph with the methods that keep it fast and whole. None of them changes a row."""

    def ensure_indices(self, *, branch: str | None = None, actor: str | None = None) -> IndexReport:
        """Build the indexes that a branch's tables lack, as one commit; what waits is reported with its reason."""
        from omnigraph.maintenance.derived import save_derived
        from omnigraph.maintenance.indices import ensure_indices

        self._allow(Action.ADMIN, actor=actor)
        self._repository.require_writable()
        found = self._repository.branches.find(self._named(branch))
        report = ensure_indices(self._repository, found, self._who(actor))
        save_derived(self._repository, found, self._settings.read)
        return report

    def optimize(
        self,
        *,
        branch: str | None = None,
        types: Iterable[str] | None = None,
        actor: str | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> OptimizeReport:
        """Put the many small files of a branch's tables together, and bring their indexes up to date.

        This takes a few commits, none of which changes a row. A table that is shared with another branch, or that
        other writers change meanwhile, is skipped and reported with the reason.

        Up to 128 MiB of small files of a table are written again in the calling thread, more by tasks, on Spark if
        there is one; ``engine`` overrides that.
        """
        from omnigraph.spark.choice import SparkChoice

        self._allow(Action.ADMIN, actor=actor)
        found = self._repository.branches.find(self._named(branch))
        runners = SparkChoice(spark, listener, cancellation).or_local(engine_named(engine))
        (report,) = self._optimized([found], types, actor, runners)
        return report

    def optimize_all(
        self,
        *,
        types: Iterable[str] | None = None,
        actor: str | None = None,
        engine: EngineName = "auto",
        spark: SparkSession | str | None = None,
        listener: Listener | None = None,
        cancellation: Cancellation | None = None,
    ) -> list[OptimizeReport]:
        """Optimize every branch, each as `optimize` does; what became of each."""
        from omnigraph.spark.choice import SparkChoice

        self._allow(Action.ADMIN, actor=actor)
        runners = SparkChoice(spark, listener, cancellation).or_local(engine_named(engine))
        return self._optimized(self._repository.branches.all(), types, actor, runners)

    def _optimized(
        self, branches: Iterable[Branch], types: Iterable[str] | None, actor: str | None, runners: RunnerChoice
    ) -> list[OptimizeReport]:
        self._repository.require_writable()
        chosen = None if types is None else list(types)
        requests = [self._optimize_request(each, chosen, actor) for each in branches]
        return [self._optimized_one(each, runners) for each in requests]

    def _optimized_one(self, request: OptimizeRequest, runners: RunnerChoice) -> OptimizeReport:
        from omnigraph.bulk.compaction.job import optimize_large
        from omnigraph.maintenance.derived import save_derived

        report = optimize_large(self._repository, request, runners, self._settings.bulk)
        save_derived(self._repository, request.branch, self._settings.read)
        return report

    def _optimize_request(self, branch: Branch, types: Iterable[str] | None, actor: str | None) -> OptimizeRequest:
        from omnigraph.maintenance.optimize import OptimizeRequest

        keys = table_keys(self._repository.snapshot(branch).catalog, types)
        return OptimizeRequest(branch, keys, self._who(actor))

    def maintain(self, policy: MaintenancePolicy | None = None, *, actor: str | None = None) -> MaintenanceReport:
        """Do what keeps a graph fast and small: recover interrupted writes, remove what killed jobs left, optimize
        every branch where that is worth it, and clean up if the policy says how much of the history stays.

        Only one process at a time maintains a graph; MaintenanceRunning if another one does. A step that fails is
        reported, and the others go on.
        """
        from omnigraph.maintenance.derived import save_derived
        from omnigraph.maintenance.maintain import MaintenancePolicy, maintain

        self._allow(Action.ADMIN, actor=actor)
        report = maintain(self._repository, policy or MaintenancePolicy(), self._who(actor))
        for branch in self._repository.branches.all():
            save_derived(self._repository, branch, self._settings.read)
        return report

    def doctor(
        self,
        *,
        quick: bool = False,
        branch: str | None = None,
        checks: Iterable[str] | None = None,
        listener: ProgressListener | None = None,
    ) -> DoctorReport:
        """Look at the whole graph, or at one branch of it, and report what is wrong and what to do about it.

        Nothing is changed and no lock is taken, so it can run beside writers. ``quick`` reads metadata only.
        ``checks`` names the checks to run; without it all of them do.
        """
        from omnigraph.maintenance.doctor.doctor import examine

        self._allow(Action.ADMIN)
        wanted = None if branch is None else self._named(branch)
        named = None if checks is None else list(checks)
        return examine(self._repository.address, quick=quick, branch=wanted, checks=named, listener=listener)

    def repair(self, *, confirm: bool = False, force: bool = False, branch: str | None = None) -> RepairReport:
        """Look for tables at versions that the graph does not know, and say what made those versions.

        With ``confirm`` versions that only rearranged rows are published, and writes of OmniGraph that were never
        published are undone, as one commit; with ``force`` versions that changed rows are published too, which
        should be looked at first. No data is rewritten.
        """
        from omnigraph.maintenance.repair.repair import preview, repair

        self._allow(Action.ADMIN)
        found = self._repository.branches.find(self._named(branch))
        return repair(self._repository, found, force=force) if confirm else preview(self._repository, found)

    def repair_all(self, *, confirm: bool = False, force: bool = False) -> list[RepairReport]:
        """Repair every branch, each by a commit of its own if it needs one."""
        self._allow(Action.ADMIN)
        names = [branch.name for branch in self._repository.branches.all()]
        return [self.repair(confirm=confirm, force=force, branch=name) for name in names]

    def clone(
        self,
        target: str | os.PathLike[str],
        *,
        branch: str | None = None,
        at: At = None,
        history: bool = True,
        storage_options: Mapping[str, str] | None = None,
        listener: Callable[[CopyEvent], None] | None = None,
    ) -> CopyReport:
        """Copy the graph to another place, as it is at this moment, while writers go on.

        All branches are copied, or one with those it descends from, or what led to one state. Without ``history``
        only the newest states are. ``storage_options`` are those of the target. An earlier copy of the graph, to
        which nothing was written, is brought up to date; anything else at the target is refused.
        """
        from omnigraph.maintenance.copying.clone import clone

        self._allow(Action.ADMIN)
        address = parse_address(target, storage_options)
        return clone(self._repository, address, self._wanted(branch, at, history), listener)

    def _wanted(self, branch: str | None, at: At, history: bool) -> Wanted:
        from omnigraph.maintenance.copying.extent import Wanted

        if at is not None:
            state = self.snapshot(branch, at=at)
            return Wanted(state.branch, state.manifest_version, history)
        found = None if branch is None else self._repository.branches.find(branch).name
        return Wanted(found, None, history)

    def backup(
        self,
        target: str | os.PathLike[str],
        *,
        keep: int | None = None,
        storage_options: Mapping[str, str] | None = None,
        listener: Callable[[CopyEvent], None] | None = None,
    ) -> BackupReport:
        """Add a backup of the whole graph to those at a target; only files that are not there are copied.

        With ``keep`` only so many backups are left, the newest ones. `omnigraph.restore` makes a graph of one.
        """
        from omnigraph.maintenance.copying.backup import back_up

        self._allow(Action.ADMIN)
        if keep is not None and (isinstance(keep, bool) or not isinstance(keep, int) or keep < 1):
            raise InvalidArgument("keep", "at least one backup is kept; give a number from 1 on")
        return back_up(self._repository, parse_address(target, storage_options), keep, listener)

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: Duration | None = None,
        grace: Duration | None = None,
        confirm: bool = False,
    ) -> CleanupReport:
        """Show what of the history would be removed, and with ``confirm`` remove it.

        Of each branch the newest ``keep`` commits stay, and the states that were the newest within ``older_than``,
        a timedelta or a text such as `7d`; a state goes only if it fails both. The newest state of each branch,
        tags and what merges need stay in any case, as does what readers and writers may have used within the
        ``grace`` period of one hour. Commits are still listed when their states are gone.
        """
        from omnigraph.maintenance.cleanup.retention import retention
        from omnigraph.maintenance.cleanup.run import cleanup, preview

        self._allow(Action.ADMIN)
        policy = retention(keep, older_than, grace)
        return cleanup(self._repository, policy) if confirm else preview(self._repository, policy)

    def refresh(self) -> list[Recovery]:
        """Resolve what interrupted writes left behind; what was recovered. Every write does this too."""
        from omnigraph.recovery.heal import heal

        self._allow(Action.ADMIN)
        self._repository.require_writable()
        return heal(self._repository)

    def recoveries(self) -> list[Recovery]:
        """The record of all recoveries, oldest first."""
        from omnigraph.recovery.audit import AuditLog

        self._allow(Action.READ, self._branch)
        return AuditLog(self._repository.tables).read()

    def jobs(self) -> list[LeftJob]:
        """The bulk jobs that are running, and those that were killed, with the files they left."""
        from omnigraph.recovery.jobs import left_jobs

        self._allow(Action.ADMIN)
        return left_jobs(self._repository)

    def clean_jobs(self) -> list[LeftJob]:
        """Remove the files that killed jobs left; those jobs. What runs is let alone."""
        from omnigraph.recovery.jobs import reclaim

        self._allow(Action.ADMIN)
        return reclaim(self._repository)
