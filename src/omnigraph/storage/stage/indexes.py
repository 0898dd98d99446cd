"""Indexes of one table: which there are, and building more of them in transactions that are not committed yet.

An index consists of segments. Each answers for the rows of some fragments; the rows of fragments that are in no
segment are scanned. New rows are indexed by a segment of their own, and small segments are built again together
with it, so that an index has few segments of quickly growing sizes, and a row is indexed only a few times.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from math import isqrt
from typing import Any, Final, Literal

from lance import LanceDataset, LanceFragment, LanceOperation
from lance.dataset import Index

from omnigraph.errors import OmniError
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.files.fragments import fragments_of
from omnigraph.storage.files.staged import settle_index
from omnigraph.storage.handles import TableRef
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage.changes import Staged, staged_operation
from omnigraph.storage.unavailable import translated

TIER: Final = 4
"""A segment is built again with the new rows if it has fewer than so many times their number."""

SEGMENT_ROWS: Final = 4_000_000
"""A segment of so many rows is left as it is. The memory for building one is bounded by it."""

_MISSING: Final = 2**31
"""No fragment has this id or a higher one."""

IndexKind = Literal["BTREE", "IVF_FLAT", "IVF_RQ"]

VECTOR_KINDS: Final[frozenset[str]] = frozenset(("IVF_FLAT", "IVF_RQ"))
"""The kinds of indexes that find vectors."""

_MAX_PARTITIONS: Final = 4096


@dataclass(frozen=True, slots=True)
class IndexSpec:
    """An index to build over one column. ``options`` are Lance's, for the kind: a metric."""

    column: str
    kind: IndexKind
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of an index: its fragments, how many rows they have, and the version from which it was built."""

    segment_id: str
    fragments: frozenset[int]
    rows: int
    version: int


@dataclass(frozen=True, slots=True)
class ExistingIndex:
    """An index a table has. ``rows`` is how many of the table's rows it answers for; the others are scanned."""

    column: str
    kind: str
    name: str
    rows: int
    options: Mapping[str, Any] = field(default_factory=dict)
    segments: tuple[Segment, ...] = ()


@dataclass(frozen=True, slots=True)
class SegmentBuild:
    """A segment to build: its fragments, how many rows they have, and the segments that it replaces."""

    spec: IndexSpec
    fragments: tuple[int, ...]
    rows: int
    replaces: tuple[str, ...] = ()


def existing_indexes(handle: LanceDataset) -> list[ExistingIndex]:
    """The indexes of a table. No data is read."""
    with translated(handle.uri):
        sizes = fragment_rows(handle)
        return [_existing(found, sizes) for found in handle.describe_indices() if found.field_names]


def _existing(found: Any, sizes: Mapping[int, int]) -> ExistingIndex:
    segments: list[Segment] = []
    for segment in found.segments:
        covered = frozenset(number for number in sizes if number in segment.fragment_ids)
        rows = sum(sizes[number] for number in covered)
        segments.append(Segment(str(segment.uuid), covered, rows, segment.dataset_version_at_last_update))
    return ExistingIndex(
        found.field_names[0],
        found.index_type.upper(),
        found.name,
        sum(segment.rows for segment in segments),
        found.details or {},
        tuple(segments),
    )


def fragment_rows(handle: LanceDataset) -> dict[int, int]:
    """How many rows each fragment has that are not deleted."""
    return {one.id: one.num_rows for one in fragments_of(handle)}


def chosen_fragments(handle: LanceDataset, ids: Collection[int]) -> list[LanceFragment]:
    """The fragments that have these ids."""
    return [fragment for fragment in map(handle.get_fragment, ids) if fragment is not None]


def partitions_of(rows: int) -> int:
    """In how many partitions a segment of vectors keeps its rows."""
    return max(1, min(isqrt(rows), _MAX_PARTITIONS))


def plan_index(handle: LanceDataset, spec: IndexSpec) -> list[SegmentBuild]:
    """The segments of an index over all rows of a table, in place of the segments of an index of that name."""
    old = [each for each in existing_indexes(handle) if each.name == spec.name]
    sizes = fragment_rows(handle)
    return list(_builds(spec, sorted(sizes), sizes, [segment for index in old for segment in index.segments]))


