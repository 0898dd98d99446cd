"""Compaction of one table: its small files, written again as few, in a transaction that is not committed yet.

Row ids and the versions in which rows were created and changed stay as they are, so that `delta` across a
compaction is exact.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from lance import LanceDataset, LanceFragment, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionOptions, CompactionTask

from omnigraph.storage.files.staged import settle_data
from omnigraph.storage.staging import Staged, following, staged_operation
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


@dataclass(frozen=True, slots=True)
class Fragment:
    """A fragment by its size: how many rows it has, how many were deleted from its files, and their bytes.

    ``size`` is None where it is not known. ``is_borrowed`` says that a file belongs to the branch this one forked
    from.
    """

    number: int
    rows: int
    deleted: int
    size: int | None
    is_borrowed: bool = False


Shrunk = Mapping[int, FragmentMetadata | None]
"""Fragments from which a change takes rows, as they are with it; None for those of which nothing is left."""


def smaller_fragments(handle: LanceDataset, rows: int, shrunk: Shrunk) -> list[Fragment]:
    """The fragments that have fewer rows than that, or deleted ones, in order, as a change leaves them. No data is
    read."""
    found: list[Fragment] = []
    with translated(handle.uri):
        for fragment in handle.get_fragments():
            after = shrunk.get(fragment.fragment_id, fragment)
            if after is None:
                continue
            deleted = after.num_deletions
            live = fragment.physical_rows - deleted
            if live < rows or deleted:
                files = fragment.data_files()
                sizes = [file.file_size_bytes for file in files]
                size = None if None in sizes else sum(filter(None, sizes))
                borrowed = any(file.base_id is not None for file in files)
                found.append(Fragment(fragment.fragment_id, live, deleted, size, borrowed))
    return found


def indexes_of(handle: LanceDataset) -> dict[int, frozenset[str]]:
    """The indexes that answer for each fragment; one that none answers for is left out."""
    names: dict[int, set[str]] = {}
    with translated(handle.uri):
        for index in handle.describe_indices():
            for segment in index.segments:
                for number in segment.fragment_ids:
                    names.setdefault(int(number), set()).add(index.name)
    return {number: frozenset(found) for number, found in names.items()}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Fragments of a table, and those that hold the same rows in fewer files, which nothing refers to yet."""

    old: tuple[FragmentMetadata, ...]
    new: tuple[FragmentMetadata, ...]

    @property
    def names(self) -> list[str]:
        """The names of the new data files."""
        return [file.path for fragment in self.new for file in fragment.files]

    def fits(self, handle: LanceDataset, shrunk: Shrunk) -> bool:
        """Are the old fragments, as a change leaves them in this version, those whose rows were written?"""
        with translated(handle.uri):
            return all(_described(handle, each.id, shrunk) == each.to_json() for each in self.old)


def rewrite_fragments(
    handle: LanceDataset, numbers: Sequence[int], shrunk: Shrunk, rows_per_file: int
) -> Rewritten:
    """Write the rows of some fragments again as few files, as a change leaves them. The table stays as it is."""
    options = CompactionOptions(target_rows_per_fragment=rows_per_file, batch_size=_ROWS_AT_A_TIME, num_threads=1)
    with translated(handle.uri):
        plan: Any = Compaction.plan(handle, options)
        task = {
            "task": {"fragments": [_described(handle, number, shrunk) for number in numbers]},
            "read_version": handle.version,
            "options": json.loads(plan.json())["options"],
        }
        tasks: Any = CompactionTask
        group = _rewritten(handle, tasks.from_json(json.dumps(task)))
    return Rewritten(tuple(group.old_fragments), tuple(group.new_fragments))


def _described(handle: LanceDataset, number: int, shrunk: Shrunk) -> dict[str, Any] | None:
    """A fragment as a change leaves it, in Lance's own words; None if it is not there."""
    found = shrunk[number] if number in shrunk else handle.get_fragment(number)
    if isinstance(found, LanceFragment):
        found = found.metadata
    described: dict[str, Any] | None = None if found is None else found.to_json()
    return described


def stage_rewritten(change: Staged, rewritten: Rewritten, operation: str) -> Staged:
    """Stage an exchange of fragments as the version after another staged change of the same table."""
    exchange = LanceOperation.Rewrite([LanceOperation.RewriteGroup(list(rewritten.old), list(rewritten.new))], [])
    return following(change, exchange, operation)


def _rewritten(handle: LanceDataset, group: CompactionTask) -> LanceOperation.RewriteGroup:
    written: Any = group.execute(handle)
    described: dict[str, Any] = json.loads(written.json())
    new = [FragmentMetadata.from_json(json.dumps(each)) for each in described["new_fragments"]]
    settle_data(handle.uri, new)
    old = [FragmentMetadata.from_json(json.dumps(each)) for each in described["original_fragments"]]
    return LanceOperation.RewriteGroup(old, new)
