"""What a repair found, and what it did."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Classification(StrEnum):
    """What made the versions that the manifest does not know."""

    NO_DRIFT = "no_drift"
    VERIFIED_MAINTENANCE = "verified_maintenance"
    PENDING_WRITE = "pending_write"
    UNPUBLISHED_WRITE = "unpublished_write"
    SUSPICIOUS = "suspicious"
    UNVERIFIABLE = "unverifiable"


class Action(StrEnum):
    """What a repair did with a table, or would do."""

    NO_OP = "no_op"
    PREVIEW = "preview"
    HEALED = "healed"
    UNDONE = "undone"
    FORCED = "forced"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class DriftVersion:
    """A version that the manifest does not know: Lance's name of the operation that made it, and when. If a writer
    of OmniGraph made it, ``operation_id`` is that of its write."""

    version: int
    operation: str
    made_at: dt.datetime | None = None
    operation_id: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "operation": self.operation,
            "made_at": None if self.made_at is None else self.made_at.isoformat().replace("+00:00", "Z"),
            "operation_id": self.operation_id,
        }


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How many rows versions have added, changed and removed, all together."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __str__(self) -> str:
        return f"+{self.inserted} ~{self.updated} -{self.deleted}"

    def as_json(self) -> dict[str, Any]:
        return {"inserted": self.inserted, "updated": self.updated, "deleted": self.deleted}


@dataclass(frozen=True, slots=True)
class TableRepair:
    """One table: its published version, its newest version, and the versions between the two.

    ``changes`` is what these did to the rows, None if that cannot be told. A table of which only the stored number
    of rows is wrong has no such versions, and ``row_count`` is the right number.
    """

    table_key: str
    table_version: int
    lance_head_version: int
    classification: Classification
    action: Action
    versions: tuple[DriftVersion, ...] = ()
    changes: RowChanges | None = None
    row_count: int | None = None
    error: str | None = None

    @property
    def operations(self) -> tuple[str, ...]:
        """What Lance calls the operations that made the versions."""
        return tuple(version.operation for version in self.versions)

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "table_version": self.table_version,
            "lance_head_version": self.lance_head_version,
            "classification": self.classification.value,
            "action": self.action.value,
            "operations": list(self.operations),
            "versions": [version.as_json() for version in self.versions],
            "changes": None if self.changes is None else self.changes.as_json(),
            "row_count": self.row_count,
            "error": self.error,
        }


@dataclass(frozen=True, slots=True)
class Cure:
    """A small thing that was put right, or would be: what it was, and the file."""

    code: str
    file: str
    action: Action
    message: str

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "file": self.file, "action": self.action.value, "message": self.message}


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair of a branch found and did. ``manifest_version`` is the one it published, None if none."""

    branch: str
    manifest_version: int | None
    tables: tuple[TableRepair, ...]
    cures: tuple[Cure, ...] = ()

    @property
    def refused(self) -> bool:
        """Is there a table left that has to be inspected, and forced?"""
        return any(table.action is Action.REFUSED for table in self.tables)

    @property
    def is_idle(self) -> bool:
        """Is there nothing to repair?"""
        return not self.cures and all(table.action is Action.NO_OP for table in self.tables)

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "graph_manifest_version": self.manifest_version,
            "tables": [table.as_json() for table in self.tables],
            "cures": [cure.as_json() for cure in self.cures],
        }
