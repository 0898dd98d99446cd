"""The snapshot: one immutable state of a graph, which readers, writers, bulk jobs and Spark tasks hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.manifest.state import Commit, ManifestState, TablePin
from omnigraph.records import dataclass
from omnigraph.storage.address import Address

if TYPE_CHECKING:
    from omnigraph.manifest.streams import Marks


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of a branch: the graph's address and schema, the version of each table, and the head commit.

    It is plain data and can be pickled: any process that reaches the store opens exactly the same tables from it.
    """

    address: Address = field(repr=False)
    catalog: Catalog = field(repr=False)
    branch: str
    manifest_version: int
    commit: Commit | None
    tables: Mapping[str, TablePin]
    internal_schema_version: int
    streams: Marks = field(default_factory=dict, repr=False)
    schema_digest: str | None = None
    """What names the accepted schema; None if it is the one that the graph was created with."""

    @classmethod
    def of(cls, address: Address, catalog: Catalog, branch: str, state: ManifestState) -> Snapshot:
        """The snapshot that one version of a branch's manifest describes."""
        return cls(
            address,
            catalog,
            branch,
            state.version,
            state.head,
            state.tables,
            state.stamp,
            state.streams,
            state.schema,
        )

    @property
    def graph_commit_id(self) -> str | None:
        """The id of the commit that made this state."""
        return None if self.commit is None else self.commit.graph_commit_id

    def entity(self, table_key: str) -> EntityType:
        """The type behind a table key."""
        return self.catalog.entity(table_key)

    def schema(self, table_key: str) -> pa.Schema:
        """The columns of a table."""
        return table_schema(self.entity(table_key))

    def rows(self, table_key: str) -> int:
        """The number of rows of a table."""
        return self.tables[table_key].row_count

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "manifest_version": self.manifest_version,
            "graph_commit_id": self.graph_commit_id,
            "internal_schema_version": self.internal_schema_version,
            "tables": [pin.as_json() for pin in self.tables.values()],
        }
