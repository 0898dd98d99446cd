"""`optimize`: small files put together and indexes brought up to date, in steps that each are a commit.

::

    compaction   groups of small files, at most so many rows in a step, are written again as few
    indexes      missing ones are built, and those that lack rows catch up
    and again    files that the new indexes cover alike can be put together now

Each step works without a lock, and then goes through the write protocol. If other writers have added rows to a
table meanwhile, the work is committed on top of theirs; if they have changed the very files, that part is done
again, and skipped if they do it again. A run that is killed loses one step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from lance import LanceDataset

from omnigraph.errors import StagedFilesRemoved, TableDrift
from omnigraph.maintenance.index_plan import NO_LAG, DeferredIndex, IndexLag
from omnigraph.maintenance.indices import (
    MEANWHILE,
    MOST_LOST,
    Builds,
    BuiltIndex,
    IndexBuilder,
    built_indexes,
    deferred_indexes,
)
from omnigraph.maintenance.owners import owner
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.storage.stage.compaction import (
    CompactionPlan,
    Rewritten,
    discard_rewritten,
    is_current,
    plan_compaction,
    rewrite,
    stage_rewritten,
)
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.protocol import (
    OPTIMISTIC_ATTEMPTS,
    Prepare,
    Prepared,
    Result,
    Stage,
    StagedTable,
    WriteRequest,
    commit_write,
)

WRITER: Final = "optimize"
DRIFTED: Final = "moved with Lance itself; run `omnigraph repair`"
ROUNDS: Final = 3
"""How often compaction and indexing take turns. Each round has less to do than the one before."""

STEP_ROWS: Final = 2_000_000
"""About how many rows one step writes again or indexes."""


@dataclass(frozen=True, slots=True)
class OptimizeRequest:
    """Which tables of a branch to optimize, and what is left as it is.

    Fewer than ``small_files`` neighbouring small files stay, and indexes may lack some rows.
    """

    branch: Branch
    table_keys: Sequence[str]
    actor: str | None = None
    small_files: int = 2
    lag: IndexLag = NO_LAG
    step_rows: int = STEP_ROWS


@dataclass(frozen=True, slots=True)
class TableReport:
    """What became of one table: how many fragments were replaced by how many, the indexes that were built or that
    caught up, or why the table was skipped."""

    table_key: str
    table_version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    indexes: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def committed(self) -> bool:
        """Was anything done?"""
        return self.fragments_removed > 0 or bool(self.indexes)

    @property
    def shown(self) -> str:
        """What was done, in words."""
        parts = (
            [f"{self.fragments_removed} fragments became {self.fragments_added}"] if self.fragments_removed else []
        )
        return "; ".join([*parts, *([f"indexed {', '.join(self.indexes)}"] if self.indexes else [])])

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_version": self.table_version,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "indexes": list(self.indexes),
            "committed": self.committed,
            "skipped": self.skipped,
        }


@dataclass(frozen=True, slots=True)
class OptimizeReport:
    """What became of each table of a branch, the commits of the steps, and the indexes that wait."""

    branch: str
    commits: tuple[Commit, ...]
    tables: tuple[TableReport, ...]
    deferred: tuple[DeferredIndex, ...] = ()

    @property
    def commit(self) -> Commit | None:
        """The commit of the last step; None if there was nothing to do."""
        return self.commits[-1] if self.commits else None

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "commits": [commit.as_json() for commit in self.commits],
            "tables": [table.as_json() for table in self.tables],
            "deferred": [index.as_json() for index in self.deferred],
        }


class Workshop(Builds):
    """Does the work of a run in the calling thread, one piece after the other. A job does it elsewhere."""

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository.tables)

    def verify(self) -> None:
        """Raise LockLost if what was written may be gone by now. In one process it cannot be."""

    def rewrite(self, ref: TableRef, plan: CompactionPlan) -> list[Rewritten]:
        """Write groups of fragments again."""
        self._tables.verify_fragments(ref, plan.fragments)
        return [rewrite(plan.handle, group) for group in plan.groups]


def optimize(repository: Repository, request: OptimizeRequest, workshop: Workshop | None = None) -> OptimizeReport:
    """Compact the tables that a branch owns, and bring their indexes up to date, until there is nothing to do.

    A table that was moved with Lance itself is skipped until it is repaired.
    """
    run = _Run(repository, request, workshop or Workshop(repository))
    for _ in range(ROUNDS):
        if not any([run.compact(), run.catch_up()]):
            break
    return run.report()


@dataclass(slots=True)
class _Run:
    """One run of `optimize`: its steps so far, and what became of each table."""

    repository: Repository
    request: OptimizeRequest
    workshop: Workshop
    commits: list[Commit] = field(default_factory=list)
    tables: dict[str, TableReport] = field(default_factory=dict)
    drifted: set[str] = field(default_factory=set)
    lost: int = 0
    deferred: tuple[DeferredIndex, ...] = ()

    def compact(self) -> bool:
        """Write small files again, step by step; was there anything to do?"""
        first, is_complete = len(self.commits), False
        while not is_complete:
            compactor = _Compactor(self.repository, self.request, self.drifted, self.workshop)
            plans = self._committed(compactor.prepare)
            for key, planned in (plans or {}).items():
                self._note_compaction(key, planned)
            is_complete = plans is not None and compactor.is_complete
        return len(self.commits) > first

    def catch_up(self) -> bool:
        """Build what indexes lack, step by step; was there anything to do?"""
        first, is_complete = len(self.commits), False
        while not is_complete:
            keys = set(self.request.table_keys) - self.drifted
            builder = IndexBuilder(self.workshop, self.request.lag, keys, self.request.step_rows)
            plans = self._committed(builder.prepare)
            if plans is not None:
                for built in built_indexes(plans):
                    self._note_index(built)
                self.deferred = tuple(deferred_indexes(plans))
                is_complete = builder.is_complete
        return len(self.commits) > first

    def _committed(self, prepare: Prepare[Result]) -> Result | None:
        """Commit one step; None if it has to be done again.

        That is so without a table that was moved with Lance itself, and if a cleanup has removed what was staged.
        """
        request = WriteRequest(WRITER, self.request.branch, self.request.actor)
        try:
            written = commit_write(self.repository, request, prepare, self.workshop)
        except TableDrift as error:
            if error.table_key in self.drifted:
                raise
            self.drifted.add(error.table_key)
            return None
        except StagedFilesRemoved:
            self.lost += 1
            if self.lost > MOST_LOST:
                raise
            return None
        if written.commit is not None:
            self.commits.append(written.commit)
        return written.result

    def _note_compaction(self, table_key: str, planned: _Planned) -> None:
        before = self.tables.get(table_key, TableReport(table_key, planned.ref.version))
        self.tables[table_key] = replace(
            before,
            table_version=planned.ref.version + (planned.stage is not None),
            fragments_removed=before.fragments_removed + planned.removed,
            fragments_added=before.fragments_added + planned.added,
            skipped=planned.skipped,
        )

    def _note_index(self, built: BuiltIndex) -> None:
        before = self.tables[built.table_key]
        names = dict.fromkeys((*before.indexes, built.name))
        self.tables[built.table_key] = replace(before, indexes=tuple(names))

    def report(self) -> OptimizeReport:
        """What became of each table, with the version that it has now."""
        now = self.repository.snapshot(self.request.branch).tables
        tables = (
            replace(table, table_version=now[key].table_version, skipped=self._skipped(table))
            for key, table in self.tables.items()
            if key in now
        )
        return OptimizeReport(self.request.branch.name, tuple(self.commits), tuple(tables), self.deferred)

    def _skipped(self, table: TableReport) -> str | None:
        return DRIFTED if table.table_key in self.drifted else table.skipped


@dataclass(frozen=True, slots=True)
class _Planned:
    """One table as a compaction finds it: with groups that are written again, to be skipped, or neither."""

    ref: TableRef
    stage: Stage | None = None
    removed: int = 0
    added: int = 0
    skipped: str | None = None


class _Compactor:
    """Compacts tables by one commit, and keeps what it has written for a retry, which finds tables moved.

    The last attempt holds the lock, so it takes only what is written already, and leaves other files as they are.
    """

    def __init__(
        self,
        repository: Repository,
        request: OptimizeRequest,
        drifted: set[str],
        workshop: Workshop,
    ) -> None:
        self._repository = repository
        self._request = request
        self._drifted = drifted
        self._workshop = workshop
        self._attempts = 0
        self._written: dict[tuple[str, str | None], list[Rewritten]] = {}
        self._rows = 0
        self.is_complete = True
        """Was everything that is worth it written again? Otherwise there is another step."""

    def prepare(self, base: Base) -> Prepared[dict[str, _Planned]]:
        """Plan the tables of a branch, and write their small files again."""
        self._attempts += 1
        self._rows, self.is_complete = 0, True
        known = [key for key in self._request.table_keys if key in base.snapshot.tables]
        plans = {key: self._plan(base, key) for key in known}
        stages = {key: plan.stage for key, plan in plans.items() if plan.stage is not None}
        return Prepared({}, plans, repeatable=True, stages=stages)

    def _plan(self, base: Base, table_key: str) -> _Planned:
        pin, ref = base.pin(table_key), base.ref(table_key)
        if pin.table_branch != base.branch.native:
            return _Planned(ref, skipped=f"shared with branch {owner(base.repository, pin.table_branch)}")
        if table_key in self._drifted:
            return _Planned(ref, skipped=DRIFTED)
        own = self._repository.tables.dataset(ref.location, ref.branch, ref.version)  # readers do not share it
        if own is None:
            raise self._repository.tables.missing(ref)
        plan = self._bounded(plan_compaction(own))
        place = (ref.location, ref.branch)
        done = self._written.get(place, [])
        written = [each for each in done if is_current(own, each)]
        discard_rewritten(self._repository.objects, ref, (each for each in done if each not in written))
        if not written and plan.groups:
            if self._attempts > OPTIMISTIC_ATTEMPTS:
                return _Planned(ref, skipped=MEANWHILE)
            written = self._workshop.rewrite(ref, plan)
        self._written[place] = written
        if not written:
            return _Planned(ref)
        removed, added = (sum(len(each.old) for each in written), sum(len(each.new) for each in written))
        return _Planned(ref, partial(_stage, written, own, pin.row_count), removed, added)

    def _bounded(self, plan: CompactionPlan) -> CompactionPlan:
        """The groups of a plan that are worth it, as far as they fit into this step."""
        groups = []
        for group in plan.groups:
            files = group.fragments
            if 1 < len(files) < self._request.small_files:
                continue
            if self._rows >= self._request.step_rows:
                self.is_complete = False
                break
            self._rows += sum(file.num_rows or 0 for file in files)
            groups.append(group)
        return replace(plan, groups=tuple(groups))


def _stage(
    written: Sequence[Rewritten], handle: LanceDataset, rows: int, ref: TableRef, operation_id: str
) -> StagedTable:
    return StagedTable(stage_rewritten(handle, ref.location, ref.branch, written, operation_id).staged, rows)
