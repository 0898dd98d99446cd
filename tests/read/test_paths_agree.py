"""An answer does not depend on how it is found: by index or in memory, on a branch or its parent, now or later."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, get_args

import pytest
from tests.read.agreement import Ask, Case, ask_engine, disagreement, lively_query, loaded, random_graph, report
from tests.read.changes import change
from tests.read.engine import data_of, records_of
from tests.read.graphs import Record, SchemaPlan
from tests.read.query_parts import Query
from tests.read.shrinking import smallest
from tests.sampling import sampled

from omnigraph.graph import Graph
from omnigraph.read.plan.access import Path, forced_access

PATHS: Sequence[Path] = get_args(Path)
QUERIES_PER_GRAPH = 10
GRAPHS = max(1, int(os.environ.get("OMNIGRAPH_QUERY_EXAMPLES", "2000")) // 100)


def _forced(path: Path, **where: Any) -> Ask:
    def ask(graph: Graph, query: Query) -> tuple[list[str], list[dict[str, Any]]]:
        with forced_access(path):
            return ask_engine(graph, query, **where)

    return ask


@dataclass(frozen=True)
class Story:
    """A graph whose states are compared, and what it began with."""

    schema: SchemaPlan
    records: tuple[Record, ...]
    graph: Graph

    def queries(self, random: Random, count: int) -> list[Query]:
        data = data_of(self.graph)
        return [lively_query(random, self.schema, self.records, self.graph, data) for _ in range(count)]

    def check(self, queries: Sequence[Query], state: str, branch: str = "main", **where: Any) -> None:
        """All queries by every path, against what the reference says about a branch."""
        data = data_of(self.graph, branch)
        for query in queries:
            for path in PATHS:
                problem, _ = disagreement(self.graph, query, _forced(path, **(where or {"branch": branch})), data)
                if problem:
                    case = Case(self.schema, tuple(records_of(data)), query)
                    pytest.fail(f"{state}, by {path}:{self._shown(case, path, problem)}", pytrace=False)

    def _shown(self, case: Case, path: Path, problem: str) -> str:
        """The smallest case, if the problem is there in a new graph with the same records too."""

        def differs(graph: Graph, asked: Query) -> str:
            return disagreement(graph, asked, _forced(path))[0]

        if differs(loaded(case.schema, case.records), case.query):
            return smallest(case, differs)
        return report(case, self.graph, problem)


def _story(seed: int) -> tuple[Random, Story]:
    random, schema, records = random_graph(seed)
    return random, Story(schema, records, loaded(schema, records))


@pytest.mark.parametrize("seed", sampled(range(5000, 5000 + GRAPHS), GRAPHS // 4 or 1))
def test_every_path_gives_the_same_answer_on_every_state(seed: int) -> None:
    random, story = _story(seed)
    graph, queries = story.graph, story.queries(random, QUERIES_PER_GRAPH)
    story.check(queries, "before there are indexes")
    graph.ensure_indices()
    story.check(queries, "with indexes")
    graph.create_branch("side")
    story.check(queries, "on a new branch", "side")
    before = graph.snapshot("side").commit
    assert before is not None
    change(random, graph, story.schema, story.records, "side")
    story.check(queries, "on a branch that went on", "side")
    story.check(queries, "on the parent of a branch that went on")
    story.check(queries, "on a snapshot", at=before.graph_commit_id)


@pytest.mark.parametrize("seed", sampled(range(6000, 6000 + max(1, GRAPHS // 4)), GRAPHS // 10 or 1))
def test_an_index_that_lags_behind_is_no_obstacle(seed: int) -> None:
    """Rows written since the last `ensure_indices` are found, and rows deleted since are not."""
    random, story = _story(seed)
    story.graph.ensure_indices()
    for _ in range(3):
        change(random, story.graph, story.schema, story.records, "main")
        story.check(story.queries(random, 5), "behind the index")
