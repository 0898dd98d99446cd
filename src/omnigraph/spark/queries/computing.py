"""Values computed from several variables, or from aggregates: by the embedded engine's code, batch by batch.

What one variable is enough for is computed while its table is read. The rest is computed here, on rows that Spark
has joined, so that both engines compute with the same code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from omnigraph.formats.columns import column
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import ValueType
from omnigraph.read.data.rows import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import NO_ROW, Frame
from omnigraph.read.values.columns import Column as Values
from omnigraph.spark.frames import arrow_type, spark_schema, spark_type
from omnigraph.spark.queries.failures import failing_in_words
from omnigraph.spark.queries.reading import Batch
from omnigraph.spark.queries.steps import Entity


class _Joined(Rows):
    """The rows of one batch, by the names of their columns."""

    def __init__(self, count: int, arrays: Mapping[str, pa.Array]) -> None:
        self.count = count
        self._arrays = arrays

    def column(self, name: str) -> Values:
        return Values(self._arrays[name])


@dataclass(frozen=True)
class Computation:
    """Some values to compute for each row. An operand is the property of `ROW` that is called as a query writes
    it, and has a column and a type."""

    query: str
    params: Mapping[str, Value]
    operands: Mapping[str, tuple[str, ValueType]]
    wanted: Mapping[str, tuple[ir.Expr, ValueType]]

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with the computed columns behind their own."""
        expressions = Expressions(self.query, self.params, _no_embedder)
        for batch in batches:
            arrays = {
                shown: batch.column(name).cast(column("", kind).type)
                for shown, (name, kind) in self.operands.items()
            }
            rows = _Joined(batch.num_rows, arrays)
            frame = Frame.of(ir.ROW, rows, rows.everything)
            with failing_in_words():
                made = [expressions.arrow(one, frame, column("", kind).type) for one, kind in self.wanted.values()]
            kinds = [arrow_type(spark_type(kind)) for _, kind in self.wanted.values()]
            cast = [array.cast(kind) for array, kind in zip(made, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays([*batch.columns, *cast], [*batch.schema.names, *self.wanted])


def _no_embedder() -> None:
    """Workers embed nothing."""


def with_computed(
    frame: DataFrame,
    wanted: Mapping[str, tuple[ir.Expr, ValueType]],
    operands: Mapping[ir.Expr, tuple[str, ValueType]],
    expressions: Expressions,
) -> DataFrame:
    """A frame with more columns: values computed from ``operands``, of which each has a column."""

    def named(part: ir.Expr) -> ir.Expr | None:
        ways = (part, ir.Prop(part.name, "id")) if isinstance(part, ir.Var) else (part,)
        return next((ir.Prop(ir.ROW, show(one)) for one in ways if one in operands), None)

    replaced = {name: (ir.replaced(one, named), kind) for name, (one, kind) in wanted.items()}
    used = {part.property for one, _ in replaced.values() for part in ir.parts(one) if isinstance(part, ir.Prop)}
    columns = {show(one): found for one, found in operands.items() if show(one) in used}
    computation = Computation(expressions.query, expressions.params, columns, replaced)
    types = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    types |= {name: spark_type(kind) for name, (_, kind) in replaced.items()}
    return frame.mapInArrow(computation.batches, spark_schema(types))


def without_rows(
    expression: ir.Expr, kind: ValueType, entities: Mapping[str, Entity], given: Expressions
) -> Value:
    """The value of an expression whose variables, if it has any, are all missing."""
    rows = {name: Batch.nothing(entity) for name, entity in entities.items()}
    frame = Frame(1, rows, dict.fromkeys(rows, np.full(1, NO_ROW, dtype=np.int32)))
    value = given.arrow(expression, frame, column("", kind).type)[0].as_py()
    answer: Value = tuple(value) if isinstance(value, list) else value
    return answer
