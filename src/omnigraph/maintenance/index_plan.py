"""Which indexes a table should have, and which of them are to be built now.

An index that the schema asks for and that is not built now is reported with the reason: queries are correct
without it, only slower.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import isqrt
from typing import Any, Final, Protocol

from omnigraph.lang.schema.catalog import EntityType, NodeType, Property
from omnigraph.read.text.analysis import INDEX_OPTIONS
from omnigraph.storage.stage.indexes import ExistingIndex, IndexKind, IndexSpec, SegmentBuild

VECTOR_ROWS: Final = 50_000
"""Below this many vectors an exact search is fast enough; above, an approximate index is worth its loss."""

REBUILD_SHARE: Final = 0.1
"""An index of words is built again only if at least this share of the rows to index is new to it."""

MAX_PARTITIONS: Final = 4096

_SUFFIXES: Final[Mapping[IndexKind, str]] = {"BTREE": "btree", "INVERTED": "inverted", "IVF_FLAT": "ivf"}


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

    def is_met_by(self, index: ExistingIndex) -> bool:
        """Was the index built with the options that are wanted now?"""
        stored = index.options
        if self.kind == "IVF_FLAT":
            return bool(str(stored.get("metric_type")).lower() == self.options["metric"])
        return all(stored.get(name) == value for name, value in self.options.items())


def wanted_indexes(entity: EntityType) -> list[Wanted]:
    """The indexes of a type: its id and endpoints, and the properties of its keys, uniques and indexes."""
    own = ["id"] if isinstance(entity, NodeType) else ["id", "src", "dst"]
    exact = {name for group in entity.uniques for name in group}
    exact |= set(entity.key) if isinstance(entity, NodeType) else set()
    named = exact | {name for group in entity.indexes for name in group}
    wanted = [Wanted(name, "BTREE") for name in own]
    for prop in entity.properties.values():
        if prop.name in named:
            wanted += _of_property(prop, prop.name in exact)
    return wanted


def _of_property(prop: Property, exact: bool) -> Iterator[Wanted]:
    """The indexes of one property; ``exact`` adds one for look-ups of whole texts, besides that of their words."""
    if prop.type.is_list:
        yield Wanted(prop.name, None)
    elif prop.type.is_vector:
        yield Wanted(prop.name, "IVF_FLAT", {"metric": "l2" if prop.embed is None else "cosine"})
    elif prop.type.is_string and prop.type.members is None:
        yield Wanted(prop.name, "INVERTED", INDEX_OPTIONS)
        if exact:
            yield Wanted(prop.name, "BTREE")
    else:
        yield Wanted(prop.name, "BTREE")


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
    present = next((i for i in indexes if (i.column, i.kind) == (wanted.column, wanted.kind)), None)
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
    if wanted.kind == "IVF_FLAT":
        vectors = table.rows if table.rows < VECTOR_ROWS else table.filled(wanted.column)
        if vectors < VECTOR_ROWS:
            return f"{vectors} rows; exact search is fast enough below {VECTOR_ROWS}"
    taken = {index.name for index in indexes}
    name = present.name if present is not None else _free_name(wanted.column, wanted.kind, taken)
    builds = table.whole(IndexSpec(wanted.column, wanted.kind, name, wanted.options))
    if wanted.kind == "IVF_FLAT" and len(builds) > 1:
        builds = [build for build in builds if table.filled(wanted.column, build.fragments)]
    return [_sized(build) for build in builds]


def _caught_up(spec: IndexSpec, table: Table, present: ExistingIndex) -> list[SegmentBuild] | str:
    """The segments with which an index answers for all rows; or the reason to leave it as it is."""
    missing = table.rows - present.rows
    builds = table.catching_up(spec, present)
    rows = sum(build.rows for build in builds)
    if spec.kind == "INVERTED" and missing < REBUILD_SHARE * rows:
        return _scanned(missing)
    if spec.kind == "IVF_FLAT" and not all(table.filled(spec.column, build.fragments) for build in builds):
        return _scanned(missing)
    return [_sized(build) for build in builds]


def _scanned(missing: int) -> str:
    return f"{missing} rows since the index was built are scanned"


def _sized(build: SegmentBuild) -> SegmentBuild:
    """A segment of vectors with as many partitions as suit its number of rows."""
    if build.spec.kind != "IVF_FLAT":
        return build
    partitions = max(1, min(isqrt(build.rows), MAX_PARTITIONS))
    spec = replace(build.spec, options={**build.spec.options, "num_partitions": partitions})
    return replace(build, spec=spec)


def _free_name(column: str, kind: IndexKind, taken: Set[str]) -> str:
    """A name that no index of the table has. A renamed column may have kept the plain one."""
    plain = f"{column}_{_SUFFIXES[kind]}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
