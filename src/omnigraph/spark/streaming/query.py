"""A streaming query that fails with the error that stopped it, where Spark would show the text of a traceback."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from omnigraph.errors import OmniError

if TYPE_CHECKING:
    from omnigraph.spark.streaming.stream import BatchWriter


class GraphQuery(StreamingQuery):
    """A query that writes to a graph from this process."""

    def __init__(self, query: StreamingQuery, writer: BatchWriter) -> None:
        super().__init__(query._jsq)
        self._writer = writer

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802  Spark's name
        try:
            return super().awaitTermination(timeout)
        except StreamingQueryException as error:
            raise self._ordinary() or error from None

    def processAllAvailable(self) -> None:  # noqa: N802  Spark's name
        try:
            super().processAllAvailable()
        except StreamingQueryException as error:
            raise self._ordinary() or error from None

    def _ordinary(self) -> OmniError | None:
        found = self._writer.error
        return found if isinstance(found, OmniError) else None
