"""Vector search through an index: candidates come from the index, and their exact distances decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.errors import ObjectDamaged, StorageUnavailable
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.read.pattern.pattern import Node
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.lookups import FetchedRows, Lookups, TooManyLookups
from omnigraph.read.run.scorers import NearestScorer
from omnigraph.read.run.steps import Step, Tools
from omnigraph.storage.nearest import Near, VectorIndex, rows_near


@dataclass(frozen=True, slots=True)
class IndexedSearch:
    """How an index is searched: in how many partitions of a segment, and for how many candidates for each row that
    the query returns."""

    index: VectorIndex
    probes: int
    refine: int


@dataclass(slots=True)
class SearchNearest(Step):
    """The rows of a variable that can be among the nearest, by the index of a vector property."""

    node: Node
    score: ir.Nearest
    search: IndexedSearch
    wanted: int

    def run(self, frame: Frame, tools: Tools) -> Frame:
        operators = tools.operators
        assert isinstance(operators, Lookups)  # noqa: S101  the planner puts no others here
        scorer = NearestScorer.of(self.score, operators.expressions)
        if scorer is None or not scorer.vector.any():
            raise TooManyLookups
        tables, whole = operators.tables, operators.tables.nodes(self.node.type_name)
        near = Near(
            self.score.property,
            scorer.vector.astype(np.float32),
            self.score.metric,
            self.wanted * self.search.refine,
            self.search.probes,
        )
        tables.cache.check()
        try:
            columns = operators.columns(self.node.variable, whole.entity, self.node.filters)
            found = rows_near(tables.storage, whole.ref, near, columns)
        except (StorageUnavailable, ObjectDamaged) as error:
            raise TooManyLookups from error
        rows = FetchedRows(whole, found, tables)
        chosen = operators.scan(frame, self.node.variable, rows)
        if found[self.score.property].null_count or chosen.count < self.wanted:
            raise TooManyLookups
        return chosen

    def __str__(self) -> str:
        index, search = self.search.index, self.search
        return (
            f"Search ${self.node.variable}: {self.node.type_name} for {show(self.score)}: index {index.name}, "
            f"{search.probes} of {index.partitions} partitions, {search.refine} candidates for each row"
        )
