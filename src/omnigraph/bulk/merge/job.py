"""Merges, reverts, cherry-picks and resets of any size: in memory if the change is small, else by tasks.

::

    measure      how many rows each side has written, by row ids alone                                    (driver)
    split        row ids into buckets, by a hash of the entities' ids                                     (workers)
    merge        each bucket of each table: the same comparison and merge as in memory; rows are staged   (workers)
    check        unique groups, ends of edges, cardinality: on the staged key columns                     (workers)
    replace      which rows of the target have a new version, by one pass over its ids                    (workers)
    commit       the ordinary write protocol, with the staged files                                       (driver)

The driver holds row ids, never rows. No table refers to the staged files before the commit; they are removed if
there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self

from omnigraph.bulk.merge.buckets import (
    SplitRows,
    SplitTask,
    ranges_of,
    row_bytes,
    row_lists,
    split,
    split_task,
)
from omnigraph.bulk.merge.staged import StagedChange, StagedMerge, check_rules
from omnigraph.bulk.merge.tasks import MergedBucket, MergedTable, MergeTask, merge_bucket
from omnigraph.bulk.merge.transactions import stage_table
from omnigraph.bulk.merge.workspaces import OpenWorkspace, Workspace
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.runner import Engine, Runner, RunnerChoice
from omnigraph.errors import Conflict, ConstraintViolation
from omnigraph.failpoints import hit
from omnigraph.history.diff import ChangeFilter, moved_tables
from omnigraph.history.merging.sides import (
    LISTED,
    Combined,
    Decisions,
    Three,
    as_conflicts,
    combine_in_memory,
    require_used,
)
from omnigraph.history.merging.threeway import IMAGES
from omnigraph.history.tables import RowDeltas, Stretch, stretches_between
from omnigraph.manifest.refs.branches import Branch
from omnigraph.recovery.jobs import RunningJob
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import Scheme
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.protocol import Stage, StagedTable


class MergeJob:
    """Combines the sides of one merge, in memory or by tasks, whichever suits the size of the change.

    It is the ``combine`` of a request, and its ``job_lock``. At its end it removes what its tasks have staged and
    no table refers to.
    """

    def __init__(
        self, branch: Branch, open_workspace: OpenWorkspace, runners: RunnerChoice, settings: BulkSettings
    ) -> None:
        self.branch = branch
        self.open_workspace = open_workspace
        self.runners = runners
        self.settings = settings
        self._stack = ExitStack()
        self._work: tuple[Runner, Workspace] | None = None
        self._files: frozenset[str] = frozenset()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._job is not None and error is None:
            self._job.committed = self._files
        self._stack.__exit__(kind, error, trace)

    @property
    def _job(self) -> RunningJob | None:
        return None if self._work is None else self._work[1].job

    def verify(self) -> None:
        """Raise LockLost if the job has lost its lock: the process that took it may have removed staged files."""
        if self._job is not None:
            self._job.lock.verify()

    def __call__(self, base: Base, sides: Three, decisions: Decisions) -> Combined:
        """Combine the sides; the rows of a large change are staged.

        A base of which rows are known from elsewhere, and sides with different schemas, are combined in memory,
        because the tasks read tables as they are.
        """
        if sides.lost or not sides.share_schema:
            return combine_in_memory(base, sides, decisions)
        deltas = RowDeltas(base.repository.tables)
        stretches = _stretches(base, sides)
        sizes = {
            key: row_bytes(sides.target.entity(key)) * sum(len(deltas(stretch)) for stretch in found)
            for key, found in stretches.items()
        }
        work = self._started(base, sum(sizes.values()))
        if work is None:
            return combine_in_memory(base, sides, decisions, deltas)
        runner, workspace = work
        parts = self._split(runner, workspace, base, deltas, stretches, sizes)
        tables = {
            key: MergedTable(
                runner.job,
                key,
                sides,
                decisions,
                workspace.destination(base, self.branch, key),
                _buckets(sizes[key], self.settings),
                self.settings.rows_per_file,
            )
            for key in stretches
        }
        tasks = [
            MergeTask(table, rows)
            for key, table in tables.items()
            for rows in (ranges_of(parts[key], number) for number in range(table.buckets))
            if rows
        ]
        done: dict[str, list[MergedBucket]] = {key: [] for key in tables}
        for task, bucket in zip(tasks, runner.run("merging", merge_bucket, tasks), strict=True):
            done[task.table.table_key].append(bucket)
        hit("merge.after_stage")
        return self._combined(runner, base, sides, decisions, tables, done)

    def _started(self, base: Base, size: int) -> tuple[Runner, Workspace] | None:
        """What runs the tasks, and where they put their files; None if the change fits this process."""
        scheme, runners = base.repository.address.scheme, self.runners
        if runners.engine is Engine.SPARK:
            require_shared(base.repository.address)
        elif scheme is Scheme.MEMORY or (not runners.needs_spark and size <= self.settings.small_merge):
            return None
        if self._work is None:
            runner = runners.start()
            self._work = runner, self._stack.enter_context(self.open_workspace(runner.job))
        return self._work

    def _split(
        self,
        runner: Runner,
        workspace: Workspace,
        base: Base,
        deltas: RowDeltas,
        stretches: Mapping[str, Sequence[Stretch]],
        sizes: Mapping[str, int],
    ) -> dict[str, list[SplitRows]]:
        """The changed rows of each table, by bucket."""
        address, rows = base.repository.address, self.settings.rows_per_task
        tasks: list[SplitTask] = []
        keys: list[str] = []
        for key, found in stretches.items():
            for listed in row_lists(deltas, found, rows):
                buckets = _buckets(sizes[key], self.settings)
                tasks.append(split_task(address, workspace.address, runner.job, listed, buckets))
                keys.append(key)
        parts: dict[str, list[SplitRows]] = {key: [] for key in stretches}
        for key, part in zip(keys, runner.run("finding changed entities", split, tasks), strict=True):
            parts[key].append(part)
        return parts

    def _combined(
        self,
        runner: Runner,
        base: Base,
        sides: Three,
        decisions: Decisions,
        tables: Mapping[str, MergedTable],
        done: Mapping[str, Sequence[MergedBucket]],
    ) -> Combined:
        """The outcome of all buckets: conflicts, or the change to commit."""
        conflicts = [conflict for key in tables for conflict in _ordered(done[key])]
        buckets = [bucket for found in done.values() for bucket in found]
        require_used(decisions.choices, frozenset[tuple[str, str]]().union(*(b.decided for b in buckets)))
        counts = {key: _summed(found) for key, found in done.items()}
        reads = frozenset(key for key, found in counts.items() if any(found.values()))
        staged = {
            key: StagedChange(
                tables[key].target,
                tuple(file for bucket in found for file in bucket.files),
                tuple(bucket.deleted for bucket in found if bucket.deleted is not None),
            )
            for key, found in done.items()
            if any(bucket.has_change for bucket in found)
        }
        changed = {key: counts[key] for key in staged}
        if conflicts:
            return Combined(changed, reads, tuple(conflicts), len(conflicts))
        merge = StagedMerge(sides.target, base.branch, staged)
        broken = check_rules(runner, merge, self.settings.rows_per_task)
        total = sum(found.total for found in broken) + sum(bucket.violations_total for bucket in buckets)
        if total:
            listed = [one for bucket in buckets for one in bucket.violations]
            listed += [one for found in broken for one in found.listed]
            violations, total = as_conflicts(ConstraintViolation(listed[:LISTED], total))
            return Combined(changed, reads, tuple(violations), total)
        self._files = frozenset()
        stages: dict[str, Stage] = {key: partial(self._stage, runner, merge, key) for key in staged}
        return Combined(changed, reads | merge.reads(), stages=stages)

    def _stage(
        self, runner: Runner, merge: StagedMerge, table_key: str, ref: TableRef, operation: str
    ) -> StagedTable:
        staged = stage_table(runner, merge, table_key, self.settings.rows_per_task, ref, operation)
        self._files |= staged.files
        return staged


def _stretches(base: Base, sides: Three) -> dict[str, list[Stretch]]:
    """What has to be read of each table that the source has moved: on its way, and on the target's."""
    tables = base.repository.tables
    found: dict[str, list[Stretch]] = {}
    for key in moved_tables(sides.base, sides.source, ChangeFilter()):
        common, theirs, ours = (side.tables[key].ref for side in (sides.base, sides.source, sides.target))
        both = (*stretches_between(tables, common, theirs), *stretches_between(tables, common, ours))
        found[key] = list(dict.fromkeys(both))
    return found


def _buckets(size: int, settings: BulkSettings) -> int:
    return max(1, -(-size // settings.merge_bucket))


def _ordered(buckets: Iterable[MergedBucket]) -> list[Conflict]:
    """The conflicts of one table by id; only the first have the entity's rows."""
    found = sorted((c for bucket in buckets for c in bucket.conflicts), key=lambda conflict: conflict.id or "")
    shown, others = found[:IMAGES], found[IMAGES:]
    return [*shown, *(replace(conflict, base=None, ours=None, theirs=None) for conflict in others)]


def _summed(buckets: Iterable[MergedBucket]) -> dict[str, int]:
    total: dict[str, int] = {}
    for bucket in buckets:
        for op, count in bucket.counts.items():
            total[op] = total.get(op, 0) + count
    return total
