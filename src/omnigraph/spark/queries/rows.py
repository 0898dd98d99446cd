"""Matched rows, and the values of expressions in them: carried by a variable, computed, or constant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.functions.table import may_fail
from omnigraph.lang.values import BOOL, DATETIME, F64, Scalar, ValueType
from omnigraph.read.pattern.pattern import mentioned
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.values.comparing import plain
from omnigraph.spark.frames import spark_type
from omnigraph.spark.queries.computing import with_computed, without_rows
from omnigraph.spark.queries.scanning import Bound, Tables, kind_of
from omnigraph.spark.queries.steps import Carried, is_of_rows, values_in


@dataclass(frozen=True, slots=True)
class Matched:
    """The rows so far, and the columns of their variables. None stands for the one empty row that a match begins
    with."""

    frame: DataFrame | None
    variables: Mapping[str, Bound]

    @property
    def names(self) -> list[str]:
        return [name for bound in self.variables.values() for name in bound.names]


class Valued:
    """A frame of matched rows, and the columns of the values that were computed in it."""

    def __init__(self, frame: DataFrame, rows: Matched, tables: Tables, expressions: Expressions) -> None:
        self.frame = frame
        self.rows = rows
        self.tables = tables
        self.expressions = expressions
        self._computed: dict[ir.Expr, str] = {}

    def compute(self, expressions: Iterable[ir.Expr]) -> None:
        """Compute what no single variable carries; columns are added to the frame."""
        wanted = list(dict.fromkeys(one for one in expressions if self._is_mixed(one)))
        if not wanted:
            return
        operands: dict[ir.Expr, tuple[str, ValueType]] = {}
        added: list[Column] = []
        for expression in wanted:
            for variable, item in _carried_in(expression):
                if item not in operands:
                    bound = self.rows.variables[variable]
                    name, kind = self.tables.fresh(), kind_of(item, bound.entity)
                    added.append(self._carried(item, bound).alias(name))
                    operands[item] = (name, kind)
        named = {self.tables.fresh(): (one, self.kind(one)) for one in wanted}
        frame = self.frame.select("*", *added)
        self.frame = with_computed(frame, named, operands, self.expressions)
        self._computed |= {one: name for name, (one, _) in named.items()}

    def _is_mixed(self, expression: ir.Expr) -> bool:
        if not isinstance(expression, ir.Call | ir.Filter) or not is_of_rows(expression):
            return False
        names = set(mentioned(expression))
        is_carried = len(names) == 1 and not may_fail(expression)
        return bool(names) and not is_carried and expression not in self._computed

    def value(self, expression: ir.Expr) -> Column:
        """An expression as a column of the frame."""
        match expression:
            case ir.Var(name):
                return fn.col(self.rows.variables[name].id)
            case ir.Prop(variable):
                return fn.col(self.rows.variables[variable].named(expression))
            case ir.Param() | ir.Constant():
                return literal(self.expressions.constant(expression), self.kind(expression))
            case ir.Call() | ir.Filter() if expression in self._computed:
                return fn.col(self._computed[expression])
            case ir.Call() | ir.Filter():
                names = set(mentioned(expression))
                if not names:
                    kind = self.kind(expression)
                    return literal(without_rows(expression, kind, {}, self.expressions), kind)
                return self._carried(expression, self.rows.variables[names.pop()])
            case _:
                raise TypeError(f"{type(expression).__name__} has no value by row")

    def _carried(self, item: Carried, bound: Bound) -> Column:
        """A value that a variable carries. A computed one has a value also where the variable is missing."""
        column = fn.col(bound.named(item))
        if not bound.nullable or not isinstance(item, ir.Call | ir.Filter):
            return column
        kind = kind_of(item, bound.entity)
        [variable] = set(mentioned(item))
        missing = without_rows(item, kind, {variable: bound.entity}, self.expressions)
        return fn.when(fn.col(bound.id).isNull(), literal(missing, kind)).otherwise(column)

    def kind(self, expression: ir.Expr) -> ValueType:
        """The type of an expression."""
        match expression:
            case ir.Prop(variable) | ir.Var(variable):
                return kind_of(expression, self.rows.variables[variable].entity)
            case ir.Constant(_, kind) | ir.Call(_, _, kind):
                return kind
            case ir.Param(name):
                return DATETIME if name == ir.NOW else self.tables.params[name]
            case ir.Score() | ir.Rrf():
                return F64
            case ir.Filter():
                return BOOL
            case _:
                raise TypeError(f"{type(expression).__name__} has no type of its own")


def _carried_in(expression: ir.Expr) -> Iterator[tuple[str, Carried]]:
    """The carried values that an expression is computed from; the ids of variables among them."""
    yield from values_in(expression)
    for part in ir.parts(expression):
        match part:
            case ir.Var(name):
                yield name, ir.Prop(name, "id")
            case ir.Prop(variable, "id"):
                yield variable, part


def literal(value: Value, kind: ValueType) -> Column:
    """A value as a column. Days and instants go as numbers, which no calendar and no time zone can change."""
    if value is None:
        return fn.lit(None).cast(spark_type(kind))
    if isinstance(value, tuple):
        return fn.array(*(literal(item, kind.item) for item in value)).cast(spark_type(kind))
    if kind.scalar is Scalar.DATE:
        return fn.date_from_unix_date(fn.lit(plain(value)))
    if kind.scalar is Scalar.DATETIME:
        return fn.timestamp_millis(fn.lit(plain(value)))
    if isinstance(value, int) and not isinstance(value, bool):
        return fn.lit(Decimal(value)).cast(spark_type(kind))
    return fn.lit(value).cast(spark_type(kind))
