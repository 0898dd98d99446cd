"""What a graph does for its own upkeep: indexes, compaction, repairs, interrupted writes and killed jobs."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.lang.schema.lookup import table_keys
from omnigraph.maintenance.cleanup.report import CleanupReport
from omnigraph.maintenance.cleanup.retention import Duration, retention
from omnigraph.maintenance.cleanup.run import cleanup
from omnigraph.maintenance.cleanup.run import preview as preview_cleanup
from omnigraph.maintenance.compaction import OptimizeReport, optimize
from omnigraph.maintenance.indices import IndexReport, ensure_indices
from omnigraph.maintenance.repair import RepairReport, preview, repair
from omnigraph.recovery.audit import AuditLog, Recovery
from omnigraph.recovery.heal import heal
from omnigraph.recovery.jobs import LeftJob, left_jobs, reclaim
from omnigraph.versions import VersionedGraph


class MaintainedGraph(VersionedGraph):
    """A graph with the methods that keep it fast and whole. None of them changes a row."""

    def ensure_indices(self, *, branch: str | None = None, actor: str | None = None) -> IndexReport:
        """Build the indexes that a branch's tables lack, as one commit; what waits is reported with its reason."""
        self._repository.require_writable()
        found = self._repository.branches.find(self._named(branch))
        return ensure_indices(self._repository, found, self._who(actor))

    def optimize(
        self, *, branch: str | None = None, types: Iterable[str] | None = None, actor: str | None = None
    ) -> OptimizeReport:
        """Put the many small files of a branch's tables together, as one commit that changes no row.

        A table that is shared with another branch, or that other writers change meanwhile, is skipped and reported
        with the reason.
        """
        self._repository.require_writable()
        found = self._repository.branches.find(self._named(branch))
        return optimize(self._repository, found, table_keys(self.catalog, types), self._who(actor))

    def repair(self, *, confirm: bool = False, force: bool = False, branch: str | None = None) -> RepairReport:
        """Look for tables that were moved with Lance itself, so that the graph does not know their newest version.

        With ``confirm`` versions that only rearranged rows are published, as one commit; with ``force`` also those
        that changed rows, which should be looked at first. Nothing is rewritten.
        """
        found = self._repository.branches.find(self._named(branch))
        return repair(self._repository, found, force=force) if confirm else preview(self._repository, found)

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
        policy = retention(keep, older_than, grace)
        return cleanup(self._repository, policy) if confirm else preview_cleanup(self._repository, policy)

    def refresh(self) -> list[Recovery]:
        """Resolve what interrupted writes left behind; what was recovered. Every write does this too."""
        self._repository.require_writable()
        return heal(self._repository)

    def recoveries(self) -> list[Recovery]:
        """The record of all recoveries, oldest first."""
        return AuditLog(self._repository.tables).read()

    def jobs(self) -> list[LeftJob]:
        """The bulk jobs that are running, and those that were killed, with the files they left."""
        return left_jobs(self._repository)

    def clean_jobs(self) -> list[LeftJob]:
        """Remove the files that killed jobs left; those jobs. What runs is let alone."""
        return reclaim(self._repository)
