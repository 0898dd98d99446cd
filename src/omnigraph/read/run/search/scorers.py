"""The evaluators of score functions: each is made for one query, and scores many entities at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Final, Generic, TypeVar

import numpy as np

from omnigraph.lang.query import ir
from omnigraph.read.data.rows import Rows
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.text.analysis import terms_of
from omnigraph.read.text.bm25 import Statistics, piece_scores
from omnigraph.read.values.columns import Array, Floats, Ints
from omnigraph.records import dataclass

if TYPE_CHECKING:
    from omnigraph.read.values.vectors import Metric

Counts = TypeVar("Counts")


class Scorer(ABC):
    """Scores the entities of a type by one score function and one query. It can be sent to other processes."""

    is_relative: ClassVar[bool] = False
    """Does a score depend on the other entities of the type? Then the scorer is a `RelativeScorer`."""

    @classmethod
    @abstractmethod
    def of(cls, score: ir.Score, expressions: Expressions) -> Scorer | None:
        """The scorer of one execution; None if its query is null, so that nothing has a score."""

    @abstractmethod
    def scores(self, rows: Rows, positions: Array | None = None) -> Floats:
        """The score of each entity at the positions, or of all; NaN where there is nothing to score."""

    def candidates(self, rows: Rows, count: int, among: Array | None = None) -> Ints | None:  # noqa: ARG002
        """Positions that contain the best so many entities, of all or of those at some positions, which ascend;
        None if only scoring all of them would tell."""
        return None


class RelativeScorer(Scorer, Generic[Counts]):
    """A scorer that needs statistics of the whole table. A table that is read in pieces is counted first."""

    is_relative = True

    @abstractmethod
    def counted(self, batches: Iterable[Rows]) -> Counts:
        """The statistics of one piece of a table."""

    @abstractmethod
    def knowing(self, counts: Sequence[Counts]) -> Scorer:
        """The scorer with the statistics of the whole table, from those of its pieces."""


@dataclass(frozen=True, slots=True, eq=False)
class NearestScorer(Scorer):
    """Distances to a vector."""

    property: str
    vector: Floats
    metric: Metric

    @classmethod
    def of(cls, score: ir.Score, expressions: Expressions) -> NearestScorer | None:
        assert isinstance(score, ir.Nearest)  # noqa: S101  the type rule makes nothing else
        query = expressions.constant(score.query)
        if query is None:
            return None
        if isinstance(query, str):
            vector = expressions.embedded(query, score)
        else:
            vector = np.asarray(query, dtype=np.float32).astype(np.float64)
        return cls(score.property, vector, score.metric)

    def scores(self, rows: Rows, positions: Array | None = None) -> Floats:
        return rows.distances(self.property, self.vector, self.metric, positions)

    def candidates(self, rows: Rows, count: int, among: Array | None = None) -> Ints | None:
        return rows.vectors(self.property).nearest(self.vector, self.metric, count, among)


@dataclass(frozen=True, slots=True)
class Bm25Scorer(RelativeScorer[Statistics]):
    """BM25 scores for a text, by the index of the column, or by statistics of a column that is read in pieces."""

    property: str
    query: str
    whole: Statistics | None = None

    @classmethod
    def of(cls, score: ir.Score, expressions: Expressions) -> Bm25Scorer | None:
        query = expressions.constant(score.query)
        return None if query is None else cls(score.property, str(query))

    def scores(self, rows: Rows, positions: Array | None = None) -> Floats:
        if self.whole is not None:
            scores = piece_scores(rows.column(self.property).arrow, self.query, self.whole)
            return scores if positions is None else scores[positions]
        index = rows.text_index(self.property)
        scores = index.scores(self.query, positions)
        scores[index.is_null if positions is None else index.is_null[positions]] = np.nan
        return scores

    def candidates(self, rows: Rows, count: int, among: Array | None = None) -> Ints | None:
        if self.whole is not None or count <= 0:
            return None
        return rows.text_index(self.property).best(self.query, count, among)

    def counted(self, batches: Iterable[Rows]) -> Statistics:
        terms = terms_of(self.query)
        return Statistics.sum_of(Statistics.of(rows.column(self.property).arrow, terms) for rows in batches)

    def knowing(self, counts: Sequence[Statistics]) -> Bm25Scorer:
        return replace(self, whole=Statistics.sum_of(counts))


SCORERS: Final[Mapping[str, type[Scorer]]] = {"nearest": NearestScorer, "bm25": Bm25Scorer}
"""The evaluator of each function, by its name in queries."""


def scorer_of(arm: ir.Score, expressions: Expressions) -> Scorer | None:
    """The scorer of an arm; None if its query is null, so that nothing has a score."""
    return SCORERS[arm.function].of(arm, expressions)


def needs_whole_tables(query: ir.QueryIR) -> bool:
    """Does a query rank by scores that depend on all entities of a type?"""
    return any(SCORERS[arm.function].is_relative for ranking in query.rankings for arm in ranking.arms())
