"""`optimize`: put the many small files of a branch's tables together, as one commit that changes no row."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omnigraph.errors import TableDrift
from omnigraph.maintenance.owners import owner
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.storage.compacting import CompactionPlan, StagedCompaction, plan_compaction, stage_compaction
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.write.base import Base
from omnigraph.write.protocol import (
    OPTIMISTIC_ATTEMPTS,
    Prepared,
    Stage,
    StagedTable,
    WriteRequest,
    commit_write,
)

WRITER: Final = "optimize"


@dataclass(frozen=True, slots=True)
class TableCompaction:
    """What became of one table: how many fragments were replaced by how many, or why the table was skipped.

    ``pending_indexes`` names the indexes that do not answer for the rewritten rows any more; these are scanned
    until `ensure_indices` builds the indexes again.
    """

    table_key: str
    table_version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    skipped: str | None = None
    pending_indexes: tuple[str, ...] = ()

    @property
    def committed(self) -> bool:
        """Was the table rewritten?"""
        return self.fragments_removed > 0

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_version": self.table_version,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
            "skipped": self.skipped,
            "pending_indexes": list(self.pending_indexes),
        }


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What became of each table. ``commit`` is None if no table had anything to put together."""

    branch: str
    commit: Commit | None
    tables: tuple[TableCompaction, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "commit": None if self.commit is None else self.commit.as_json(),
            "tables": [table.as_json() for table in self.tables],
        }


def optimize(
    repository: Repository, branch: Branch, table_keys: Sequence[str], actor: str | None = None
) -> OptimizeReport:
    """Compact those of the tables that the branch owns, each in one version, all as one commit.

    A table that was moved with Lance itself is skipped until it is repaired.
    """
    drifted: set[str] = set()
    while True:
        compactor = _Compactor(repository.tables, table_keys, drifted)
        try:
            written = commit_write(repository, WriteRequest(WRITER, branch, actor), compactor.prepare)
        except TableDrift as error:
            if error.table_key in drifted:
                raise
            drifted.add(error.table_key)
        else:
            return OptimizeReport(branch.name, written.commit, compactor.report(written.result))


@dataclass(frozen=True, slots=True)
class _Planned:
    """One table as a compaction finds it: to be compacted, to be skipped for a reason, or neither."""

    ref: TableRef
    stage: Stage | None = None
    skipped: str | None = None


class _Compactor:
    """Compacts tables, and keeps what it has written for a retry, which finds most tables at the same version.

    Writers may be faster than the compaction of a table each time. The last attempt holds the lock, so it takes
    only what is written already and leaves tables that moved as they are.
    """

    def __init__(self, tables: Tables, table_keys: Sequence[str], drifted: Collection[str]) -> None:
        self._tables = tables
        self._table_keys = table_keys
        self._drifted = drifted
        self._attempts = 0
        self._done: dict[TableRef, StagedCompaction] = {}

    def prepare(self, base: Base) -> Prepared[dict[str, _Planned]]:
        self._attempts += 1
        known = [key for key in self._table_keys if key in base.snapshot.tables]
        plans = {key: self._plan(base, key) for key in known}
        stages = {key: plan.stage for key, plan in plans.items() if plan.stage is not None}
        return Prepared({}, plans, repeatable=True, stages=stages)

    def _plan(self, base: Base, table_key: str) -> _Planned:
        pin = base.pin(table_key)
        ref = TableRef(pin.location, pin.table_branch, pin.table_version)
        if pin.table_branch != base.branch.native:
            return _Planned(ref, skipped=f"shared with branch {owner(base.repository, pin.table_branch)}")
        if table_key in self._drifted:
            return _Planned(ref, skipped="moved with Lance itself; run `omnigraph repair`")
        own = self._tables.dataset(ref.location, ref.branch, ref.version)  # not a handle that readers share
        if own is None:
            raise self._tables.missing(ref)
        plan = plan_compaction(own)
        if not plan.groups:
            return _Planned(ref)
        if self._attempts > OPTIMISTIC_ATTEMPTS and ref not in self._done:
            return _Planned(ref, skipped="other writers changed it meanwhile; try again")
        return _Planned(ref, partial(self._stage, plan, pin.row_count))

    def _stage(self, plan: CompactionPlan, rows: int, ref: TableRef, operation_id: str) -> StagedTable:
        if ref not in self._done:
            self._tables.verified(ref)
            self._done[ref] = stage_compaction(plan, ref.location, ref.branch, operation_id)
        return StagedTable(self._done[ref].staged, rows)

    def report(self, plans: dict[str, _Planned]) -> tuple[TableCompaction, ...]:
        """What became of each table, once the plans are committed."""
        return tuple(self._outcome(key, plan) for key, plan in plans.items())

    def _outcome(self, table_key: str, plan: _Planned) -> TableCompaction:
        if plan.stage is None:
            return TableCompaction(table_key, plan.ref.version, skipped=plan.skipped)
        done = self._done[plan.ref]
        return TableCompaction(
            table_key,
            plan.ref.version + 1,
            done.fragments_removed,
            done.fragments_added,
            pending_indexes=done.uncovered_indexes,
        )
