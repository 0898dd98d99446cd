"""Values that a mutation computes: from its parameters, and from the properties of the rows it changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadValue
from omnigraph.formats.columns import column
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.read.data.rows import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series

COLUMNS = {"from": "src", "to": "dst"}
"""What statements call the ends of an edge, and the columns that store them."""


class StoredRows(Rows):
    """The rows of a table that a statement changes."""

    def __init__(self, entity: EntityType, table: pa.Table) -> None:
        super().__init__(entity, table.num_rows)
        self._table = table

    def column(self, name: str) -> Column:
        return Column.of(self._table[COLUMNS.get(name, name)])

    def frame(self) -> Frame:
        """The rows, each once."""
        return Frame.of(ir.ROW, self, self.everything)


def expressions_of(query: str, values: Mapping[str, Value]) -> Expressions:
    """The expressions of a mutation with its values; it embeds no texts."""
    return Expressions(query, values, lambda: None)


def holding(
    rows: pa.Table, entity: EntityType, conditions: Sequence[ir.Filter], expressions: Expressions
) -> pa.Table:
    """The rows for which all conditions hold."""
    if not conditions or not rows.num_rows:
        return rows
    held = np.ones(rows.num_rows, dtype=np.bool_)
    frame = StoredRows(entity, rows).frame()
    for condition in conditions:
        held &= expressions.holds(condition, frame)
    return rows.filter(pa.array(held))


def columns_in(conditions: Sequence[ir.Filter]) -> list[str]:
    """The columns that conditions read, and the id."""
    names = {
        part.property
        for condition in conditions
        for part in ir.parts(condition)
        if isinstance(part, ir.Prop | ir.TextMatch)
    }
    return ["id", *sorted({COLUMNS.get(name, name) for name in names} - {"id"})]


def value_of(expression: ir.Expr, expressions: Expressions) -> Value:
    """The value of an expression that depends on no row."""
    found = expressions.operand(expression, Frame(1))
    if not isinstance(found, Series):
        return found
    value: Any = found.arrow[0].as_py()
    return tuple(value) if isinstance(value, list) else value


def column_of(
    entity: EntityType, name: str, expression: ir.Expr, rows: pa.Table, expressions: Expressions
) -> pa.Array:
    """The values of an expression for each row, as a property stores them; BadValue if it cannot hold one."""
    prop = entity.properties[name]
    wanted = column(name, prop.type).type
    found = expressions.operand(expression, StoredRows(entity, rows).frame())
    if not isinstance(found, Series):
        # What is computed with a null that is the same for all rows is null for all of them.
        return pa.repeat(pa.scalar(found, wanted), len(rows))
    values = found.arrow
    try:
        stored = values if values.type == wanted else values.cast(wanted)
    except pa.ArrowInvalid as error:
        reason = f"{entity.name}.{name} is {prop.type.required()} and cannot hold a value of {show(expression)}"
        raise BadValue(f"{reason}: {error}") from None
    if pa.types.is_floating(stored.type) and not pc.all(pc.is_finite(stored)).as_py() and len(stored.drop_null()):
        raise BadValue(f"{entity.name}.{name} cannot hold a value of {show(expression)}, which is not finite")
    return stored
