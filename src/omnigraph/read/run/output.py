"""From matched rows to the result: projection, order, limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import NumberOverflow, ParameterError, SumOverflow
from omnigraph.formats.columns import column
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import BOOL, ValueType
from omnigraph.read.data.rows import Rows
from omnigraph.read.limits import Limits
from omnigraph.read.pattern.needs import aggregates_of
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.groups.grouping import Grouping, Groups
from omnigraph.read.run.operators import Operators
from omnigraph.read.run.search.ranking import resolved, scored
from omnigraph.read.values.columns import Column, Ints
from omnigraph.read.values.counting import total
from omnigraph.read.values.sorting import SortKey, first_rows, ranks, with_one_zero

_CELL: Final = 8
_Values = Callable[[ir.Expr, Ints | None, pa.DataType], pa.Array]


class Window:
    """The rows that `offset` and `limit` choose: from ``offset`` up to ``stop``, or to the end if that is None."""

    def __init__(self, query: ir.QueryIR, expressions: Expressions) -> None:
        self.offset = _natural(query.offset, "offset", query, expressions) or 0
        limit = _natural(query.limit, "limit", query, expressions)
        self.stop = None if limit is None else self.offset + limit

    def of(self, order: Ints) -> Ints:
        """The chosen rows, of rows in order."""
        return order[self.offset : self.stop]


def _natural(
    bound: ir.Constant | ir.Param | None, what: str, query: ir.QueryIR, expressions: Expressions
) -> int | None:
    if bound is None:
        return None
    value = expressions.constant(bound)
    if isinstance(value, int) and value >= 0:
        return value
    name = bound.name if isinstance(bound, ir.Param) else what
    raise ParameterError(query.name, {name: f"is {value!r}, and `{what}` takes an integer of 0 or more"})


def arrow_type(value_type: ValueType) -> pa.DataType:
    """The Arrow type of a result column."""
    return column("", value_type).type


class _Computed(Rows):
    """Columns that were computed, as properties of a variable of their own."""

    def __init__(self, count: int, columns: Mapping[str, pa.Array]) -> None:
        self.count = count
        self._columns = columns

    def column(self, name: str) -> Column:
        return Column(self._columns[name])


def union_table(union: ir.UnionIR, tables: Sequence[pa.Table], window: Window, operators: Operators) -> pa.Table:
    """The rows of all reads of a union, in its order; each once, unless it keeps those that are equal."""
    query, expressions, limits = union.whole, operators.expressions, operators.limits
    kinds = [arrow_type(one.type) for one in query.columns]
    columns = [
        pa.chunked_array(
            [chunk for table in tables for chunk in _shared(table.column(i), kind, query, i).chunks], kind
        ).combine_chunks()
        for i, kind in enumerate(kinds)
    ]
    named = {str(index): column for index, column in enumerate(columns)}
    rows = _Computed(sum(table.num_rows for table in tables), named)
    limits.allocate(rows.count, rows.count * _CELL * len(columns))
    frame = Frame.of(ir.UNITED, rows, rows.everything)
    if union.repeats:
        return row_table(query, frame, (), window, operators)
    keys = [one.expression for one in query.columns]
    grouping = Grouping(keys, (), operators.tables.catalog, expressions, limits, operators.tables.settings)
    grouping.consume(frame)
    return group_table(query, grouping.finish(), window, expressions)


def _shared(values: pa.ChunkedArray, kind: pa.DataType, query: ir.QueryIR, index: int) -> pa.ChunkedArray:
    """A column of one read with the type that those of all reads share; floats may round integers."""
    try:
        return values.cast(kind, safe=pa.types.is_integer(kind))
    except pa.ArrowInvalid:
        raise NumberOverflow(query.name, query.columns[index].name, "a value has no room in 64 bits") from None


def group_table(query: ir.QueryIR, groups: Groups, window: Window, expressions: Expressions) -> pa.Table:
    """The groups as a table: ties go by the group keys."""
    if not groups.frame.count:
        return _table(query, [pa.array([], arrow_type(one.type)) for one in query.columns])
    aggregates = aggregates_of(query)
    fitting = [_fitting(values, agg, query) for values, agg in zip(groups.aggregates, aggregates, strict=True)]
    rows = _Computed(groups.frame.count, dict(zip(map(show, aggregates), fitting, strict=True)))
    frame = groups.frame.bind(ir.ROW, rows, rows.everything)
    places = {agg: ir.Prop(ir.ROW, show(agg)) for agg in aggregates}

    def of_groups(expression: ir.Expr) -> ir.Expr:
        return ir.replaced(expression, lambda part: places.get(part) if isinstance(part, ir.Agg) else None)

    for condition in query.having:
        having = of_groups(condition)
        assert isinstance(having, ir.Filter)  # noqa: S101
        frame = frame.keep(expressions.holds(having, frame))
    columns = [of_groups(one.expression) for one in query.columns]

    def values(expression: ir.Expr, kind: pa.DataType, some: Ints | None) -> pa.Array:
        if not frame.count:
            return pa.array([], kind)
        return expressions.arrow(expression, frame if some is None else frame.take(some), kind)

    def key(expression: ir.Expr, kind: pa.DataType, *, descending: bool = False) -> SortKey:
        return SortKey(lambda some: values(expression, kind, some), descending)

    def order_key(order: ir.Order) -> SortKey:
        index = _column(order.expression, query)
        if index is None:
            kind = arrow_type(_kind(order.expression))
            return key(of_groups(order.expression), kind, descending=order.descending)
        return key(columns[index], arrow_type(query.columns[index].type), descending=order.descending)

    def tie(expression: ir.Expr, kind: ValueType) -> SortKey:
        if kind.is_plain:
            return key(expression, arrow_type(kind))
        return SortKey(lambda some: ranks(values(expression, arrow_type(kind), some)))

    keys = [order_key(order) for order in query.order]
    ties = [
        tie(columns[index], one.type)
        for index, one in enumerate(query.columns)
        if not ir.is_aggregate(one.expression)
    ]
    order = window.of(first_rows(keys, ties, frame.count, window.stop))
    made = [values(one, arrow_type(c.type), order) for one, c in zip(columns, query.columns, strict=True)]
    return _table(
        query,
        [
            array if ir.is_aggregate(one.expression) else with_one_zero(array)
            for array, one in zip(made, query.columns, strict=True)
        ],
    )


def _kind(expression: ir.Expr) -> ValueType:
    """The type of a computed expression."""
    return expression.type if isinstance(expression, ir.Agg | ir.Call) else BOOL


def _fitting(values: pa.Array, agg: ir.Agg, query: ir.QueryIR) -> pa.Array:
    """An aggregate with its type; a sum that has no room in it fails."""
    try:
        found = _plain(values, arrow_type(agg.type))
    except pa.ArrowInvalid:
        raise SumOverflow(query.name, show(agg)) from None
    if pa.types.is_floating(found.type) and pc.all(pc.is_finite(found)).as_py() is False:
        raise SumOverflow(query.name, show(agg))
    return found


def _column(expression: ir.Expr, query: ir.QueryIR) -> int | None:
    """The output column that an order key names; of two with one name the last. None if it is none."""
    for index in reversed(range(len(query.columns))):
        one = query.columns[index]
        if one.expression == expression or (isinstance(expression, ir.Alias) and one.name == expression.name):
            return index
    return None


def row_table(
    query: ir.QueryIR, frame: Frame, entities: Sequence[str], window: Window, operators: Operators
) -> pa.Table:
    """The rows as a table: ties go by the ids of all entities, variable by variable."""
    expressions, limits = operators.expressions, operators.limits
    frame = spread(frame, None if query.order else window.stop, limits)
    query, frame = scored(query, frame, window.stop, expressions, operators.tables.settings)

    def values(expression: ir.Expr, rows: Ints | None, kind: pa.DataType) -> pa.Array:
        return expressions.arrow(expression, frame if rows is None else frame.take(rows), kind)

    def by_id(name: str) -> SortKey:
        return SortKey(lambda rows: values(ir.Prop(name, "id"), rows, pa.string()))

    keys = [_row_key(order, query, frame, values) for order in query.order]
    ties = [by_id(name) for name in sorted(entities)]
    limits.allocate(frame.count, frame.count * _CELL * (len(keys) + 1))
    order = window.of(first_rows(keys, ties, frame.count, window.stop))
    limits.allocate(len(order), len(order) * _CELL * len(query.columns))
    return _table(query, [values(one.expression, order, arrow_type(one.type)) for one in query.columns])


def _row_key(order: ir.Order, query: ir.QueryIR, frame: Frame, values: _Values) -> SortKey:
    expression = resolved(order.expression, query)
    if isinstance(expression, ir.Prop):
        kind = frame.rows[expression.variable].column(expression.property).arrow.type
    else:
        kind = next((arrow_type(c.type) for c in query.columns if c.expression == expression), pa.string())
        if isinstance(expression, ir.Call):
            kind = arrow_type(expression.type)
        elif isinstance(expression, ir.Filter):
            kind = pa.bool_()
    return SortKey(lambda rows: values(expression, rows, kind), order.descending)


def spread(frame: Frame, limit: int | None, limits: Limits) -> Frame:
    """Every row as often as it counts, up to a limit."""
    if frame.weights is None:
        return frame
    weights = frame.weights if limit is None else np.minimum(frame.weights, limit)
    rows = total(weights)
    limits.allocate(rows, rows * 4 * (len(frame.positions) + 4))
    each = frame.take(np.repeat(np.arange(frame.count), weights))
    return Frame(each.count, each.rows, each.positions)


def _table(query: ir.QueryIR, arrays: list[pa.Array]) -> pa.Table:
    fields = [pa.field(one.name, arrow_type(one.type)) for one in query.columns]
    return pa.Table.from_arrays(
        [_plain(array, field.type) for array, field in zip(arrays, fields, strict=True)], schema=pa.schema(fields)
    )


def _plain(array: pa.Array, kind: pa.DataType) -> pa.Array:
    return array if array.type == kind else array.cast(kind)
