"""Compaction of one table: its small files, written again as few, in a transaction that is not committed yet.

Row ids and the versions in which rows were created and changed stay as they are, so that `delta` across a
compaction is exact.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionOptions, CompactionTask

from omnigraph.storage.files.staged import settle_data
from omnigraph.storage.staging import Staged, staged_operation
from omnigraph.storage.unavailable import translated

ROWS_PER_FILE: Final = 65_536
"""Fragments with fewer rows are put together. Lance makes files of nearly equal size, at most half as large again.
"""
_ROWS_AT_A_TIME: Final = 1_024


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The groups of neighbouring fragments of a table that are worth writing again, and the handle to do it with.

    No group mixes rows that an index answers for with others.
    """

    handle: LanceDataset
    groups: tuple[CompactionTask, ...]

    @property
    def fragments(self) -> list[int]:
        """The fragments that are written again."""
        return [fragment.id for group in self.groups for fragment in group.fragments]


@dataclass(frozen=True, slots=True)
class StagedCompaction:
    """A staged compaction: how many fragments it replaces by how many, and the indexes that lose rows by it."""

    staged: Staged
    fragments_removed: int
    fragments_added: int
    uncovered_indexes: tuple[str, ...]


def plan_compaction(handle: LanceDataset, rows_per_file: int | None = None) -> CompactionPlan:
    """Look for fragments that are too small, or that have many deleted rows. No data is read."""
    options = CompactionOptions(
        target_rows_per_fragment=rows_per_file or ROWS_PER_FILE, batch_size=_ROWS_AT_A_TIME, num_threads=1
    )
    with translated(handle.uri):
        return CompactionPlan(handle, tuple(Compaction.plan(handle, options).tasks))


def stage_compaction(plan: CompactionPlan, location: str, branch: str | None, operation: str) -> StagedCompaction:
    """Write each group of fragments again, and stage the exchange as one change.

    The exchange takes the rewritten rows out of the indexes, and searches scan them.
    """
    handle = plan.handle
    with translated(handle.uri):
        groups = [_rewritten(handle, group) for group in plan.groups]
        old = {fragment.id for group in groups for fragment in group.old_fragments}
        uncovered = sorted(
            found.name
            for found in handle.describe_indices()
            if any(old & set(segment.fragment_ids) for segment in found.segments)
        )
    added = sum(len(list(group.new_fragments)) for group in groups)
    staged = staged_operation(handle, location, branch, LanceOperation.Rewrite(groups, []), operation)
    return StagedCompaction(staged, len(old), added, tuple(uncovered))


def _rewritten(handle: LanceDataset, group: CompactionTask) -> LanceOperation.RewriteGroup:
    written: Any = group.execute(handle)
    described: dict[str, Any] = json.loads(written.json())
    new = [FragmentMetadata.from_json(json.dumps(each)) for each in described["new_fragments"]]
    settle_data(handle.uri, new)
    old = [FragmentMetadata.from_json(json.dumps(each)) for each in described["original_fragments"]]
    return LanceOperation.RewriteGroup(old, new)
