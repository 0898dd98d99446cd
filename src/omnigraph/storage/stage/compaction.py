"""Compaction of one table: its small files, written again as few, in a transaction that is not committed yet.

Row ids stay as they are, and the versions of rows stay good enough for `delta` across it (`row_versions`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from typing import Any, Final

from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionOptions, CompactionTask

from omnigraph.errors import OmniError
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import remove_file
from omnigraph.storage.files.staged import settle_data
from omnigraph.storage.files.wire import read_fields
from omnigraph.storage.handles import TableRef
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage.changes import Staged, staged_operation
from omnigraph.storage.stage.row_versions import EXACT_ROWS, with_coarser_versions
from omnigraph.storage.unavailable import translated

ROWS_PER_FILE: Final = 65_536
"""Fragments with fewer rows are put together. Lance makes files of nearly equal size, at most half as large again.
"""
_ROWS_AT_A_TIME: Final = 1_024
_HIGHEST_FRAGMENT: Final = 11
"""The number of the field of a stored version that holds the highest fragment id so far."""


Group = CompactionTask
"""Neighbouring fragments of one version of a table, to be written again."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The groups of neighbouring fragments of a table that are worth writing again, and the handle to do it with.

    No group mixes rows that an index answers for with others.
    """

    handle: LanceDataset
    groups: tuple[Group, ...]

    @property
    def fragments(self) -> list[int]:
        """The fragments that are written again."""
        return [fragment.id for group in self.groups for fragment in group.fragments]


@dataclass(frozen=True, slots=True)
class StagedCompaction:
    """A staged compaction, and how many fragments it replaces by how many."""

    staged: Staged
    fragments_removed: int
    fragments_added: int


def plan_compaction(handle: LanceDataset, rows_per_file: int | None = None) -> CompactionPlan:
    """Look for fragments that are too small, or that have many deleted rows. No data is read."""
    with translated(handle.uri):
        plan = Compaction.plan(handle, compaction_options(rows_per_file or ROWS_PER_FILE))
        return CompactionPlan(handle, tuple(plan.tasks))


def compaction_options(rows_per_file: int) -> CompactionOptions:
    """How Lance writes fragments again: into files of about so many rows, a few rows at a time, in one thread."""
    return CompactionOptions(target_rows_per_fragment=rows_per_file, batch_size=_ROWS_AT_A_TIME, num_threads=1)


def stage_compaction(plan: CompactionPlan, location: str, branch: str | None, operation: str) -> StagedCompaction:
    """Write each group of fragments again, and stage the exchange as one change."""
    rewritten = [rewrite(plan.handle, group) for group in plan.groups]
    return stage_rewritten(plan.handle, location, branch, rewritten, operation)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A group of fragments as they were, and as they are written again, as Lance describes them."""

    old: tuple[str, ...]
    new: tuple[str, ...]

    @property
    def replaced(self) -> set[int]:
        """The ids of the old fragments."""
        return {int(json.loads(text)["id"]) for text in self.old}

    @property
    def files(self) -> list[str]:
        """The names of the new data files."""
        return [str(file["path"]) for text in self.new for file in json.loads(text)["files"]]


def rewrite(handle: LanceDataset, group: Group, exact_rows: int = EXACT_ROWS) -> Rewritten:
    """Write a group of fragments again, as files that no version refers to yet.

    Files of more than ``exact_rows`` rows that have a version each get coarser ones (`row_versions`).
    """
    with translated(handle.uri):
        replaced, new = written_again(handle, group, exact_rows)
    old = (FragmentMetadata.from_json(json.dumps(each)) for each in replaced)
    return Rewritten(tuple(json.dumps(fragment.to_json()) for fragment in old), new)


def written_again(handle: LanceDataset, group: Group, exact_rows: int) -> tuple[list[Any], tuple[str, ...]]:
    """Write a group of fragments again: what Lance says of the old ones, and the new ones as they are kept."""
    written: Any = group.execute(handle)
    described: dict[str, Any] = json.loads(written.json())
    new = [FragmentMetadata.from_json(json.dumps(each)) for each in described["new_fragments"]]
    settle_data(handle.uri, new)
    coarser = (with_coarser_versions(fragment, exact_rows) for fragment in new)
    return described["original_fragments"], tuple(json.dumps(fragment.to_json()) for fragment in coarser)


def stage_rewritten(
    handle: LanceDataset, location: str, branch: str | None, rewritten: Iterable[Rewritten], operation: str
) -> StagedCompaction:
    """Stage the exchange of fragments for those that were written from them.

    Indexes of words and of vectors know rows by ids that do not change, and answer for the new files as before.
    A BTREE knows rows by their places; the rewritten rows are scanned until it has a segment for them again.
    """
    groups = rewrite_groups(rewritten)
    number_fragments(groups, next_fragment_id(handle))
    removed = sum(len(list(group.old_fragments)) for group in groups)
    added = sum(len(list(group.new_fragments)) for group in groups)
    staged = staged_operation(handle, location, branch, LanceOperation.Rewrite(groups, []), operation)
    return StagedCompaction(staged, removed, added)


def rewrite_groups(rewritten: Iterable[Rewritten]) -> list[LanceOperation.RewriteGroup]:
    """The exchanges as Lance takes them."""
    return [
        LanceOperation.RewriteGroup(
            [FragmentMetadata.from_json(text) for text in each.old],
            [FragmentMetadata.from_json(text) for text in each.new],
        )
        for each in rewritten
    ]


def is_current(handle: LanceDataset, rewritten: Rewritten) -> bool:
    """Does a version of the table have the old fragments as they were when they were written again?

    They may also not have come to be covered by an index in part.
    """
    with translated(handle.uri):
        now = {one.fragment_id: json.dumps(one.metadata.to_json()) for one in handle.get_fragments()}
        if any(now.get(number) not in rewritten.old for number in rewritten.replaced):
            return False
        return is_covered_alike(handle, rewritten)


def is_covered_alike(handle: LanceDataset, rewritten: Rewritten) -> bool:
    """Does each part of an index cover all of the old fragments, or none of them?"""
    covered = (
        sum(number in segment.fragment_ids for number in rewritten.replaced)
        for found in handle.describe_indices()
        for segment in found.segments
    )
    return all(some in (0, len(rewritten.replaced)) for some in covered)


def discard_rewritten(objects: ObjectStore, ref: TableRef, rewritten: Iterable[Rewritten]) -> None:
    """Remove the new files of a compaction that is not going to be committed, as far as the store lets us."""
    folder = f"{layout.native_prefix(ref.location, ref.branch)}/data"
    with suppress(OmniError):
        for name in (name for each in rewritten for name in each.files):
            remove_file(objects, f"{folder}/{name}", has_blobs=True)


def number_fragments(groups: Iterable[LanceOperation.RewriteGroup], first: int) -> None:
    """Give the new fragments of a compaction the ids that they have once it is committed.

    Lance numbers fragments that have the id 0, but only after it has put the ids of the new fragments into the
    indexes that cover the old ones. An index would lose the rewritten rows, and claim those of fragment 0.
    """
    ids = count(first)
    for group in groups:
        for fragment in group.new_fragments:
            fragment.id = next(ids)


def next_fragment_id(handle: LanceDataset) -> int:
    """The id that the next new fragment of a table gets: no version of the table has used it or a higher one."""
    stored = dict(read_fields(handle._ds.serialized_manifest()))
    highest = stored.get(_HIGHEST_FRAGMENT)
    return 0 if highest is None else int(highest) + 1
