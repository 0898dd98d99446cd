"""Predicates of update and delete: checked by Lance on committed rows, and in memory on pending ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.values.columns import Column
from omnigraph.read.values.comparing import Series, compare
from omnigraph.storage.rows.filters import compared
from omnigraph.write.mutations.computing import COLUMNS, columns_in, holding


@dataclass(frozen=True, slots=True)
class Comparison:
    """A column compared with a value; ``filter`` is the same as Lance's filters write it."""

    column: str
    op: ir.Op
    value: Value
    filter: str


@dataclass(frozen=True, slots=True)
class Where:
    """Comparisons that Lance can check, and conditions that it cannot; all must hold. None matches nothing."""

    comparisons: tuple[Comparison, ...] | None
    entity: EntityType
    conditions: tuple[ir.Filter, ...]
    expressions: Expressions

    @property
    def sql(self) -> str | None:
        """The comparisons as one filter of Lance; None if every row passes."""
        if self.comparisons is None:
            return "false"
        return " and ".join(one.filter for one in self.comparisons) or None

    def holding(self, rows: pa.Table) -> pa.Table:
        """Of rows that pass the comparisons, those for which the conditions hold."""
        return holding(rows, self.entity, self.conditions, self.expressions)

    @property
    def columns(self) -> list[str]:
        """The columns that the conditions read, and the id."""
        return columns_in(self.conditions)


def where_clause(
    op: ir.UpdateOp | ir.DeleteOp, entity: EntityType, schema: pa.Schema, given: Expressions
) -> Where:
    """The predicates and conditions of a statement with its values. A null on either side matches nothing."""
    comparisons: list[Comparison] = []
    for predicate in op.predicates:
        name = COLUMNS.get(predicate.property, predicate.property)
        value = given.constant(predicate.value)
        rest = None if value is None else compared(schema.field(name).type, predicate.op, value)
        if rest is None:
            return Where(None, entity, (), given)
        comparisons.append(Comparison(name, predicate.op, value, f"`{name}` {rest}"))
    return Where(tuple(comparisons), entity, op.conditions, given)


def matching(rows: pa.Table, where: Where) -> pa.Table:
    """The rows of a table in memory that satisfy a predicate."""
    if where.comparisons is None:
        return rows.slice(0, 0)
    held = np.ones(rows.num_rows, dtype=np.bool_)
    for one in where.comparisons:
        held &= compare(one.op, Series(Column.of(rows[one.column])), one.value, rows.num_rows)
    return where.holding(rows.filter(pa.array(held)))