def plan_catch_up(
    handle: LanceDataset, spec: IndexSpec, segments: Sequence[Segment], among: Collection[int] | None = None
) -> list[SegmentBuild]:
    """The segments to build so that an index answers for all fragments, or for all of those ``among`` them.

    Segments that are small beside the new rows are built again together with them.
    """
    sizes = fragment_rows(handle)
    covered = {number for segment in segments for number in segment.fragments}
    wanted = sizes.keys() if among is None else sizes.keys() & set(among)
    fragments = sorted(wanted - covered)
    if not fragments:
        return []
    kept = sorted(segments, key=lambda segment: segment.rows, reverse=True)
    taken: list[Segment] = []
    rows = sum(sizes[number] for number in fragments)
    while kept and kept[-1].rows < min(TIER * max(rows, 1), SEGMENT_ROWS):
        taken.append(kept.pop())
        rows += taken[-1].rows
    fragments = sorted({*fragments, *(number for segment in taken for number in segment.fragments)})
    return list(_builds(spec, fragments, sizes, taken))


def _builds(
    spec: IndexSpec, fragments: Sequence[int], sizes: Mapping[int, int], replaced: Iterable[Segment]
) -> Iterator[SegmentBuild]:
    """Segments over these fragments, each with a bounded number of rows; the first replaces the old ones."""
    ids = tuple(segment.segment_id for segment in replaced)
    group: list[int] = []
    rows = 0
    for number in fragments:
        if group and rows + sizes[number] > SEGMENT_ROWS:
            yield SegmentBuild(spec, tuple(group), rows, ids)
            group, rows, ids = [], 0, ()
        group.append(number)
        rows += sizes[number]
    yield SegmentBuild(spec, tuple(group), rows, ids)


def stage_create_index(
    handle: LanceDataset, location: str, branch: str | None, specs: Iterable[IndexSpec], operation: str
) -> Staged:
    """Stage any number of indexes over all rows as one change; each replaces the one that has its name."""
    builds = [build for spec in specs for build in plan_index(handle, spec)]
    return stage_segments(handle, location, branch, build_segments(handle, builds), operation)


@dataclass(frozen=True, slots=True)
class BuiltSegment:
    """A segment that is written, and that no version of the table refers to yet."""

    index: Index
    replaces: tuple[str, ...]


def build_segments(handle: LanceDataset, builds: Iterable[SegmentBuild]) -> list[BuiltSegment]:
    """Write segments; the table stays as it is.

    Lance lets no other thread use a handle while it builds through it, so it cannot be one that readers share.
    """
    with translated(handle.uri):
        return [BuiltSegment(_build(handle, build), build.replaces) for build in builds]


def stage_segments(
    handle: LanceDataset, location: str, branch: str | None, built: Iterable[BuiltSegment], operation: str
) -> Staged:
    """Stage segments that are written already as one change."""
    every = list(built)
    replaced = {segment_id for one in every for segment_id in one.replaces}
    with translated(handle.uri):
        removed = [index for index in _stored_segments(handle) if index.uuid in replaced]
    create = LanceOperation.CreateIndex(new_indices=[one.index for one in every], removed_indices=removed)
    return staged_operation(handle, location, branch, create, operation)


def discard_segments(objects: ObjectStore, ref: TableRef, built: Iterable[BuiltSegment]) -> None:
    """Remove segments that are not going to be committed, as far as the store lets us."""
    folder = f"{layout.native_prefix(ref.location, ref.branch)}/_indices"
    with suppress(OmniError):
        for one in built:
            objects.delete_prefix(f"{folder}/{one.index.uuid}")


def _build(handle: LanceDataset, build: SegmentBuild) -> Index:
    spec = build.spec
    index = handle.create_index_uncommitted(
        spec.column, spec.kind, name=spec.name, fragment_ids=list(build.fragments), replace=True, **spec.options
    )
    settle_index(handle.uri, index)
    return index if spec.kind == "BTREE" else _with_missing_fragment(index, build.fragments)


def _with_missing_fragment(index: Index, fragments: Sequence[int]) -> Index:
    """A segment that names, besides its fragments, one that no table has.

    Lance compares what such a segment finds with the rows that are there only if one of its fragments has deleted
    rows, or is missing. A compaction leaves fragments without deleted rows, of which the segment still knows, and
    a search for the nearest ten would find less than ten.
    """
    named: Any = {*fragments, _MISSING + min(fragments)} if fragments else set()
    return replace(index, fragment_ids=named)


def _stored_segments(handle: LanceDataset) -> Iterator[Index]:
    """The segments of a table's indexes, in the form in which a transaction removes them."""
    for found in handle.describe_indices():
        for segment in found.segments:
            yield Index(
                str(segment.uuid),
                found.name,
                list(found.fields),
                segment.dataset_version_at_last_update,
                segment.fragment_ids,
                segment.index_version,
                base_id=segment.base_id,
            )
