"""The rows of a query as a data source: `spark.read.format("omnigraph").option("query", …)`.

One task answers the query with the embedded engine. For results that one machine cannot hold, Spark computes it:
`graph.spark(session).query(…)`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from omnigraph.embed.client import configured_client
from omnigraph.errors import RequestError
from omnigraph.lang.parameters import bind_parameters
from omnigraph.lang.query.compile import compile_read
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.data.cache import Cache
from omnigraph.read.limits import Limits
from omnigraph.read.requests import Reader
from omnigraph.spark.datasource.opening import telling
from omnigraph.spark.frames import as_spark, spark_type

OPTIONS: Final = ("path", "query", "params", "name", "branch", "snapshot")
_ROWS: Final = 1 << 14


@dataclass(frozen=True, slots=True)
class QueryScan:
    """A query on one snapshot: its text, the name of the one that is meant, its parameters, and its columns."""

    snapshot: Snapshot
    text: str
    name: str | None
    params: Mapping[str, Any]
    types: dict[str, str]

    @classmethod
    def of(cls, options: Mapping[str, str], snapshot: Snapshot) -> QueryScan:
        """The query that options name, checked against the schema of the snapshot."""
        text, name, params = options["query"], options.get("name"), _params(options)
        compiled = compile_read(text, snapshot.catalog, name)
        bind_parameters(compiled.name, compiled.params, params)
        types = {column.name: spark_type(column.type) for column in compiled.ir.columns}
        if len(types) < len(compiled.ir.columns):
            raise RequestError("two columns of the query have one name; give them names of their own with `as`")
        return cls(snapshot, text, name, params, types)


def _params(options: Mapping[str, str]) -> dict[str, Any]:
    """The parameters of a query, which options have as JSON."""
    given = options.get("params", "{}")
    try:
        found = json.loads(given)
    except ValueError as error:
        raise RequestError(f"the option 'params' is a JSON object, and this is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise RequestError(f"the option 'params' is a JSON object with a value for each parameter, not {given}")
    return found


class QueryReader(DataSourceReader):
    """Answers a query in one task."""

    def __init__(self, scan: QueryScan) -> None:
        self._scan = scan

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(0)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:  # noqa: ARG002  there is one
        scan = self._scan
        with telling():
            repository = Repository.at(scan.snapshot.address, read_only=True)
            compiled = compile_read(scan.text, scan.snapshot.catalog, scan.name)
            reader = Reader(repository, Cache(), configured_client)
            table, _ = reader.run(compiled, scan.params, scan.snapshot, Limits(compiled.name))
            for batch in table.to_batches(_ROWS):
                yield as_spark(batch, scan.types)
