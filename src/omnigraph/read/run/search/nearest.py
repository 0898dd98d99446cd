"""Vector search of a table that is not in memory: an index finds candidates, and exact distances decide."""

from __future__ import annotations

from omnigraph.errors import ObjectDamaged, StorageUnavailable
from omnigraph.lang.query import ir
from omnigraph.lang.query.explain import show
from omnigraph.read.pattern.pattern import Node
from omnigraph.read.run.frame import Frame
from omnigraph.read.run.lookups import FetchedRows, Lookups, TooManyLookups
from omnigraph.read.run.search.indexed import IndexedSearch
from omnigraph.read.run.search.scorers import NearestScorer
from omnigraph.read.run.steps import Step, Tools
from omnigraph.records import dataclass
from omnigraph.storage.rows.nearest import rows_near


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
        tables.cache.check()
        tables.cache.count_lookup(whole.ref.location)
        columns = operators.columns(self.node.variable, whole.entity)
        try:
            found = rows_near(tables.storage, whole.ref, self.search.near(scorer, self.wanted), columns)
        except (StorageUnavailable, ObjectDamaged) as error:
            raise TooManyLookups from error
        if found.num_rows < self.wanted:
            raise TooManyLookups
        return operators.scan(frame, self.node.variable, FetchedRows(whole, found, tables))

    def __str__(self) -> str:
        return f"Look up ${self.node.variable}: {self.node.type_name} by {show(self.score)}: {self.search}"
