"""The options of a load, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.manifest.state import Commit
from omnigraph.manifest.streams import Batch
from omnigraph.settings import BulkSettings
from omnigraph.storage.external.sources import BlobSources
from omnigraph.write.rules import SHOWN


class Mode(StrEnum):
    """What happens to committed rows of the loaded types: removed, kept, or replaced by rows with the same id."""

    OVERWRITE = "overwrite"
    APPEND = "append"
    MERGE = "merge"


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """Which branch a load changes and how, and what happens to bad records. Streams set ``batch``.

    ``graph_commit_id`` is the id that the commit gets, and ``blobs`` says where bytes may be copied from.
    """

    mode: Mode
    branch: str
    fork_from: str | None = None
    actor: str | None = None
    message: str | None = None
    max_errors: int | None = None
    bad_records: str | None = None
    skip_bad: bool = False
    batch: Batch | None = None
    graph_commit_id: str | None = None
    settings: BulkSettings = field(default_factory=BulkSettings)
    blobs: BlobSources = field(default_factory=BlobSources)

    @property
    def error_limit(self) -> int:
        """How many errors of each kind are listed."""
        return self.max_errors or SHOWN


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The commit of a load, and how many records of each type it read. A load of nothing makes no commit.

    ``edges_without_identity`` are the edges that a merge added because neither a key of their type nor an id of
    their record says which edge they are: the same load once more adds them once more.
    """

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    commit: Commit | None
    base_branch: str | None = None
    branch_created: bool = False
    warnings: tuple[str, ...] = field(default=())
    edges_without_identity: int = 0

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
            "edges_without_identity": self.edges_without_identity,
            "commit": None if self.commit is None else self.commit.as_json(),
        }
