"""The three sides of a merge, a revert or a cherry-pick: a base, what the source made of it, and the target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from omnigraph.errors import Conflict, ConflictKind, ConstraintViolation, InvalidArgument, KeyConflict
from omnigraph.history.diff import ChangeFilter, Shifts, TableDiff, diff
from omnigraph.history.merging.threeway import Choices, Merged, merge_table
from omnigraph.history.tables import RowChanges, RowDeltas, Touched
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.write.base import Base, with_blobs
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import validate
from omnigraph.write.protocol import Stage

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
        if not isinstance(self.choices, Mapping):
            raise InvalidArgument("choices", "give a dictionary of sides by table key and id")
        for entity in self.choices:
            match entity:
                case (str(), str()):
                    continue
            raise InvalidArgument("choices", f"{entity!r} is no entity; give its table key and id, as a pair")
        for side in (self.resolve, *self.choices.values()):
            if side not in (None, "ours", "theirs"):
                raise InvalidArgument("resolve", f"'{side}' is no side; there are ours and theirs")


@dataclass(frozen=True, slots=True)
class Three:
    """Three states of one graph. What leads from the base to the source is to be done to the target.

    ``lost`` has, by table, rows by which the base is to be taken as different from its snapshot.
    """

    base: Snapshot
    source: Snapshot
    target: Snapshot
    lost: Mapping[str, RowChanges] = field(default_factory=dict)

    @property
    def share_schema(self) -> bool:
        """Do all three have the same schema?"""
        return self.base.schema_digest == self.source.schema_digest == self.target.schema_digest


@dataclass(frozen=True, slots=True)
class Combined:
    """The change that a merge makes to the target, and the conflicts in its way.

    ``counts`` are the source's changes by table and operation, ``reads`` the tables that were compared. The change
    is rows in memory, or staged already. Of the ``total`` conflicts all are listed, or the first of them.
    """

    counts: Mapping[str, Mapping[str, int]]
    reads: frozenset[str]
    conflicts: tuple[Conflict, ...] = ()
    total: int = 0
    delta: Mapping[str, TableDelta] = field(default_factory=dict)
    stages: Mapping[str, Stage] = field(default_factory=dict)


Combine = Callable[[Base, Three, Decisions], Combined]
"""Compares source and target with their base, puts the changes together and checks the rules of the schema."""


@dataclass(frozen=True, slots=True)
class MergedSides:
    """What both sides have changed, and what becomes of the target, by table; nodes before edges."""

    theirs: Mapping[str, TableDiff]
    ours: Mapping[str, TableDiff]
    merged: Mapping[str, Merged]

    @property
    def conflicts(self) -> list[Conflict]:
        return [conflict for merged in self.merged.values() for conflict in merged.conflicts]

    @property
    def decided(self) -> set[tuple[str, str]]:
        return {entity for merged in self.merged.values() for entity in merged.decided}


def combine_in_memory(base: Base, sides: Three, decisions: Decisions, touched: Touched | None = None) -> Combined:
    """Combine the sides with all changed rows in the memory of this process."""
    find = touched or RowDeltas(base.repository.tables)
    found = merge_sides(base, sides, decisions, find, {})
    require_used(decisions.choices, found.decided)
    delta = {key: merged.delta for key, merged in found.merged.items() if merged.delta is not None}
    counts = {key: found.theirs[key].counts() for key in delta}
    return checked(base, delta, counts, frozenset(found.theirs), found.conflicts)


def merge_sides(
    base: Base, sides: Three, decisions: Decisions, touched: Touched, ahead: Mapping[str, RowChanges]
) -> MergedSides:
    """Compare source and target with the base, and put their changes together.

    ``ahead`` has, by table, rows by which the target is to be taken as different from its snapshot.
    """
    tables = base.repository.tables
    lost = Shifts(before=sides.lost)
    theirs = diff(tables, sides.base, sides.source, ChangeFilter(), touched, lost, sides.target)
    mine = {table.table_key: table for table in theirs.tables}
    shifts = Shifts(before=sides.lost, after=ahead)
    wanted = ChangeFilter(tables=frozenset(mine))
    ours = diff(tables, sides.base, sides.target, wanted, touched, shifts, sides.target)
    others = {table.table_key: table for table in ours.tables}
    choices, resolve, strict = decisions.choices, decisions.resolve, decisions.strict
    merged = {
        key: merge_table(table, others.get(key), choices, resolve, strict=strict) for key, table in mine.items()
    }
    return MergedSides(mine, others, merged)


def checked(
    base: Base,
    delta: Mapping[str, TableDelta],
    counts: Mapping[str, Mapping[str, int]],
    reads: frozenset[str],
    conflicts: Sequence[Conflict],
) -> Combined:
    """A change in memory, if there are no conflicts and it keeps the rules of the schema."""
    if conflicts:
        return Combined(counts, reads, tuple(conflicts), len(conflicts))
    whole = {
        key: replace(rows, upserts=with_blobs(base.snapshot.entity(key), rows.upserts))
        for key, rows in delta.items()
    }
    try:
        validate(whole, base, LISTED)
    except (ConstraintViolation, KeyConflict) as error:
        broken, total = as_conflicts(error)
        return Combined(counts, reads, tuple(broken), total)
    return Combined(counts, reads, delta=whole)


def require_used(choices: Choices, decided: Set[tuple[str, str]]) -> None:
    """Refuse a choice for an entity that is not in conflict."""
    unused = choices.keys() - decided
    if unused:
        key, entity = min(unused)
        raise InvalidArgument("choices", f"{key} '{entity}' is not in conflict; leave it out")


def as_conflicts(error: ConstraintViolation | KeyConflict) -> tuple[list[Conflict], int]:
    """Rules of the schema that the merged graph would break, as conflicts: nodes before edges, each type by id."""
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
    return sorted(found, key=_place), error.total


def _place(conflict: Conflict) -> tuple[bool, str, str, str, str]:
    key = conflict.table_key
    return key.startswith("edge:"), key, conflict.id or "", conflict.kind.value, conflict.message
