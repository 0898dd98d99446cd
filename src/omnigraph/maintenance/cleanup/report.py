"""What a cleanup removes, or would remove: what can be read no more, and the files of each table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.maintenance.cleanup.retention import Retention


@dataclass(frozen=True, slots=True)
class CleanedTable:
    """What goes of one table. ``table_key`` is its location if no state has the table any more."""

    table_key: str
    location: str
    versions_removed: int
    versions_kept: int
    files_removed: int
    bytes_removed: int

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "location": self.location,
            "versions_removed": self.versions_removed,
            "versions_kept": self.versions_kept,
            "files_removed": self.files_removed,
            "bytes_removed": self.bytes_removed,
        }


@dataclass(frozen=True, slots=True)
class CleanedBranch:
    """What goes of the states of one branch, and from which commit on all of them stay. ``also_kept`` is how many
    older ones stay too, for tags, forks and merges."""

    branch: str
    states_removed: int
    oldest_version: int
    oldest_commit: str | None
    also_kept: int

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "states_removed": self.states_removed,
            "oldest_manifest_version": self.oldest_version,
            "oldest_commit_id": self.oldest_commit,
            "also_kept": self.also_kept,
        }


@dataclass(frozen=True, slots=True)
class CleanupReport:
    """What was removed, or what a confirmed cleanup would remove. Tables of which nothing goes are left out."""

    policy: Retention
    confirmed: bool
    branches: tuple[CleanedBranch, ...]
    tables: tuple[CleanedTable, ...]
    jobs_removed: int = 0
    objects_removed: int = 0
    """Schemas, hints and kept states that nothing needs."""

    @property
    def files_removed(self) -> int:
        """All files that go."""
        return sum(table.files_removed for table in self.tables)

    @property
    def bytes_removed(self) -> int:
        """Their bytes."""
        return sum(table.bytes_removed for table in self.tables)

    def as_json(self) -> dict[str, Any]:
        older_than = self.policy.older_than
        return {
            "confirmed": self.confirmed,
            "keep": self.policy.keep,
            "older_than_secs": None if older_than is None else int(older_than.total_seconds()),
            "grace_secs": int(self.policy.grace.total_seconds()),
            "branches": [branch.as_json() for branch in self.branches],
            "tables": [table.as_json() for table in self.tables],
            "jobs_removed": self.jobs_removed,
            "objects_removed": self.objects_removed,
            "files_removed": self.files_removed,
            "bytes_removed": self.bytes_removed,
        }
