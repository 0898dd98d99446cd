"""From matched rows to the result: projection, order, limit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.errors import ParameterError, SumOverflow
from omnigraph.formats.columns import column
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.values import ValueType
from omnigraph.read.limits import Limits
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.grouping import Groups
from omnigraph.read.run.operators import Operators
from omnigraph.read.run.search.ranking import resolved, scored
from omnigraph.read.values.columns import Ints
from omnigraph.read.values.counting import total
from omnigraph.read.values.sorting import SortKey, first_rows

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


def group_table(query: ir.QueryIR, groups: Groups, window: Window, expressions: Expressions) -> pa.Table:
    """The groups as a table: ties go by the group keys."""
    frame, aggregates = groups.frame, iter(groups.aggregates)
    counted: dict[int, pa.Array] = {}
    for index, one in enumerate(query.columns):
        if isinstance(one.expression, ir.Agg) and frame.count:
            counted[index] = _fitting(next(aggregates), one, query)

    def values(index: int, rows: Ints | None) -> pa.Array:
        kind = arrow_type(query.columns[index].type)
        if not frame.count:
            return pa.array([], kind)
        if index in counted:
            return counted[index] if rows is None else counted[index].take(pa.array(rows))
        some = frame if rows is None else frame.take(rows)
        return expressions.arrow(query.columns[index].expression, some, kind)

    def key(index: int, *, descending: bool = False) -> SortKey:
        return SortKey(lambda rows: values(index, rows), descending)

    keys = [key(_column(order.expression, query), descending=order.descending) for order in query.order]
    ties = [key(index) for index in range(len(query.columns)) if index not in counted and _sorts(query, index)]
    order = window.of(first_rows(keys, ties, frame.count, window.stop))
    return _table(query, [values(index, order) for index in range(len(query.columns))])


def _fitting(values: pa.Array, column: ir.Column, query: ir.QueryIR) -> pa.Array:
    """An aggregate with the type of its column."""
    try:
        return _plain(values, arrow_type(column.type))
    except pa.ArrowInvalid:
        raise SumOverflow(query.name, show(column.expression)) from None


def _sorts(query: ir.QueryIR, index: int) -> bool:
    """Lists and vectors have no order; they never break ties."""
    return query.columns[index].type.is_plain


def _column(expression: ir.Expr, query: ir.QueryIR) -> int:
    """The output column that an order key names; of two with one name the last."""
    for index in reversed(range(len(query.columns))):
        one = query.columns[index]
        if one.expression == expression or (isinstance(expression, ir.Alias) and one.name == expression.name):
            return index
    raise TypeError("an order key that is no column")


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
