"""Predicates of update and delete: the same for Lance on committed rows and for DataFusion on pending ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datafusion import SessionContext

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.write.base import sql_literal

_COLUMNS = {"from": "src", "to": "dst"}
_ANY = "is not null"


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
        compared = None if value is None else _compared(schema.field(name).type, predicate.op, value)
        if compared is None:
            return Where(None)
        conditions.append((name, compared))
    return Where(tuple(conditions))


def evaluate(expression: ir.Expr, values: Mapping[str, Value]) -> Value:
    """A literal's or a parameter's value."""
    if isinstance(expression, ir.Constant):
        return expression.value
    if isinstance(expression, ir.Param):
        return values[expression.name]
    raise TypeError(f"{type(expression).__name__} is not a value of a mutation")


def _compared(kind: pa.DataType, op: ir.Op, value: Value) -> str | None:
    """What stands behind the column's name; None if nothing can match."""
    if pa.types.is_list(kind):
        return None
    if isinstance(value, int | float) and pa.types.is_integer(kind):
        return _against_integer(kind, op, value)
    if isinstance(value, int | float) and pa.types.is_floating(kind):
        return _against_float(kind, op, float(value))
    return f"{op.value} {sql_literal(pa.scalar(value, kind))}"


def _against_integer(kind: pa.DataType, op: ir.Op, value: float) -> str | None:
    """An integer column against any number, exactly."""
    whole = math.floor(value)
    if whole != value:
        if op in (ir.Op.EQ, ir.Op.NE):
            return None if op is ir.Op.EQ else _ANY
        op = ir.Op.GT if op in (ir.Op.GT, ir.Op.GE) else ir.Op.LE
    unsigned = pa.types.is_unsigned_integer(kind)
    low = 0 if unsigned else -(1 << (kind.bit_width - 1))
    high = (1 << (kind.bit_width if unsigned else kind.bit_width - 1)) - 1
    if low <= whole <= high:
        return f"{op.value} {sql_literal(pa.scalar(whole, kind))}"
    return _beyond(op, above=whole > high)


def _against_float(kind: pa.DataType, op: ir.Op, value: float) -> str | None:
    """A float column against a number, rounded as the column stores numbers.

    Both engines put -0.0 before 0.0. For us they are the same number.
    """
    rounded = pa.scalar(value, kind)
    if math.isinf(rounded.as_py()):
        return _beyond(op, above=value > 0)
    if rounded.as_py() != 0:
        return f"{op.value} {sql_literal(rounded)}"
    below, above = (sql_literal(pa.scalar(zero, kind)) for zero in (-0.0, 0.0))
    match op:
        case ir.Op.EQ:
            return f"between {below} and {above}"
        case ir.Op.NE:
            return f"not between {below} and {above}"
        case ir.Op.LT | ir.Op.GE:
            return f"{op.value} {below}"
        case _:
            return f"{op.value} {above}"


def _beyond(op: ir.Op, *, above: bool) -> str | None:
    """A column against a number that is larger, or smaller, than anything it can hold."""
    holds = {ir.Op.NE, *((ir.Op.LT, ir.Op.LE) if above else (ir.Op.GT, ir.Op.GE))}
    return _ANY if op in holds else None


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
