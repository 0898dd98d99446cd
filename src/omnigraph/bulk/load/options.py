"""What a load is asked to do, and what it did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.manifest.state import Commit
from omnigraph.manifest.streams import Batch


class Mode(StrEnum):
    """What happens to rows that are there: gone with their table, never touched, or replaced by id."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Where a load goes, and what is to happen with records that are wrong; of which stream it is a ``batch``."""

    mode: Mode
    branch: str
    fork_from: str | None = None
    actor: str | None = None
    message: str | None = None
    max_errors: int | None = None
    bad_records: str | None = None
    skip_bad: bool = False
    batch: Batch | None = None


@dataclass(frozen=True, slots=True)
class LoadResult:
    """What a load did. Counts are of records read, by type."""

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit
    base_branch: str | None = None
    branch_created: bool = False
    warnings: tuple[str, ...] = field(default=())

    @property
    def total_entities(self) -> int:
        return sum(self.nodes.values()) + sum(self.edges.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "nodes": [{"name": name, "entities_loaded": count} for name, count in self.nodes.items()],
            "edges": [{"name": name, "entities_loaded": count} for name, count in self.edges.items()],
            "total_entities": self.total_entities,
            "commit": self.commit.as_json(),
        }
