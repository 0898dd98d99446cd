"""Which indexes a table should have, and which of them are to be built now.

An index that the schema asks for and that is not built now is reported with the reason: queries are correct
without it, only slower.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from omnigraph.lang.schema.catalog import EntityType, NodeType, Property
from omnigraph.storage.stage.indexes import (
    VECTOR_KINDS,
    ExistingIndex,
    IndexKind,
    IndexSpec,
    SegmentBuild,
    partitions_of,
)

VECTOR_ROWS: Final = 50_000
"""Below this many vectors an exact search is fast enough; above, an approximate index is worth its loss."""

QUANTIZED_WIDTH: Final = 8
"""Vectors whose dimension is a multiple of this are kept in a few bits for each number, others as they are."""

_SUFFIXES: Final[Mapping[IndexKind, str]] = {"BTREE": "btree", "IVF_FLAT": "ivf", "IVF_RQ": "ivf"}


@dataclass(frozen=True, slots=True)
class DeferredIndex:
    """An index that the schema asks for and that was not built. ``kind`` is None if a column cannot have one."""

    table_key: str
    column: str
    kind: IndexKind | None
    reason: str

    def as_json(self) -> dict[str, Any]:
        return {"table_key": self.table_key, "column": self.column, "kind": self.kind, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class IndexLag:
    """How many rows an index may lack before it catches up: so many, or that share of the table's rows."""

    rows: int = 1_000
    share: float = 0.1

    def allows(self, missing: int, rows: int) -> bool:
        """May an index go on without so many of a table's rows?"""
        return missing <= self.rows and missing <= self.share * rows


DEFAULT_LAG: Final = IndexLag()

NO_LAG: Final = IndexLag(0, 0.0)
"""Every index answers for every row."""


class Table(Protocol):
    """What a plan asks about a table."""

    @property
    def rows(self) -> int:
        """How many rows it has."""

    @property
    def indexes(self) -> Sequence[ExistingIndex]:
        """The indexes it has."""

    @property
    def shared_with(self) -> str | None:
        """The branch that owns it, if the planned branch has not forked it yet."""

    def filled(self, column: str, fragments: Collection[int] | None = None) -> int:
        """How many rows, of all or of some fragments, have a value in a column. This scans the column."""

    def whole(self, spec: IndexSpec) -> list[SegmentBuild]:
        """The segments of an index over all rows."""

    def catching_up(self, spec: IndexSpec, index: ExistingIndex) -> list[SegmentBuild]:
        """The segments with which an index answers for all rows."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The segments of a table's indexes to build now, and the indexes to defer."""

    build: tuple[SegmentBuild, ...]
    deferred: tuple[DeferredIndex, ...]


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index that the schema asks for."""

    column: str
    kind: IndexKind | None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_of_vectors(self) -> bool:
        return self.kind in VECTOR_KINDS

    def is_like(self, index: ExistingIndex) -> bool:
        """Does the index find the same as the one that is wanted, though it may have to be built again?"""
        if index.column != self.column:
            return False
        return index.kind in VECTOR_KINDS if self.is_of_vectors else index.kind == self.kind

    def is_met_by(self, index: ExistingIndex) -> bool:
        """Was the index built as it is wanted now?"""
        if index.kind != self.kind or not self.is_of_vectors:
            return index.kind == self.kind
        return bool(str(index.options.get("metric_type")).lower() == self.options["metric"])


def wanted_indexes(entity: EntityType) -> list[Wanted]:
    """The indexes of a type: its id and endpoints, and the properties of its keys, uniques and indexes.

    Words are not among them: Lance scores a text by what its segments know, and queries by all rows of a version.
    """
    own = ["id"] if isinstance(entity, NodeType) else ["id", "src", "dst"]
    named = {name for group in (*entity.uniques, *entity.indexes) for name in group}
    named |= {*entity.key}
    wanted = [Wanted(name, "BTREE") for name in own]
    return wanted + [_of_property(prop) for prop in entity.properties.values() if prop.name in named]


def _of_property(prop: Property) -> Wanted:
    """The index of one property."""
    if prop.type.is_list:
        return Wanted(prop.name, None)
    if not prop.type.is_vector:
        return Wanted(prop.name, "BTREE")
    kind: IndexKind = "IVF_FLAT" if (prop.type.dimension or 0) % QUANTIZED_WIDTH else "IVF_RQ"
    return Wanted(prop.name, kind, {"metric": "l2" if prop.embed is None else "cosine"})


def plan_table(entity: EntityType, table: Table, lag: IndexLag = DEFAULT_LAG) -> TablePlan:
    """What the indexes of a table lack: those that are missing, and those that lack too many rows."""
    build: list[SegmentBuild] = []
    deferred: list[DeferredIndex] = []
    for wanted in wanted_indexes(entity):
        match _decide(wanted, table, lag):
            case str() as reason:
                deferred.append(DeferredIndex(entity.table_key, wanted.column, wanted.kind, reason))
            case builds:
                build += builds
    return TablePlan(tuple(build), tuple(deferred))


def _decide(wanted: Wanted, table: Table, lag: IndexLag) -> list[SegmentBuild] | str:
    """The segments to build, none if the table has the index; or the reason to defer it."""
    if wanted.kind is None:
        return "lists are not indexed"
    indexes = table.indexes
    present = next((index for index in indexes if wanted.is_like(index)), None)
    if present is not None and wanted.is_met_by(present):
        missing = table.rows - present.rows
        if missing <= 0:
            return []
        if lag.allows(missing, table.rows):
            return _scanned(missing)
        if table.shared_with is None:
            return _caught_up(IndexSpec(wanted.column, wanted.kind, present.name, wanted.options), table, present)
    if not table.rows:
        return "the table is empty"
    if table.shared_with is not None:
        return f"shared with branch {table.shared_with}; index it there"
    if wanted.is_of_vectors:
        vectors = table.rows if table.rows < VECTOR_ROWS else table.filled(wanted.column)
        if vectors < VECTOR_ROWS:
            return f"{vectors} rows; exact search is fast enough below {VECTOR_ROWS}"
    taken = {index.name for index in indexes}
    name = present.name if present is not None else _free_name(wanted.column, wanted.kind, taken)
    builds = table.whole(IndexSpec(wanted.column, wanted.kind, name, wanted.options))
    if wanted.is_of_vectors and len(builds) > 1:
        builds = [build for build in builds if table.filled(wanted.column, build.fragments)]
    return [_sized(build) for build in builds]


def _caught_up(spec: IndexSpec, table: Table, present: ExistingIndex) -> list[SegmentBuild] | str:
    """The segments with which an index answers for all rows; or the reason to leave it as it is."""
    builds = table.catching_up(spec, present)
    if spec.kind in VECTOR_KINDS and not all(table.filled(spec.column, build.fragments) for build in builds):
        return _scanned(table.rows - present.rows)
    return [_sized(build) for build in builds]


def _scanned(missing: int) -> str:
    return f"{missing} rows since the index was built are scanned"


def _sized(build: SegmentBuild) -> SegmentBuild:
    """A segment of vectors with as many partitions as suit its number of rows."""
    if build.spec.kind not in VECTOR_KINDS:
        return build
    spec = replace(build.spec, options={**build.spec.options, "num_partitions": partitions_of(build.rows)})
    return replace(build, spec=spec)


def _free_name(column: str, kind: IndexKind, taken: Set[str]) -> str:
    """A name that no index of the table has. A renamed column may have kept the plain one."""
    plain = f"{column}_{_SUFFIXES[kind]}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
