"""One snapshot of a graph as Spark sees it: types as DataFrames, and queries that return one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.bulk.pieces import open_table
from omnigraph.embed.client import EmbeddingClient, configured_client
from omnigraph.errors import RequestError
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import compile_read
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.lookup import checked_columns, edge_type, node_type
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.spark.frames import table_frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True, repr=False)
class SparkGraph:
    """A snapshot in a Spark session. Later writes to the graph do not change it."""

    spark: SparkSession
    snapshot: Snapshot
    embedder: Callable[[], EmbeddingClient | None] = configured_client

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
