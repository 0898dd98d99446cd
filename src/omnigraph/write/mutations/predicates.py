"""Predicates of update and delete: the same for Lance on committed rows and for DataFusion on pending ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.storage.filters import compared

_COLUMNS = {"from": "src", "to": "dst"}


@dataclass(frozen=True, slots=True)
class Where:
    """Conditions that must all hold, as `(column, what it is compared to)`. None matches nothing."""

    conditions: tuple[tuple[str, str], ...] | None

    @property
    def matches_nothing(self) -> bool:
        return self.conditions is None

    @property
    def columns(self) -> set[str]:
        return {column for column, _ in self.conditions or ()}

    def sql(self, quote: str) -> str:
        """The text, with names quoted as a dialect does: Lance by backticks, DataFusion by double quotes."""
        if self.conditions is None:
            return "false"
        return " and ".join(f"{quote}{column}{quote} {rest}" for column, rest in self.conditions)


def where_clause(predicates: Iterable[ir.Predicate], schema: pa.Schema, values: Mapping[str, Value]) -> Where:
    """The predicates of a statement with its values. A null on either side matches nothing."""
    conditions: list[tuple[str, str]] = []
    for predicate in predicates:
        name = _COLUMNS.get(predicate.property, predicate.property)
        value = evaluate(predicate.value, values)
        rest = None if value is None else compared(schema.field(name).type, predicate.op, value)
        if rest is None:
            return Where(None)
        conditions.append((name, rest))
    return Where(tuple(conditions))


def evaluate(expression: ir.Expr, values: Mapping[str, Value]) -> Value:
    """A literal's or a parameter's value."""
    if isinstance(expression, ir.Constant):
        return expression.value
    if isinstance(expression, ir.Param):
        return values[expression.name]
    raise TypeError(f"{type(expression).__name__} is not a value of a mutation")


def matching(rows: pa.Table, where: Where) -> pa.Table:
    """The rows of a table in memory that satisfy a predicate."""
    if where.matches_nothing or not rows.num_rows:
        return rows.slice(0, 0)
    columns = {name: rows[name] for name in sorted(where.columns)}
    numbered = pa.table({**columns, "row#": np.arange(rows.num_rows)})
    context = SessionContext()
    context.register_record_batches("pending", [numbered.to_batches()])
    statement = f'select "row#" from pending where {where.sql(chr(34))}'  # noqa: S608  no text of a user's is in it
    found = pa.table(context.sql(statement))["row#"]
    return rows.take(found.take(pc.sort_indices(found)))
