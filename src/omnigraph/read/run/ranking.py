"""Rankings of the matched rows: distances, text scores, and the fusion of two of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ParameterError
from omnigraph.lang.query import ir
from omnigraph.read.data.tables import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.values.columns import Array, Column, Ints
from omnigraph.read.values.vectors import Floats

_WORTH_SELECTING: Final = 4_096


def scores(ranking: ir.Ranking, frame: Frame, expressions: Expressions) -> Floats:
    """The score of each row; NaN where a row has none."""
    if not isinstance(ranking, ir.Rrf):
        return expressions.scores(ranking, frame)
    constant = _constant(ranking.k, expressions)
    total = np.full(frame.count, np.nan)
    for arm in (ranking.first, ranking.second):
        ranks = arm_ranks(arm, frame, expressions)
        present = ranks >= 0
        total = np.where(present, np.nan_to_num(total, nan=0.0) + 1.0 / (constant + ranks + 1), total)
    return total


def arm_places(arm: ir.Nearest | ir.Bm25, frame: Frame, expressions: Expressions) -> Ints:
    """For each row the place of its entity in one ranking; behind all others if it has none."""
    ranks = arm_ranks(arm, frame, expressions)
    return np.where(ranks < 0, frame.count, ranks)


def arm_ranks(arm: ir.Nearest | ir.Bm25, frame: Frame, expressions: Expressions) -> Ints:
    """For each row the place of its entity in one ranking of the distinct entities; -1 if it has none."""
    entities, inverse = np.unique(frame.positions[arm.variable], return_inverse=True)
    return _ranks(arm, Frame.of(arm.variable, frame.rows[arm.variable], entities), expressions)[inverse]


def ranked(ranking: ir.Ranking, values: Floats) -> Array:
    """Which rows a ranking keeps: those near enough to be measured, and those whose text fits at all."""
    if isinstance(ranking, ir.Bm25):
        return np.nan_to_num(values, nan=0.0) > 0
    return ~np.isnan(values)


def scored(
    query: ir.QueryIR, frame: Frame, most: int | None, expressions: Expressions
) -> tuple[ir.QueryIR, Frame]:
    """The query with its scores as properties, and the rows that its rankings keep.

    All scores are of all matched rows; only then do the rankings that the query is ordered by leave rows out. From
    here on scores are values like any other.
    """
    rankings = list(dict.fromkeys(found for found in _rankings(query)))
    if not rankings:
        return query, frame
    ordered = [(order, resolved(order.expression, query)) for order in query.order]
    frame = _preselected(rankings, ordered, frame, most, expressions)
    known: dict[ir.Expr, ir.Prop] = {}
    places: list[ir.Order] = []
    kept = np.ones(frame.count, dtype=np.bool_)
    full = frame
    for index, ranking in enumerate(rankings):
        values = scores(ranking, full, expressions)
        known[ranking] = ir.Prop(f"score#{index}", "score")
        frame = _bound(frame, f"score#{index}", pa.array(values, mask=np.isnan(values)))
        if all(ranking != expression for _, expression in ordered):
            continue
        kept &= ranked(ranking, values)
        if isinstance(ranking, ir.Rrf) and not query.distinct:
            for number, arm in enumerate((ranking.first, ranking.second)):
                name = f"place#{index}.{number}"
                frame = _bound(frame, name, pa.array(arm_places(arm, full, expressions)))
                places.append(ir.Order(ir.Prop(name, "place")))
    columns = tuple(replace(c, expression=known.get(c.expression, c.expression)) for c in query.columns)
    orders = tuple(
        ir.Order(known.get(resolved_, order.expression), order.descending) for order, resolved_ in ordered
    )
    return replace(query, columns=columns, order=(*orders, *places)), frame.keep(kept)


def _rankings(query: ir.QueryIR) -> Iterator[ir.Ranking]:
    for expression in (*(c.expression for c in query.columns), *(o.expression for o in query.order)):
        if isinstance(expression, ir.Nearest | ir.Bm25 | ir.Rrf):
            yield expression


def resolved(expression: ir.Expr, query: ir.QueryIR) -> ir.Expr:
    """What an alias stands for; of two with one name the last."""
    if not isinstance(expression, ir.Alias):
        return expression
    return next(c.expression for c in reversed(query.columns) if c.name == expression.name)


def _bound(frame: Frame, name: str, values: pa.Array) -> Frame:
    rows = Computed(Column(values))
    return frame.bind(name, rows, rows.everything)


class Computed(Rows):
    """One computed value per row, under any name."""

    def __init__(self, values: Column) -> None:
        self.count = len(values)
        self._values = values

    def column(self, name: str) -> Column:  # noqa: ARG002
        return self._values


def _preselected(
    rankings: list[ir.Ranking],
    ordered: list[tuple[ir.Order, ir.Expr]],
    frame: Frame,
    most: int | None,
    expressions: Expressions,
) -> Frame:
    """The rows that can be among the nearest, where nothing else is asked and a whole type is ranked."""
    ranking = rankings[0]
    if len(rankings) > 1 or not isinstance(ranking, ir.Nearest) or most is None or not ordered:
        return frame
    order, first = ordered[0]
    if first != ranking or order.descending or frame.count < _WORTH_SELECTING:
        return frame
    if len(frame.positions) > 1 or frame.at(ranking.variable) is not None:
        return frame
    vector = expressions.vector(ranking)
    if vector is None:
        return frame
    column = frame.rows[ranking.variable].vectors(ranking.property)
    return frame.take(column.nearest(vector, ranking.metric, most))


def _constant(expression: ir.Expr, expressions: Expressions) -> int:
    value = expressions.constant(expression)
    if isinstance(value, int) and value > 0:
        return value
    name = expression.name if isinstance(expression, ir.Param) else "k"
    raise ParameterError(expressions.query, {name: f"is {value!r}, and the constant of `rrf` must be positive"})


def _ranks(arm: ir.Nearest | ir.Bm25, frame: Frame, expressions: Expressions) -> Ints:
    """The place of each entity in one ranking, from 0; -1 for those it leaves out. Ties go by id."""
    values = expressions.scores(arm, frame)
    kept = np.flatnonzero(ranked(arm, values))
    score = values[kept] if isinstance(arm, ir.Nearest) else -values[kept]
    ids = frame.rows[arm.variable].column("id").take(frame.positions[arm.variable][kept])
    places = np.empty(len(kept), dtype=np.int64)
    places[np.asarray(pc.sort_indices(ids))] = np.arange(len(kept))
    ranks = np.full(frame.count, -1, dtype=np.int64)
    ranks[kept[np.lexsort((places, score))]] = np.arange(len(kept))
    return ranks
