"""The unindexed tail of a table: a writer indexes a bounded piece of it, as the last version of its own commit.

Files are indexed when they have reached their size: smaller ones are still folded, and scanned quickly. Only BTREE
indexes are caught up here, one of them per write; words and vectors take longer, and are left to `optimize`.
"""

from __future__ import annotations

from dataclasses import replace

from lance import LanceDataset

from omnigraph.settings import WriteSettings
from omnigraph.storage.stage.changes import Staged
from omnigraph.storage.stage.folds import Shrunk
from omnigraph.storage.stage.indexes import (
    BuiltSegment,
    ExistingIndex,
    IndexSpec,
    SegmentBuild,
    build_segments,
    existing_indexes,
    fragment_rows,
    plan_catch_up,
    stage_segments,
)
from omnigraph.storage.tables import TableRef, Tables


def index_tail(tables: Tables, ref: TableRef, shrunk: Shrunk, settings: WriteSettings) -> list[BuiltSegment]:
    """Index some of the settled files that an index does not answer for; none if there is nothing to do."""
    handle = tables.open(ref)
    sizes = fragment_rows(handle)
    settled = [number for number, rows in sizes.items() if rows * 2 > settings.fold_rows and number not in shrunk]
    if not settled:
        return []
    for index in existing_indexes(handle):
        chosen = _uncovered(index, settled, sizes, settings.fold_rows)
        builds = _planned(handle, index, chosen, settings)
        if builds:
            tables.verify_fragments(ref, chosen)
            own = tables.dataset(ref.location, ref.branch, ref.version)  # not a handle that readers share
            return [] if own is None else build_segments(own, builds)
    return []


def _uncovered(index: ExistingIndex, settled: list[int], sizes: dict[int, int], most: int) -> list[int]:
    """Files that an index does not answer for, from the oldest on, with up to so many rows or only one."""
    covered = {number for segment in index.segments for number in segment.fragments}
    chosen: list[int] = []
    rows = 0
    for number in settled:
        if number not in covered and (not chosen or rows + sizes[number] <= most):
            chosen.append(number)
            rows += sizes[number]
    return chosen


def _planned(
    handle: LanceDataset, index: ExistingIndex, chosen: list[int], settings: WriteSettings
) -> list[SegmentBuild]:
    """The segments to build, unless they are more than a write should bear."""
    if not chosen or index.kind != "BTREE":
        return []
    builds = plan_catch_up(handle, IndexSpec(index.column, "BTREE", index.name), index.segments, chosen)
    return builds if sum(build.rows for build in builds) <= 2 * settings.fold_rows else []


def stage_tail(tables: Tables, ref: TableRef, before: Staged, built: list[BuiltSegment], operation: str) -> Staged:
    """Stage segments as the version after another staged change."""
    staged = stage_segments(tables.open(ref), ref.location, ref.branch, built, operation)
    version = before.read_version + 1
    return replace(staged, read_version=version, transaction=replace(staged.transaction, read_version=version))
