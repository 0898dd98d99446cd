"""The match of a query as joins: a DataFrame with one row for each match."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from omnigraph.lang.query import ir
from omnigraph.read.pattern.pattern import mentioned
from omnigraph.read.run.expressions import Expressions
from omnigraph.spark.queries.comparing import compare
from omnigraph.spark.queries.hops import edges, pairs, reached
from omnigraph.spark.queries.rows import Matched, Valued
from omnigraph.spark.queries.scanning import Bound, Tables, kind_of
from omnigraph.spark.queries.steps import Block, Carried, Hop, Keep, Scan, Step, compared_of, named_in


class Matching:
    """Runs the steps of a match over the tables of a snapshot."""

    def __init__(self, tables: Tables, expressions: Expressions) -> None:
        self.tables = tables
        self.expressions = expressions

    def run(self, steps: Sequence[Step], rows: Matched) -> Matched:
        """The rows behind the steps."""
        for step in steps:
            match step:
                case Scan():
                    rows = self._scan(rows, step)
                case Hop():
                    rows = self._hop(rows, step)
                case Keep(condition):
                    frame, [held] = self._holding(self._frame(rows), (condition,), rows)
                    frame = frame.where(held)
                    rows = replace(rows, frame=frame.select(*rows.names) if rows.names else frame)
                case Block("optional", inner, introduces):
                    rows = self._optional(rows, inner, introduces)
                case Block("absent", inner):
                    rows = replace(rows, frame=self._without(rows, inner))
        return rows

    def _frame(self, rows: Matched) -> DataFrame:
        return self.tables.once() if rows.frame is None else rows.frame

    def _scan(self, rows: Matched, scan: Scan) -> Matched:
        """Each row with each entity."""
        frame, bound = self.tables.scanned(scan)
        joined = frame if rows.frame is None else rows.frame.crossJoin(frame)
        return Matched(joined, {**rows.variables, scan.variable: bound})

    def _hop(self, rows: Matched, hop: Hop) -> Matched:
        """Each row with each neighbour, or each row whose variables are neighbours."""
        source = rows.variables[hop.source]
        variables = dict(rows.variables)
        if hop.edges is not None:
            links, edge, at, to = edges(self.tables, hop)
            variables[hop.edges.variable] = edge
        elif hop.min_hops > hop.max_hops:
            at, to = self.tables.fresh(), self.tables.fresh()
            links = self.tables.nothing({at: "string", to: "string"})
        elif hop.is_single:
            links, at, to = pairs(self.tables, hop.edge, hop.direction)
        else:
            given = self._frame(rows).select(fn.col(source.id).alias(self.tables.fresh())).distinct()
            links, at, to = reached(self.tables, hop, given)
        if rows.frame is None:
            # A block that begins here: the ids of its variable are those that have a neighbour.
            frame = links.withColumn(source.id, fn.col(at))
        else:
            frame = rows.frame.join(links, fn.col(source.id) == fn.col(at))
        if isinstance(hop.target, str):
            frame = frame.where(fn.col(to) == fn.col(variables[hop.target].id))
        else:
            reads, target = self.tables.scanned(hop.target)
            frame = frame.join(reads, fn.col(to) == fn.col(target.id))
            variables[hop.target.variable] = target
        made = Matched(frame, variables)
        return replace(made, frame=frame.select(*made.names))

    def _optional(self, rows: Matched, inner: Sequence[Step], introduces: Iterable[str]) -> Matched:
        """Each row with each match of the inner steps, or else with nulls."""
        if all(isinstance(step, Keep) for step in inner):
            return rows
        found, same = self._inner(rows, inner)
        new = {name: replace(found.variables[name], nullable=True) for name in introduces}
        made = Matched(None, {**rows.variables, **new})
        joined = self._frame(rows).join(self._frame(found), same, "left")
        return replace(made, frame=joined.select(*made.names) if made.variables else joined)

    def _without(self, rows: Matched, inner: Sequence[Step]) -> DataFrame:
        """The rows for which the inner steps find nothing."""
        conditions = [step.condition for step in inner if isinstance(step, Keep)]
        if len(conditions) == len(inner):
            frame, columns = self._holding(self._frame(rows), conditions, rows)
            held = [fn.coalesce(column, fn.lit(False)) for column in columns]
            kept = frame.where(~reduce(and_, held, fn.lit(True)))
            return kept.select(*rows.names) if rows.names else kept
        found, same = self._inner(rows, inner)
        return self._frame(rows).join(self._frame(found), same, "left_anti")

    def _inner(self, rows: Matched, inner: Sequence[Step]) -> tuple[Matched, Column]:
        """The matches of inner steps, and the condition to join them with the rows: equal values of shared
        variables."""
        outer = sorted(named_in(inner) & rows.variables.keys())
        seed = self._seed(rows, outer, inner)
        found = self.run(inner, seed)
        same = fn.lit(True)
        for name in outer:
            own, other = fn.col(rows.variables[name].id), fn.col(found.variables[name].id)
            same &= own.eqNullSafe(other) if rows.variables[name].nullable else own == other
        return found, same

    def _seed(self, rows: Matched, outer: Sequence[str], inner: Sequence[Step]) -> Matched:
        """The rows that inner steps begin with: the distinct values of the outer variables that they mention.

        For a single variable all entities of its type do as well, so that Spark need not compute the outer rows
        twice; but not if a chain of hops starts from there.
        """
        if not outer:
            return Matched(None, {})
        is_near = all(step.is_single for step in inner if isinstance(step, Hop))
        if len(outer) == 1 and is_near and not rows.variables[outer[0]].nullable:
            [name] = outer
            bound = rows.variables[name]
            match inner[0]:
                case Hop(source=source, min_hops=1) if source == name and not compared_of(name, inner):
                    return Matched(None, {name: Bound(bound.entity, self.tables.fresh(), {})})
            return self._scan(Matched(None, {}), Scan(name, bound.entity))
        variables, columns = {}, []
        for name in outer:
            bound = rows.variables[name]
            renamed = {old: self.tables.fresh() for old in bound.names}
            columns += [fn.col(old).alias(new) for old, new in renamed.items()]
            carried = {item: renamed[old] for item, old in bound.columns.items()}
            variables[name] = Bound(bound.entity, renamed[bound.id], carried, bound.nullable)
        ids = [bound.id for bound in variables.values()]
        return Matched(self._frame(rows).select(*columns).dropDuplicates(ids), variables)

    def _holding(
        self, frame: DataFrame, conditions: Sequence[ir.Filter], rows: Matched
    ) -> tuple[DataFrame, list[Column]]:
        """A frame in which every condition can be told, and whether each holds: read from the table, known before,
        or compared here."""
        valued = Valued(frame, rows, self.tables, self.expressions)
        valued.compute([one for one in conditions if not _is_simple(one)])
        return valued.frame, [self._holds(condition, rows, valued) for condition in conditions]

    def _holds(self, condition: ir.Filter, rows: Matched, valued: Valued) -> Column:
        if not _is_simple(condition):
            return valued.value(condition)
        left_side, right_side = _operand(condition.left), _operand(condition.right)
        sides = [rows.variables[_owner(side)] for side in (left_side, right_side)]
        columns = [fn.col(bound.named(side)) for bound, side in zip(sides, (left_side, right_side), strict=True)]
        kinds = (kind_of(left_side, sides[0].entity), kind_of(right_side, sides[1].entity))
        return compare(condition.op, columns[0], columns[1], kinds)


def _is_simple(condition: ir.Filter) -> bool:
    """Does it compare a value of one variable with a value of another? Spark does that itself."""
    sides = (condition.left, condition.right)
    return len(set(mentioned(condition))) > 1 and all(
        isinstance(one, ir.Prop | ir.Var | ir.TextMatch) for one in sides
    )


def _operand(expression: ir.Expr | None) -> Carried:
    """One side of a comparison of two variables."""
    match expression:
        case ir.Var(name):
            return ir.Prop(name, "id")
        case ir.Prop() | ir.TextMatch():
            return expression
        case _:
            raise TypeError(f"{type(expression).__name__} is no value of a variable")


def _owner(side: Carried) -> str:
    return next(iter(mentioned(side)))
