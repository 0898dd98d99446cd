"""Rankings of the matched rows: the scores of their arms, each computed once, and the fusion of two arms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ParameterError
from omnigraph.lang.query import ir
from omnigraph.lang.query.scores import SCORES
from omnigraph.read.data.rows import Rows, WholeTable
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.frame import Frame
from omnigraph.read.values.arrays import to_arrow
from omnigraph.read.values.columns import Array, Bools, Column, Floats, Ints
from omnigraph.read.values.sorting import is_ascending
from omnigraph.settings import READ_DEFAULTS, ReadSettings

_FEW: Final = 64
"""Of up to so many rows columns are fetched, rather than read as a whole."""


def scored(
    query: ir.QueryIR,
    frame: Frame,
    limit: int | None,
    expressions: Expressions,
    settings: ReadSettings = READ_DEFAULTS,
) -> tuple[ir.QueryIR, Frame]:
    """The query with its scores as properties, and the rows that its rankings keep.

    All scores are of all matched rows; only then do the rankings that the query is ordered by leave rows out. From
    here on scores are values like any other.
    """
    rankings = query.rankings
    if not rankings:
        return query, frame
    ordered = [(order, resolved(order.expression, query)) for order in query.order]
    if limit is not None and frame.count >= settings.select_from:
        frame = _preselected(rankings, ordered, frame, limit, expressions, settings)
    arms = Arms(frame, rankings, expressions)
    known: dict[ir.Expr, ir.Prop] = {}
    places: list[ir.Order] = []
    kept = np.ones(frame.count, dtype=np.bool_)
    for index, ranking in enumerate(rankings):
        values = arms.scores(ranking)
        known[ranking] = ir.Prop(f"score#{index}", "score")
        frame = _bound(frame, f"score#{index}", to_arrow(values, np.isnan(values)))
        if all(ranking != expression for _, expression in ordered):
            continue
        kept &= is_ranked(ranking, values)
        if len(ranking.arms()) > 1 and not query.distinct:
            for number, arm in enumerate(ranking.arms()):
                name, ranks = f"place#{index}.{number}", arms.ranks(arm)
                frame = _bound(frame, name, to_arrow(np.where(ranks < 0, frame.count, ranks)))
                places.append(ir.Order(ir.Prop(name, "place")))
    columns = tuple(replace(c, expression=known.get(c.expression, c.expression)) for c in query.columns)
    orders = tuple(
        ir.Order(known.get(resolved_, order.expression), order.descending) for order, resolved_ in ordered
    )
    return replace(query, columns=columns, order=(*orders, *places)), _few(query, frame.keep(kept))


class Arms:
    """The scores of the rows of one frame. Every arm is scored once, whether it is returned, ordered by or fused;
    an arm that is fused scores each distinct entity once, because a fusion ranks entities."""

    def __init__(self, frame: Frame, rankings: Iterable[ir.Ranking], expressions: Expressions) -> None:
        self._frame = frame
        self._expressions = expressions
        self._fused = {arm for ranking in rankings if len(ranking.arms()) > 1 for arm in ranking.arms()}
        self._entities: dict[str, tuple[Array | None, Ints | None]] = {}
        self._scored: dict[ir.Score, Floats] = {}
        self._ranks: dict[ir.Score, Ints] = {}

    def scores(self, ranking: ir.Ranking) -> Floats:
        """The score of each row; NaN where a row has none."""
        if isinstance(ranking, ir.Rrf):
            return self._reciprocal(ranking)
        scores = self._of_entities(ranking)
        inverse = self._distinct(ranking.variable)[1] if ranking in self._fused else None
        return scores if inverse is None else scores[inverse]

    def ranks(self, arm: ir.Score) -> Ints:
        """For each row the rank of its entity among all distinct ones, from 0; -1 if the arm does not rank it."""
        if arm not in self._ranks:
            self._ranks[arm] = self._ranked(arm)
        inverse = self._distinct(arm.variable)[1]
        return self._ranks[arm] if inverse is None else self._ranks[arm][inverse]

    def _reciprocal(self, fusion: ir.Rrf) -> Floats:
        constant = fusing_constant(fusion, self._expressions)
        total = np.full(self._frame.count, np.nan)
        for arm in fusion.arms():
            ranks = self.ranks(arm)
            total = np.where(ranks >= 0, np.nan_to_num(total, nan=0.0) + 1.0 / (constant + ranks + 1), total)
        return total

    def _distinct(self, variable: str) -> tuple[Array | None, Ints | None]:
        """The positions of the distinct entities of a variable (None: all of its rows, in order), and for each row
        the number of its entity among them (None: its own)."""
        if variable not in self._entities:
            positions = self._frame.at(variable)
            self._entities[variable] = (
                (None, None) if positions is None else np.unique(positions, return_inverse=True)
            )
        return self._entities[variable]

    def _of_entities(self, arm: ir.Score) -> Floats:
        """The scores of the distinct entities of a fused arm; of the entities of all rows for any other arm."""
        if arm not in self._scored:
            variable = arm.variable
            positions = self._distinct(variable)[0] if arm in self._fused else self._frame.at(variable)
            self._scored[arm] = _scores(arm, self._frame.rows[variable], positions, self._expressions)
        return self._scored[arm]

    def _ranked(self, arm: ir.Score) -> Ints:
        """The rank of each distinct entity; ties go by id."""
        values = self._of_entities(arm)
        kept = np.flatnonzero(is_ranked(arm, values))
        score = -values[kept] if SCORES[arm.function].descending else values[kept]
        distinct, _ = self._distinct(arm.variable)
        ids = self._frame.rows[arm.variable].column("id").take(kept if distinct is None else distinct[kept])
        places = np.empty(len(kept), dtype=np.int64)
        places[np.asarray(pc.sort_indices(ids))] = np.arange(len(kept))
        ranks = np.full(len(values), -1, dtype=np.int64)
        ranks[kept[np.lexsort((places, score))]] = np.arange(len(kept))
        return ranks


def _scores(arm: ir.Score, rows: Rows, positions: Array | None, expressions: Expressions) -> Floats:
    """The scores of the entities at some positions, or of all; NaN where the position is negative."""
    from omnigraph.read.run.search.scorers import scorer_of

    count = rows.size if positions is None else len(positions)
    scorer = scorer_of(arm, expressions) if rows.count else None
    if scorer is None:
        return np.full(count, np.nan)
    if positions is None or not len(positions) or int(positions.min()) >= 0:
        return scorer.scores(rows, positions)
    missing = positions < 0
    scores = scorer.scores(rows, np.where(missing, 0, positions))
    scores[missing] = np.nan
    return scores


def is_ranked(ranking: ir.Ranking, scores: Floats) -> Bools:
    """Which rows a ranking keeps: those that have a score, or those whose score is above zero."""
    if SCORES[ranking.function].positive:
        return np.nan_to_num(scores, nan=0.0) > 0
    return ~np.isnan(scores)


def fusing_constant(fusion: ir.Rrf, expressions: Expressions) -> int:
    """The constant of a fusion; one that is not positive is refused."""
    value = expressions.constant(fusion.k)
    if isinstance(value, int) and value > 0:
        return value
    name = fusion.k.name if isinstance(fusion.k, ir.Param) else "k"
    raise ParameterError(expressions.query, {name: f"is {value!r}, and the constant of `rrf` must be positive"})


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


class Chosen(Rows):
    """A few rows of a table: columns that are not in memory are read for them alone, those with some ``names``
    at once."""

    def __init__(self, table: WholeTable, positions: Array, names: Set[str]) -> None:
        super().__init__(table.entity, len(positions))
        self._table, self._positions, self._names = table, positions, names
        self._columns: dict[str, Column] = {}

    def column(self, name: str) -> Column:
        if name not in self._columns:
            found = self._table.some({name, *self._names} - self._columns.keys(), self._positions)
            self._columns.update({each: Column(values) for each, values in found.items()})
        return self._columns[name]


def _few(query: ir.QueryIR, frame: Frame) -> Frame:
    """The same rows, if they are few, without their tables, as far as these are rarely read."""
    if not 0 < frame.count <= _FEW:
        return frame
    for variable, rows in list(frame.rows.items()):
        positions = frame.positions[variable]
        if isinstance(rows, WholeTable) and rows.is_rarely_read() and int(positions.min()) >= 0:
            distinct, places = np.unique(positions, return_inverse=True)
            returned = [one.expression for one in query.columns if isinstance(one.expression, ir.Prop)]
            names = {"id", *(each.property for each in returned if each.variable == variable)}
            frame = frame.bind(variable, Chosen(rows, distinct, names), places.astype(np.int32))
    return frame


def _preselected(
    rankings: Sequence[ir.Ranking],
    ordered: Sequence[tuple[ir.Order, ir.Expr]],
    frame: Frame,
    limit: int,
    expressions: Expressions,
    settings: ReadSettings,
) -> Frame:
    """The rows that can be among the first ones, if they are ordered by a single score first. Equal entities have
    equal scores, so the first rows are of at most as many entities."""
    ranking = rankings[0]
    if len(rankings) > 1 or not isinstance(ranking, ir.Score) or not ordered:
        return frame
    order, first = ordered[0]
    if first != ranking or order.descending != SCORES[ranking.function].descending:
        return frame
    rows, positions = frame.rows[ranking.variable], frame.positions[ranking.variable]
    is_whole = positions is rows.everything
    is_sorted = is_whole or is_ascending(positions)
    among = None if is_whole else _entities(positions, rows.size, is_sorted=is_sorted)
    from omnigraph.read.run.search.scorers import NearestScorer, scorer_of

    scorer = scorer_of(ranking, expressions) if len(positions if among is None else among) else None
    if scorer is None:
        return frame
    chosen = None
    if isinstance(ranking, ir.Nearest) and isinstance(scorer, NearestScorer):
        from omnigraph.read.run.search.indexed import candidates_by_index

        chosen = candidates_by_index(ranking, scorer, rows, limit, among, settings)
    if chosen is None:
        chosen = scorer.candidates(rows, limit, among)
    if chosen is None:
        return frame
    if is_sorted and len(frame.positions) == 1:
        return frame.take(np.searchsorted(positions, chosen.astype(positions.dtype, copy=False)))
    is_chosen = np.zeros(rows.size + 1, dtype=np.bool_)  # the last one is for rows without an entity
    is_chosen[chosen] = True
    return frame.keep(is_chosen[positions])


def _entities(positions: Array, size: int, *, is_sorted: bool) -> Array:
    """The positions of all entities, each once, ascending; rows without an entity have negative ones."""
    if is_sorted:
        return positions[np.searchsorted(positions, 0) :]
    is_there = np.zeros(size, dtype=np.bool_)
    is_there[positions[positions >= 0]] = True
    return np.flatnonzero(is_there)
