"""From matched rows to the result: columns, groups, order and page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.errors import NotOnSpark, SumOverflow
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import BOOL, ValueType
from omnigraph.read.pattern.needs import aggregates_of, entities_of
from omnigraph.read.result.nesting import nested
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.output import Window, arrow_type
from omnigraph.read.run.search.ranking import resolved
from omnigraph.spark.frames import spark_type
from omnigraph.spark.queries.aggregating import WIDE, aggregated, is_integer_sum, may_overflow, narrow, shared
from omnigraph.spark.queries.comparing import comparable
from omnigraph.spark.queries.computing import with_computed
from omnigraph.spark.queries.ranking import Scored, is_ranked
from omnigraph.spark.queries.rows import Matched, Valued
from omnigraph.spark.queries.scanning import Tables

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
        self.valued = Valued(tables.once() if rows.frame is None else rows.frame, rows, tables, expressions)

    def _computed(self) -> Iterator[ir.Expr]:
        """What the columns, the groups and the order need of each row."""
        keys = (resolved(order.expression, self.query) for order in self.query.order)
        for expression in (*(one.expression for one in self.query.columns), *keys, *self.query.having):
            if ir.is_aggregate(expression):
                yield from (part.argument for part in ir.parts(expression) if isinstance(part, ir.Agg))
            else:
                yield expression

    def result(self, scored: Scored, page: Page) -> DataFrame:
        """One column for each column of the query, in their order, under names of their own."""
        self.valued.frame = self._ranked(scored)
        self.valued.compute(self._computed())
        ranked = self.valued.frame
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
            self._value(one.expression, scored.scores).alias(self.tables.fresh()) for one in self.query.columns
        ]
        if not self.query.order:
            return frame.select(*columns)
        keys: list[Column] = []
        places: list[Column] = []
        for order in self.query.order:
            expression = resolved(order.expression, self.query)
            kind = self.valued.kind(expression)
            value = comparable(self._value(expression, scored.scores), kind)
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
            comparable(self._value(one.expression, scores), one.type).alias(name)
            for one, name in zip(self.query.columns, names, strict=True)
        ]
        every = range(len(names))
        return self._by_columns(frame.select(*values).distinct(), names, every)

    def _grouped(self, frame: DataFrame) -> DataFrame:
        """One result for each group; ties go by the keys of the groups."""
        columns = self.query.columns
        keys: dict[ir.Expr, str] = {
            one.expression: self.tables.fresh() for one in columns if not ir.is_aggregate(one.expression)
        }
        aggregates = {agg: self.tables.fresh() for agg in aggregates_of(self.query)}
        arguments: dict[ir.Expr, ir.Expr] = {key: key for key in keys}
        arguments.update({agg: agg.argument for agg in aggregates})
        names: dict[ir.Expr, str] = dict(keys)
        names.update(aggregates.items())
        prepared = frame.select(
            *(
                comparable(self._value(argument, {}), self.valued.kind(argument)).alias(names[one])
                for one, argument in arguments.items()
            )
        )
        made = [
            aggregated(agg, fn.col(name), self.valued.kind(agg.argument))
            .cast(WIDE if is_integer_sum(agg) else spark_type(agg.type))
            .alias(name)
            for agg, name in aggregates.items()
        ]
        return self._of_groups(prepared.groupBy(*keys.values()).agg(*made), keys, aggregates)

    def _of_groups(
        self, grouped: DataFrame, keys: Mapping[ir.Expr, str], aggregates: Mapping[ir.Agg, str]
    ) -> DataFrame:
        """The columns of the result from the keys and the aggregates of groups."""
        wanted: dict[ir.Expr, str] = {
            one: self.tables.fresh()
            for one in (*(c.expression for c in self.query.columns), *self._sorted_by())
            if ir.is_aggregate(one) and not isinstance(one, ir.Agg)
        }
        wanted |= {condition: self.tables.fresh() for condition in self.query.having}
        if wanted:
            grouped = self._narrowed(grouped, aggregates)
            operands: dict[ir.Expr, tuple[str, ValueType]] = {
                **{key: (name, self.valued.kind(key)) for key, name in keys.items()},
                **{agg: (name, agg.type) for agg, name in aggregates.items()},
            }
            computed = {name: (one, _kind_of(one)) for one, name in wanted.items()}
            grouped = with_computed(grouped, computed, operands, self.expressions)
        names: dict[ir.Expr, str] = dict(keys)
        names.update(aggregates.items())
        names.update(wanted)
        for condition in self.query.having:
            grouped = grouped.where(fn.col(names[condition]))
        if self.query.order:
            sorts = [
                _directed(fn.col(names[one]), descending=order.descending)
                for one, order in zip(self._sorted_by(), self.query.order, strict=True)
            ]
            grouped = grouped.orderBy(*sorts, *(fn.col(name).asc_nulls_first() for name in keys.values()))
        return grouped.select(
            *(fn.col(names[one.expression]).alias(self.tables.fresh()) for one in self.query.columns)
        )

    def _sorted_by(self) -> list[ir.Expr]:
        return [resolved(order.expression, self.query) for order in self.query.order]

    def _narrowed(self, grouped: DataFrame, aggregates: Mapping[ir.Agg, str]) -> DataFrame:
        """Sums with their types, which a computation needs; one that is too large fails."""
        sums = {name: agg for agg, name in aggregates.items() if may_overflow(agg)}
        return grouped.select(
            *(
                narrow(fn.col(name), sums[name], self.query).alias(name) if name in sums else fn.col(name)
                for name in grouped.columns
            )
        )

    def _by_columns(self, frame: DataFrame, names: Sequence[str], ties: Iterable[int]) -> DataFrame:
        """Rows ordered by their own columns; ties go by the columns, lists item by item."""
        if not self.query.order:
            return frame.select(*names)
        keys = [
            _directed(fn.col(names[self._position(order.expression)]), descending=order.descending)
            for order in self.query.order
        ]
        last = [fn.col(names[i]).asc_nulls_first() for i in ties]
        return frame.orderBy(*keys, *last).select(*names)

    def _position(self, expression: ir.Expr) -> int:
        """The column that a sort key names; of two with one name the last."""
        for index in reversed(range(len(self.query.columns))):
            one = self.query.columns[index]
            if one.expression == expression or (isinstance(expression, ir.Alias) and one.name == expression.name):
                return index
        raise TypeError("an order key that is no column")

    def _value(self, expression: ir.Expr, scores: Mapping[ir.Ranking, str]) -> Column:
        """An expression as a column."""
        if isinstance(expression, ir.Score | ir.Rrf):
            return fn.col(scores[expression])
        return self.valued.value(expression)


def _directed(key: Column, *, descending: bool) -> Column:
    """A sort key; null is below everything."""
    return key.desc_nulls_last() if descending else key.asc_nulls_first()


def _kind_of(expression: ir.Expr) -> ValueType:
    """The type of an expression over groups."""
    return expression.type if isinstance(expression, ir.Agg | ir.Call) else BOOL


def united(union: ir.UnionIR, frames: Sequence[DataFrame], page: Page) -> DataFrame:
    """The rows of all reads of a union, in its order; each once, unless it keeps those that are equal."""
    query = union.whole
    names = [f"u{index}" for index in range(len(query.columns))]
    parts = [
        frame.select(
            *(
                comparable(shared(value, given.type, one, query.name), one.type).alias(name)
                for value, given, one, name in zip(
                    _values(read, frame), read.columns, query.columns, names, strict=True
                )
            )
        )
        for read, frame in zip(union.reads, frames, strict=True)
    ]
    whole = reduce(DataFrame.union, parts)
    whole = whole if union.repeats else whole.distinct()
    keys: list[Column] = []
    for order in query.order:
        assert isinstance(order.expression, ir.Prop)  # noqa: S101  a union is ordered by its columns
        keys.append(_directed(fn.col(names[int(order.expression.property)]), descending=order.descending))
    return page.of_frame(whole.orderBy(*keys) if keys else whole)


def _values(query: ir.ReadIR, result: DataFrame) -> list[Column]:
    """The columns with the types that results have; a sum that is too large fails when it is computed."""
    columns: list[Column] = []
    for one, name in zip(query.columns, result.columns, strict=True):
        value = fn.col(name)
        if isinstance(query, ir.QueryIR) and may_overflow(one.expression):
            value = narrow(value, one.expression, query)
        columns.append(value)
    return columns


def as_frame(query: ir.ReadIR, result: DataFrame) -> DataFrame:
    """The result with the names and types that results have, and whole nodes and edges as structs."""
    values = iter(_values(query, result))
    columns = [_nested(fields, list(islice(values, len(fields)))) for fields in ir.result_columns(query.columns)]
    return result.select(*columns).toDF(*(fields[0].name for fields in ir.result_columns(query.columns)))


def _nested(fields: Sequence[ir.Column], values: Sequence[Column]) -> Column:
    """A column of the result. A struct without an id is null: there is no node."""
    if fields[0].field is None:
        return values[0]
    struct = fn.struct(*(value.alias(one.field or "") for one, value in zip(fields, values, strict=True)))
    return fn.when(values[0].isNotNull(), struct) if fields[0].type.nullable else struct


def as_table(query: ir.ReadIR, collected: pa.Table) -> pa.Table:
    """The collected rows, with the names and types that results have."""
    fields = [pa.field(one.name, arrow_type(one.type)) for one in query.columns]
    columns = []
    for one, column, field in zip(query.columns, collected.columns, fields, strict=True):
        try:
            columns.append(_typed(column, field.type))
        except pa.ArrowInvalid:
            raise SumOverflow(query.name, show(one.expression)) from None
        if may_overflow(one.expression) and pc.any(pc.is_inf(columns[-1])).as_py():
            raise SumOverflow(query.name, show(one.expression))
    return nested(query.columns, pa.Table.from_arrays(columns, schema=pa.schema(fields)))


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
