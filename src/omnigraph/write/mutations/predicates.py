"""Predicates of update and delete: checked by Lance on committed rows, and in memory on pending ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series, compare
from omnigraph.storage.filters import compared

_COLUMNS = {"from": "src", "to": "dst"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value; ``filter`` is the same as Lance's filters write it."""

    column: str
    op: ir.Op
    value: Value
    filter: str


@dataclass(frozen=True, slots=True)
class Where:
    """Comparisons that must all hold. None matches nothing."""

    comparisons: tuple[Comparison, ...] | None

    @property
    def sql(self) -> str:
        """The predicate as one filter of Lance."""
        return "false" if self.comparisons is None else " and ".join(one.filter for one in self.comparisons)


def where_clause(predicates: Iterable[ir.Predicate], schema: pa.Schema, values: Mapping[str, Value]) -> Where:
    """The predicates of a statement with its values. A null on either side matches nothing."""
    comparisons: list[Comparison] = []
    for predicate in predicates:
        name = _COLUMNS.get(predicate.property, predicate.property)
        value = evaluate(predicate.value, values)
        rest = None if value is None else compared(schema.field(name).type, predicate.op, value)
        if rest is None:
            return Where(None)
        comparisons.append(Comparison(name, predicate.op, value, f"`{name}` {rest}"))
    return Where(tuple(comparisons))


def evaluate(expression: ir.Expr, values: Mapping[str, Value]) -> Value:
    """A literal's or a parameter's value."""
    if isinstance(expression, ir.Constant):
        return expression.value
    if isinstance(expression, ir.Param):
        return values[expression.name]
    raise TypeError(f"{type(expression).__name__} is not a value of a mutation")


def matching(rows: pa.Table, where: Where) -> pa.Table:
    """The rows of a table in memory that satisfy a predicate."""
    if where.comparisons is None:
        return rows.slice(0, 0)
    held = np.ones(rows.num_rows, dtype=np.bool_)
    for one in where.comparisons:
        held &= compare(one.op, Series(Column.of(rows[one.column])), one.value, rows.num_rows)
    return rows.filter(pa.array(held))
