"""Reading a table for one variable: the rows for which its conditions hold, with the columns that the query needs.

This runs in the workers, batch by batch, with the embedded engine's own comparisons, searches and distances. What
does not match never reaches Spark, and neither do texts and vectors that are only searched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from omnigraph.bulk.pieces import Piece
from omnigraph.formats.columns import column, table_schema
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.read.data.rows import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.search.scorers import Scorer
from omnigraph.read.text.index import TextIndex
from omnigraph.read.values.columns import Column
from omnigraph.spark.frames import arrow_type
from omnigraph.spark.queries.failures import failing_in_words
from omnigraph.spark.queries.steps import Carried, Entity, Scan


@dataclass(frozen=True, slots=True)
class Values:
    """What is the same for all rows of an execution: parameters, and the scorers of the arms of its rankings.

    An arm without a scorer has no score for any row.
    """

    query: str
    params: Mapping[str, Value]
    scorers: Mapping[ir.Score, Scorer] = field(default_factory=dict)

    @property
    def expressions(self) -> Expressions:
        return Expressions(self.query, self.params, _no_embedder)


def _no_embedder() -> None:
    """Workers embed nothing: the driver has made vectors of texts before."""


class Batch(Rows):
    """The rows of one batch."""

    def __init__(self, entity: Entity, rows: pa.RecordBatch) -> None:
        super().__init__(entity, rows.num_rows)
        self.rows = rows
        self._indexes: dict[str, TextIndex] = {}

    @classmethod
    def nothing(cls, entity: Entity) -> Batch:
        """No rows of a type, without the columns that queries do not read."""
        fields = [field for field in table_schema(entity) if field.name not in _blobs(entity)]
        arrays = [pa.array([], field.type) for field in fields]
        return cls(entity, pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))

    def column(self, name: str) -> Column:
        return Column(self.rows.column(name))

    def text_index(self, name: str) -> TextIndex:
        if name not in self._indexes:
            self._indexes[name] = super().text_index(name)
        return self._indexes[name]

    def frame(self, variable: str) -> Frame:
        """A row for each entity."""
        return Frame.of(variable, self, self.everything)


def _blobs(entity: Entity) -> set[str]:
    return {prop.name for prop in entity.properties.values() if prop.type.is_blob}


@dataclass(frozen=True)
class Reading:
    """What is read of a table: which rows, and which values of them under which names."""

    scan: Scan
    pieces: Sequence[Piece]
    columns: Mapping[str, tuple[Carried, str]]
    """By name: what the column holds, and its Spark type."""
    values: Values
    where: str | None

    def batches(self, numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of the pieces with these numbers; Spark gives the numbers to its tasks."""
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for rows in self.pieces[number].batches(self._stored, self.where):
                    yield self.batch(Batch(self.scan.entity, rows))

    @cached_property
    def _stored(self) -> list[str]:
        """The stored columns that conditions and values are made from."""
        names: set[str] = set()
        for item in (*self.scan.conditions, *(item for item, _ in self.columns.values())):
            names |= {getattr(part, "property", "id") for part in ir.parts(item)}
        return [name for name in self.scan.entity.columns if name in names]

    def batch(self, rows: Batch) -> pa.RecordBatch:
        """Of some rows those that match, with the columns that the query needs."""
        with failing_in_words():
            return self._kept(rows)

    def _kept(self, rows: Batch) -> pa.RecordBatch:
        expressions = self.values.expressions
        kept = np.ones(rows.count, dtype=np.bool_)
        for condition in self.scan.conditions:
            kept &= expressions.holds(condition, rows.frame(self.scan.variable))
        if not kept.all():
            rows = Batch(self.scan.entity, rows.rows.filter(pa.array(kept)))
        arrays = [
            self._array(item, rows, expressions).cast(arrow_type(kind)) for item, kind in self.columns.values()
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))

    def _array(self, item: Carried, rows: Batch, expressions: Expressions) -> pa.Array:
        frame = rows.frame(self.scan.variable)
        match item:
            case ir.Prop(_, name):
                return rows.column(name).arrow
            case ir.TextMatch() | ir.Filter():
                return expressions.arrow(item, frame, pa.bool_())
            case ir.Call():
                return expressions.arrow(item, frame, column("", item.type).type)
            case ir.Score():
                scorer = self.values.scorers.get(item)
                if scorer is None or not rows.count:
                    return pa.nulls(rows.count, pa.float64())
                scores = scorer.scores(rows)
                return pa.array(scores, mask=np.isnan(scores))
