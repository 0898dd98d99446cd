"""Merges that two branches' changes do not allow."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from omnigraph.errors.conflicts import ConflictError
from omnigraph.records import dataclass


class ConflictKind(StrEnum):
    """Why an entity cannot be merged."""

    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"
    ORPHAN_EDGE = "orphan_edge"
    UNIQUE_VIOLATION = "unique_violation"
    CARDINALITY_VIOLATION = "cardinality_violation"
    VALUE_CONSTRAINT_VIOLATION = "value_constraint_violation"
    SCHEMA_CONFLICT = "schema_conflict"


@dataclass(frozen=True, slots=True)
class Conflict:
    """One entity about which two branches disagree, with its columns in the merge base and on both branches.

    ``ours`` is the target's, ``theirs`` the source's; each is None where the entity does not exist. ``properties``
    names those that both branches changed.
    """

    kind: ConflictKind
    table_key: str
    id: str | None
    message: str
    base: dict[str, Any] | None = None
    ours: dict[str, Any] | None = None
    theirs: dict[str, Any] | None = None
    properties: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind.value,
            "table_key": self.table_key,
            "id": self.id,
            "message": self.message,
            "properties": list(self.properties),
        }


class MergeConflicts(ConflictError):
    """Two branches have changed the graph in ways that cannot both hold. Nothing was written."""

    def __init__(self, source: str, target: str, conflicts: Sequence[Conflict], total: int | None = None) -> None:
        self.conflicts = tuple(conflicts)
        self.total = len(self.conflicts) if total is None else total
        super().__init__(source, target, self.conflicts, self.total)
        self.source = source
        self.target = target

    def __str__(self) -> str:
        shown = "".join(f"\n  {c.table_key} {c.kind.value}: {c.message}" for c in self.conflicts[:10])
        more = f"\n  … and {self.total - 10} more" if self.total > 10 else ""
        return (
            f"'{self.source}' cannot be merged into '{self.target}': "
            f"{self.total} conflict{'s' if self.total != 1 else ''}. Nothing was written. "
            f"Change one of the branches, or choose a side for each{shown}{more}"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "code": "conflict",
            "total": self.total,
            "merge_conflicts": [conflict.as_json() for conflict in self.conflicts],
        }
