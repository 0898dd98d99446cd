"""Rewriting some fragments of a table: the same rows in fewer files, staged as the version after another change.

Row ids stay as they are, and the versions of rows stay good enough for `delta` across it (`row_versions`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lance import LanceDataset, LanceOperation
from lance.fragment import FragmentMetadata
from lance.optimize import Compaction, CompactionTask

from omnigraph.storage.files.fragments import fragments_of
from omnigraph.storage.stage.changes import Staged, following
from omnigraph.storage.stage.compaction import Rewritten, compaction_options, rewrite_groups, written_again
from omnigraph.storage.unavailable import translated


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
        for fragment in fragments_of(handle):
            after = shrunk.get(fragment.id, fragment)
            if after is None:
                continue
            deleted = after.num_deletions
            live = fragment.physical_rows - deleted
            if live < rows or deleted:
                sizes = [file.file_size_bytes for file in fragment.files]
                size = None if None in sizes else sum(filter(None, sizes))
                borrowed = any(file.base_id is not None for file in fragment.files)
                found.append(Fragment(fragment.id, live, deleted, size, borrowed))
    return found


def indexed_fragments(handle: LanceDataset) -> set[int]:
    """The fragments that an index answers for, or has answered for."""
    with translated(handle.uri):
        segments = [segment for index in handle.describe_indices() for segment in index.segments]
        return {int(number) for segment in segments for number in segment.fragment_ids}


def fits(rewritten: Rewritten, handle: LanceDataset, shrunk: Shrunk) -> bool:
    """Are the old fragments, as a change leaves them in this version, those whose rows were written?

    None may have come to be indexed: Lance would let the index answer for another fragment in their place.
    """
    if not indexed_fragments(handle).isdisjoint(rewritten.replaced):
        return False
    with translated(handle.uri):
        return set(_described(handle, rewritten.replaced, shrunk)) == set(rewritten.old)


def rewrite_fragments(
    handle: LanceDataset, numbers: Sequence[int], shrunk: Shrunk, rows_per_file: int, exact_rows: int
) -> Rewritten:
    """Write the rows of some fragments again as few files, as a change leaves them. The table stays as it is.

    Files of more than ``exact_rows`` rows get coarser versions of their rows.
    """
    with translated(handle.uri):
        plan: Any = Compaction.plan(handle, compaction_options(rows_per_file))
        old = tuple(_described(handle, numbers, shrunk))
        options = json.dumps(json.loads(plan.json())["options"])
        described = (
            f'{{"task":{{"fragments":[{",".join(old)}]}},"read_version":{handle.version},"options":{options}}}'
        )
        tasks: Any = CompactionTask
        group: CompactionTask = tasks.from_json(described)
        _, new = written_again(handle, group, exact_rows)
    return Rewritten(old, new)


def _described(handle: LanceDataset, numbers: Iterable[int], shrunk: Shrunk) -> Iterator[str]:
    """Fragments as a change leaves them, in Lance's own words; null for one that is not there."""
    left: Shrunk = {fragment.id: fragment for fragment in fragments_of(handle)} | dict(shrunk)
    for number in numbers:
        found = left.get(number)
        yield json.dumps(None if found is None else found.to_json())


def stage_fold(change: Staged, rewritten: Rewritten, operation: str) -> Staged:
    """Stage an exchange of fragments as the version after another staged change of the same table."""
    return following(change, LanceOperation.Rewrite(rewrite_groups([rewritten]), []), operation)
