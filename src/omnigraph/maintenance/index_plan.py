"""Which indexes a table should have, and which of them are to be built now.

Planning is a function of the type and of a few facts about its table. An index that the schema asks for and that
is not built now is reported with the reason: queries are correct without it, only slower.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from math import isqrt
from typing import Any, Final

from omnigraph.lang.schema.catalog import EntityType, NodeType, Property
from omnigraph.read.text.analysis import INDEX_OPTIONS
from omnigraph.storage.indexing import ExistingIndex, IndexKind, IndexSpec

VECTOR_ROWS: Final = 50_000
"""Below this many vectors an exact search is fast enough; above, an approximate index is worth its loss."""

STALE_SHARE: Final = 0.1
STALE_ROWS: Final = 10_000
"""An index is rebuilt once more than this share of a table's rows, or more than this many, are not in it."""

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
class TableFacts:
    """What a plan depends on. ``filled`` counts the rows that have a value in a column; it scans the column."""

    rows: int
    indexes: tuple[ExistingIndex, ...]
    filled: Callable[[str], int]
    shared_with: str | None = None
    """The branch that owns the table, if the planned branch has not forked it yet."""


@dataclass(frozen=True, slots=True)
class TablePlan:
    """The indexes of a table to build now, and those to defer."""

    build: tuple[IndexSpec, ...]
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


def plan_table(entity: EntityType, facts: TableFacts) -> TablePlan:
    """The indexes that a table lacks: those that are missing, and those that too many rows are not in."""
    build: list[IndexSpec] = []
    deferred: list[DeferredIndex] = []
    for wanted in wanted_indexes(entity):
        match _decide(wanted, facts):
            case IndexSpec() as spec:
                build.append(spec)
            case str() as reason:
                deferred.append(DeferredIndex(entity.table_key, wanted.column, wanted.kind, reason))
    return TablePlan(tuple(build), tuple(deferred))


def _decide(wanted: Wanted, facts: TableFacts) -> IndexSpec | str | None:
    """The index to build, or the reason to defer it; None if the table has it."""
    if wanted.kind is None:
        return "lists are not indexed"
    present = next((i for i in facts.indexes if (i.column, i.kind) == (wanted.column, wanted.kind)), None)
    if present is not None and wanted.is_met_by(present):
        missing = facts.rows - present.rows
        if missing <= 0:
            return None
        if missing <= STALE_ROWS and missing <= STALE_SHARE * facts.rows:
            return f"{missing} rows since the index was built are scanned"
    if not facts.rows:
        return "the table is empty"
    if facts.shared_with is not None:
        return f"shared with branch {facts.shared_with}; index it there"
    options = wanted.options
    if wanted.kind == "IVF_FLAT":
        vectors = facts.rows if facts.rows < VECTOR_ROWS else facts.filled(wanted.column)
        if vectors < VECTOR_ROWS:
            return f"{vectors} rows; exact search is fast enough below {VECTOR_ROWS}"
        options = {**options, "num_partitions": min(isqrt(vectors), MAX_PARTITIONS)}
    taken = {index.name for index in facts.indexes}
    name = present.name if present is not None else _free_name(wanted.column, wanted.kind, taken)
    return IndexSpec(wanted.column, wanted.kind, name, options)


def _free_name(column: str, kind: IndexKind, taken: Set[str]) -> str:
    """A name that no index of the table has. A renamed column may have kept the plain one."""
    plain = f"{column}_{_SUFFIXES[kind]}"
    name, number = plain, 1
    while name in taken:
        number += 1
        name = f"{plain}_{number}"
    return name
