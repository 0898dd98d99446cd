"""Scores of the matched rows, and the fusion of two rankings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from omnigraph.lang.query import ir
from omnigraph.lang.query.scores import SCORES
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.run.search.ranking import fusing_constant
from omnigraph.spark.queries.rows import Matched
from omnigraph.spark.queries.scanning import Bound, Tables


@dataclass(frozen=True, slots=True)
class Scored:
    """The matched rows with the score of each ranking, and for each fusion the places in its two arms."""

    frame: DataFrame
    scores: Mapping[ir.Ranking, str]
    places: Mapping[ir.Rrf, tuple[str, str]]


def fusing_constants(rankings: Iterable[ir.Ranking], expressions: Expressions) -> dict[ir.Rrf, int]:
    """The constant of each fusion. One that cannot be used is refused as the embedded engine refuses it."""
    return {one: fusing_constant(one, expressions) for one in rankings if isinstance(one, ir.Rrf)}


def scored(rows: Matched, rankings: Iterable[ir.Ranking], fusing: Mapping[ir.Rrf, int], tables: Tables) -> Scored:
    """The rows with all their scores. Variables carry the scores of arms; a fusion compares all rows."""
    frame = tables.once() if rows.frame is None else rows.frame
    scores: dict[ir.Ranking, str] = {}
    places: dict[ir.Rrf, tuple[str, str]] = {}
    for ranking in rankings:
        bound = rows.variables[ranking.variable]
        if not isinstance(ranking, ir.Rrf):
            scores[ranking] = bound.columns[ranking]
            continue
        first, second, fused = tables.fresh(), tables.fresh(), tables.fresh()
        frame = frame.withColumn(first, _place(ranking.first, bound))
        frame = frame.withColumn(second, _place(ranking.second, bound))
        frame = frame.withColumn(fused, _fused(first, second, fusing[ranking]))
        scores[ranking], places[ranking] = fused, (first, second)
    return Scored(frame, scores, places)


def is_ranked(ranking: ir.Ranking, score: Column) -> Column:
    """Does a row stay when the rows are ordered by this score?"""
    return score > 0 if SCORES[ranking.function].positive else score.isNotNull()


def _place(arm: ir.Score, bound: Bound) -> Column:
    """The place of a row's entity among all that the arm ranks, from 0; null if the arm does not rank it.

    One task sorts all rows: a place depends on all of them.
    """
    score = fn.col(bound.columns[arm])
    present = is_ranked(arm, score)
    counted = fn.when(present, score)
    best_first = counted.desc_nulls_last() if SCORES[arm.function].descending else counted.asc_nulls_last()
    everything = Window.partitionBy(fn.lit(0))
    return fn.when(present, fn.dense_rank().over(everything.orderBy(best_first, fn.col(bound.id))) - 1)


def _fused(first: str, second: str, k: int) -> Column:
    """The sum of the reciprocal ranks; null if neither arm ranks the entity."""
    parts = [
        fn.lit(1.0) / (fn.lit(k).cast("bigint") + fn.col(place) + 1).cast("double") for place in (first, second)
    ]
    total = fn.coalesce(parts[0], fn.lit(0.0)) + fn.coalesce(parts[1], fn.lit(0.0))
    return fn.when(fn.col(first).isNotNull() | fn.col(second).isNotNull(), total)
