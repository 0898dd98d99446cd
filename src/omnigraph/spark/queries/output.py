"""From matched rows to the result: columns, groups, order and page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.errors import NotOnSpark, SumOverflow
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import DATETIME, F64, INTEGER_BOUNDS, INTEGERS, Scalar, ValueType
from omnigraph.read.pattern.needs import entities_of
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.output import Window, arrow_type
from omnigraph.read.run.search.ranking import resolved
from omnigraph.read.values.comparing import plain
from omnigraph.spark.frames import spark_type
from omnigraph.spark.queries.comparing import comparable
from omnigraph.spark.queries.matching import Matched
from omnigraph.spark.queries.ranking import Scored, is_ranked
from omnigraph.spark.queries.scanning import Tables, kind_of

_WIDE: Final = "decimal(38,0)"
"""Room for the sum of any integers."""
_MOST_ROWS: Final = 2**31 - 1
"""The largest number that Spark takes for a limit or an offset."""


@dataclass(frozen=True, slots=True)
class Page:
    """The rows that `offset` and `limit` choose; no limit means all."""

    offset: int
    limit: int | None

    @classmethod
    def of(cls, query: ir.QueryIR, expressions: Expressions) -> Page:
        """The page of a query; refused if Spark cannot count that far."""
        window = Window(query, expressions)
        limit = None if window.stop is None else window.stop - window.offset
        for what, number in (("limit", limit or 0), ("offset", window.offset)):
            if number > _MOST_ROWS:
                raise NotOnSpark(f"`{what} {number}`", f"leave it out, or give one up to {_MOST_ROWS}")
        return cls(window.offset, limit)

    def of_frame(self, frame: DataFrame) -> DataFrame:
        """The rows of the page."""
        frame = frame.offset(self.offset) if self.offset else frame
        return frame if self.limit is None else frame.limit(self.limit)


class Output:
    """The result of one query from its matched rows."""

    def __init__(self, query: ir.QueryIR, tables: Tables, expressions: Expressions, rows: Matched) -> None:
        self.query = query
        self.tables = tables
        self.expressions = expressions
        self.rows = rows

    def result(self, scored: Scored, page: Page) -> DataFrame:
        """One column for each column of the query, in their order, under names of their own."""
        ranked = self._ranked(scored)
        if self.query.aggregates:
            return page.of_frame(self._grouped(ranked))
        if self.query.distinct:
            return page.of_frame(self._distinct(ranked, scored.scores))
        return page.of_frame(self._plain(ranked, scored))

    def _ranked(self, scored: Scored) -> DataFrame:
        """The rows that every ranking among the sort keys ranks."""
        frame = scored.frame
        for order in self.query.order:
            expression = resolved(order.expression, self.query)
            if isinstance(expression, ir.Ranking):
                frame = frame.where(is_ranked(expression, fn.col(scored.scores[expression])))
        return frame

    def _plain(self, frame: DataFrame, scored: Scored) -> DataFrame:
        """One result for each row; ties go by the places in the arms of fusions, then by the ids of entities."""
        columns = [
            self._value(one.expression, one.type, scored.scores).alias(self.tables.fresh())
            for one in self.query.columns
        ]
        if not self.query.order:
            return frame.select(*columns)
        keys: list[Column] = []
        places: list[Column] = []
        for order in self.query.order:
            expression = resolved(order.expression, self.query)
            kind = self._kind(expression)
            value = comparable(self._value(expression, kind, scored.scores), kind)
            keys.append(_directed(value, descending=order.descending))
            if isinstance(expression, ir.Rrf):
                places += [fn.col(place).asc_nulls_last() for place in scored.places[expression]]
        names = sorted(entities_of(self.query.pipeline) & self.rows.variables.keys())
        ids = [fn.col(self.rows.variables[name].id).asc_nulls_first() for name in names]
        return frame.orderBy(*keys, *places, *ids).select(*columns)

    def _distinct(self, frame: DataFrame, scores: Mapping[ir.Ranking, str]) -> DataFrame:
        """Each result once; ties go by the columns."""
        names = [self.tables.fresh() for _ in self.query.columns]
        values = [
            comparable(self._value(one.expression, one.type, scores), one.type).alias(name)
            for one, name in zip(self.query.columns, names, strict=True)
        ]
        every = range(len(names))
        return self._by_columns(frame.select(*values).distinct(), names, every)

    def _grouped(self, frame: DataFrame) -> DataFrame:
        """One result for each group; ties go by the keys of the groups."""
        columns = self.query.columns
        names = [self.tables.fresh() for _ in columns]
        keys = [index for index, one in enumerate(columns) if not isinstance(one.expression, ir.Agg)]
        arguments = {
            name: comparable(self._value(argument, kind := self._kind(argument), {}), kind)
            for one, name in zip(columns, names, strict=True)
            for argument in (one.expression.argument if isinstance(one.expression, ir.Agg) else one.expression,)
        }
        prepared = frame.select(*(value.alias(name) for name, value in arguments.items()))
        aggregates = [
            _aggregated(one.expression, fn.col(name), self._kind(one.expression.argument))
            .cast(_WIDE if _is_integer_sum(one) else spark_type(one.type))
            .alias(name)
            for one, name in zip(columns, names, strict=True)
            if isinstance(one.expression, ir.Agg)
        ]
        grouped = prepared.groupBy(*(names[index] for index in keys)).agg(*aggregates)
        return self._by_columns(grouped, names, keys)

    def _by_columns(self, frame: DataFrame, names: Sequence[str], ties: Iterable[int]) -> DataFrame:
        """Rows ordered by their own columns. Lists and vectors have no order; they never break ties."""
        if not self.query.order:
            return frame.select(*names)
        keys = [
            _directed(fn.col(names[self._position(order.expression)]), descending=order.descending)
            for order in self.query.order
        ]
        last = [fn.col(names[i]).asc_nulls_first() for i in ties if self.query.columns[i].type.is_plain]
        return frame.orderBy(*keys, *last).select(*names)

    def _position(self, expression: ir.Expr) -> int:
        """The column that a sort key names; of two with one name the last."""
        for index in reversed(range(len(self.query.columns))):
            one = self.query.columns[index]
            if one.expression == expression or (isinstance(expression, ir.Alias) and one.name == expression.name):
                return index
        raise TypeError("an order key that is no column")

    def _kind(self, expression: ir.Expr) -> ValueType:
        """The type of an expression."""
        match expression:
            case ir.Prop(variable) | ir.Var(variable):
                return kind_of(expression, self.rows.variables[variable].entity)
            case ir.Constant(_, kind):
                return kind
            case ir.Param(name):
                return DATETIME if name == ir.NOW else self.query.params[name]
            case ir.Score() | ir.Rrf():
                return F64
            case _:
                raise TypeError(f"{type(expression).__name__} has no type of its own")

    def _value(self, expression: ir.Expr, kind: ValueType, scores: Mapping[ir.Ranking, str]) -> Column:
        """An expression as a column."""
        match expression:
            case ir.Var(name):
                return fn.col(self.rows.variables[name].id)
            case ir.Prop(variable):
                return fn.col(self.rows.variables[variable].named(expression))
            case ir.Param() | ir.Constant():
                return _literal(self.expressions.constant(expression), kind)
            case ir.Score() | ir.Rrf():
                return fn.col(scores[expression])
            case _:
                raise TypeError(f"{type(expression).__name__} has no value by row")


def _literal(value: Value, kind: ValueType) -> Column:
    """A value as a column. Days and instants go as numbers, which no calendar and no time zone can change."""
    if value is None:
        return fn.lit(None).cast(spark_type(kind))
    if isinstance(value, tuple):
        return fn.array(*(_literal(item, kind.item) for item in value)).cast(spark_type(kind))
    if kind.scalar is Scalar.DATE:
        return fn.date_from_unix_date(fn.lit(plain(value)))
    if kind.scalar is Scalar.DATETIME:
        return fn.timestamp_millis(fn.lit(plain(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return fn.lit(Decimal(value)).cast(spark_type(kind))
    return fn.lit(value).cast(spark_type(kind))


def _directed(key: Column, *, descending: bool) -> Column:
    """A sort key; null is below everything."""
    return key.desc_nulls_last() if descending else key.asc_nulls_first()


def _aggregated(agg: ir.Agg, values: Column, kind: ValueType) -> Column:
    """An aggregate. Integers are added exactly, however many; averages become a float at the end."""
    match agg.function:
        case "count":
            return fn.count_distinct(values) if agg.distinct else fn.count(values)
        case "min":
            return fn.min(values)
        case "max":
            return fn.max(values)
    total = fn.sum(values.cast("decimal(20,0)" if kind.scalar in INTEGERS else "double"))
    return total if agg.function == "sum" else fn.try_divide(total.cast("double"), fn.count(values))


def _is_integer_sum(column: ir.Column) -> bool:
    """Is it a sum over integers, which may exceed its type?"""
    expression = column.expression
    return isinstance(expression, ir.Agg) and expression.function == "sum" and column.type.is_integer


def as_frame(query: ir.QueryIR, result: DataFrame) -> DataFrame:
    """The result with the names and types that results have; a sum that is too large fails when it is computed."""
    columns: list[Column] = []
    for one, name in zip(query.columns, result.columns, strict=True):
        value = fn.col(name)
        if _is_integer_sum(one):
            low, high = INTEGER_BOUNDS[one.type.scalar]
            refusal = fn.raise_error(str(SumOverflow(query.name, show(one.expression))))
            fits = value.isNull() | value.between(fn.lit(Decimal(low)), fn.lit(Decimal(high)))
            value = fn.when(fits, value).otherwise(refusal.cast(_WIDE)).cast(spark_type(one.type))
        columns.append(value)
    return result.select(*columns).toDF(*(one.name for one in query.columns))


def as_table(query: ir.QueryIR, collected: pa.Table) -> pa.Table:
    """The collected rows, with the names and types that results have."""
    fields = [pa.field(one.name, arrow_type(one.type)) for one in query.columns]
    columns = []
    for one, column, field in zip(query.columns, collected.columns, fields, strict=True):
        try:
            columns.append(_typed(column, field.type))
        except pa.ArrowInvalid:
            raise SumOverflow(query.name, show(one.expression)) from None
    return pa.Table.from_arrays(columns, schema=pa.schema(fields))


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_fixed_size_list(kind):
        return column.cast(kind)
    return pa.chunked_array([_vectors(chunk, kind) for chunk in column.chunks], kind)


def _vectors(lists: pa.ListArray, kind: pa.DataType) -> pa.FixedSizeListArray:
    """Lists of one length as vectors. Arrow's own cast ends the process on nulls as Spark sends them."""
    present = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False), dtype=np.bool_)
    matrix = np.zeros((len(lists), kind.list_size), dtype=np.float32)
    matrix[present] = np.asarray(lists.flatten().to_numpy(zero_copy_only=False)).reshape(-1, kind.list_size)
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), type=kind, mask=pa.array(~present))
