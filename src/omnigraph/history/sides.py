"""The three sides of a merge, a revert or a cherry-pick: a base, what the source made of it, and the target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from omnigraph.errors import Conflict, ConflictKind, ConstraintViolation, InvalidArgument, KeyConflict
from omnigraph.history.diff import ChangeFilter, Diff, diff
from omnigraph.history.tables import RowChanges
from omnigraph.history.threeway import Choices, merge_table
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import Tables
from omnigraph.write.delta import TableDelta

Side = Literal["ours", "theirs"]
LISTED: Final = 1_000
RULES: Final = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "card": ConflictKind.CARDINALITY_VIOLATION,
}
"""Which rule of the schema is which kind of conflict; all others are about single values."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """How conflicts are decided: ``resolve`` for one side in all of them, ``choices`` by table key and id.

    A ``strict`` merge does not put changes of different properties together.
    """

    strict: bool = False
    resolve: Side | None = None
    choices: Choices = field(default_factory=dict)

    def __post_init__(self) -> None:
        for side in (self.resolve, *self.choices.values()):
            if side not in (None, "ours", "theirs"):
                raise InvalidArgument("resolve", f"'{side}' is no side; there are ours and theirs")


@dataclass(frozen=True, slots=True)
class Three:
    """Three states of one graph. What leads from the base to the source is to be done to the target.

    ``since`` has, by table, rows by which the base is to be taken as different from its snapshot.
    """

    base: Snapshot
    source: Snapshot
    target: Snapshot
    since: Mapping[str, RowChanges] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Together:
    """The change of the target, with the counts of the source's changes by table, and what is in the way.

    ``reads`` are the tables that were compared.
    """

    delta: Mapping[str, TableDelta]
    counts: Mapping[str, Mapping[str, int]]
    conflicts: tuple[Conflict, ...]
    reads: frozenset[str]


def put_together(tables: Tables, sides: Three, decisions: Decisions) -> Together:
    """Compare source and target with the base, and put their changes together."""
    theirs = diff(tables, sides.base, sides.source, ChangeFilter(), sides.since)
    touched = frozenset(table.table_key for table in theirs.tables)
    ours = Diff(sides.base, sides.target)
    if sides.since or sides.base.tables != sides.target.tables:
        ours = diff(tables, sides.base, sides.target, ChangeFilter(tables=touched), sides.since)
    by_key = {table.table_key: table for table in ours.tables}
    delta: dict[str, TableDelta] = {}
    conflicts: list[Conflict] = []
    decided: set[tuple[str, str]] = set()
    for table in theirs.tables:
        key = table.table_key
        merged = merge_table(table, by_key.get(key), decisions.choices, decisions.resolve, strict=decisions.strict)
        if merged.delta is not None:
            delta[key] = merged.delta
        conflicts += merged.conflicts
        decided |= merged.decided
    unused = decisions.choices.keys() - decided
    if unused:
        key, entity = min(unused)
        raise InvalidArgument("choices", f"{key} '{entity}' is not in conflict; leave it out")
    counts = {table.table_key: table.counts() for table in theirs.tables if table.table_key in delta}
    return Together(delta, counts, tuple(conflicts), touched)


def as_conflicts(error: ConstraintViolation | KeyConflict) -> tuple[list[Conflict], int]:
    """Rules of the schema that the merged graph would break, as conflicts."""
    if isinstance(error, KeyConflict):
        kind = ConflictKind.DIVERGENT_INSERT
        return [
            Conflict(kind, error.table_key, each, f"'{each}' exists already") for each in error.ids
        ], error.total
    found = [
        Conflict(
            RULES.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
            violation.table_key,
            violation.row_id,
            violation.message,
        )
        for violation in error.violations
    ]
    return found, error.total
