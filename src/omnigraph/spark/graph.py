"""One snapshot of a graph as Spark sees it: types as DataFrames, and queries that return one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from omnigraph.bulk.pieces import open_table
from omnigraph.embed.client import EmbeddingClient, configured_client
from omnigraph.errors import RequestError
from omnigraph.history.diff import filtered
from omnigraph.history.refs import resolve
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import checked_columns, edge_type, node_type, table_keys
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import BulkSettings
from omnigraph.spark.frames import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, repr=False)
class SparkGraph:
    """A snapshot in a Spark session. Later writes to the graph do not change it."""

    spark: SparkSession
    snapshot: Snapshot
    embedder: Callable[[], EmbeddingClient | None] = configured_client
    settings: BulkSettings = field(default_factory=BulkSettings)

    def __repr__(self) -> str:
        address, branch, at = self.snapshot.address, self.snapshot.branch, self.snapshot.manifest_version
        return f"SparkGraph({str(address)!r}, branch={branch!r}, manifest_version={at})"

    @property
    def catalog(self) -> Catalog:
        """The accepted schema, for looking things up."""
        return self.snapshot.catalog

    def nodes(self, name: str, columns: Iterable[str] | None = None, filter: str | None = None) -> DataFrame:  # noqa: A002
        """The nodes of a type: `id` and the properties, or some of them; ``filter`` is a condition in Lance's SQL,
        which is applied while the table is read."""
        return self._frame(node_type(self.catalog, name), columns, filter)

    def edges(self, name: str, columns: Iterable[str] | None = None, filter: str | None = None) -> DataFrame:  # noqa: A002
        """The edges of a type: `id`, `src`, `dst` and the properties, or some of them."""
        return self._frame(edge_type(self.catalog, name), columns, filter)

    def query(self, text: str, params: Mapping[str, object] | None = None, name: str | None = None) -> DataFrame:
        """The rows of a read query, computed by Spark when it needs them."""
        from omnigraph.spark.queries.execution import query_frame

        compiled = compile_read(text, self.catalog, name)
        values = bind_parameters(compiled.name, compiled.params, params)
        return query_frame(self.spark, self.snapshot, compiled, values, embedder=self.embedder)

    def diff(
        self,
        before: str | int | dt.datetime | Snapshot,
        after: str | int | dt.datetime | Snapshot | None = None,
        *,
        kinds: Sequence[Literal["node", "edge"]] | None = None,
        types: Iterable[str] | None = None,
        ops: Sequence[Literal["insert", "update", "delete"]] | None = None,
    ) -> DataFrame:
        """What changed from one state to another, by default to this one; see `Graph.diff`.

        The columns are `op`, `table_key`, `id`, `changed` (the names of the properties that an update changed),
        `before` and `after`: JSON, or structs with typed columns if ``types`` names one type. The changes come in
        no certain order.
        """
        from omnigraph.spark.diff import diff_frame

        repository = Repository.at(self.snapshot.address, read_only=True)
        branch = repository.branches.find(self.snapshot.branch)
        old = resolve(repository, branch, before)
        new = self.snapshot if after is None else resolve(repository, branch, after)
        keys = None if types is None else table_keys(self.catalog, types)
        typed = self.snapshot.entity(keys[0]) if keys is not None and len(keys) == 1 else None
        return diff_frame(self.spark, old, new, filtered(kinds, keys, ops, new.catalog), typed, self.settings)

    def _frame(self, entity: EntityType, columns: Iterable[str] | None, where: str | None) -> DataFrame:
        chosen = checked_columns(entity, columns)
        check_filter(self.snapshot, entity, where)
        return table_frame(self.spark, self.snapshot, entity.table_key, chosen, where)


def check_filter(snapshot: Snapshot, entity: EntityType, where: str | None) -> None:
    """Refuse a condition that Lance does not understand, before any worker reads with it."""
    if where is None:
        return
    try:
        open_table(snapshot, entity.table_key).scanner(columns=["id"], filter=where).explain_plan()
    except (ValueError, OSError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0].split(", /")[0]
        raise RequestError(f"the filter of {entity.name} cannot be understood: {where}: {reason}") from error
