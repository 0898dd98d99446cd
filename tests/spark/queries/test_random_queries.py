"""Random queries over random graphs, whose tables are in pieces, give the rows of the reference on Spark too.

`OMNIGRAPH_SPARK_QUERIES=500` asks for more queries than the default, `OMNIGRAPH_SPARK_SEED` for others.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.read.agreement import MOST_ROWS, Case, checks_what_may_fail, lively_query, random_graph, report
from tests.read.engine import data_of
from tests.read.functions.rows import Uncomputable
from tests.read.graphs import Record
from tests.read.reference_rows import TooManyRows
from tests.spark.queries.answers import Question, problems, quick_session

import omnigraph
from omnigraph.embed.mock import MockClient
from omnigraph.errors import ComputationFailed, DivisionByZero, NumberOverflow, SumOverflow
from omnigraph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PER_GRAPH = 10
GRAPHS = int(os.environ.get("OMNIGRAPH_SPARK_QUERIES", "40")) // PER_GRAPH
_FAILURES = {one.__name__ for one in (ComputationFailed, DivisionByZero, NumberOverflow)}
FIRST_SEED = int(os.environ.get("OMNIGRAPH_SPARK_SEED", "7000"))


def _asked(seed: int, place: Path) -> Iterator[tuple[Graph, Case, Question]]:
    """Some questions about one random graph; none that is too much for the reference or has no answer."""
    random, schema, records = random_graph(seed)
    created = omnigraph.init(str(place / f"{seed}.omni"), schema.text)
    graph = omnigraph.open(created.address, embedder=MockClient())
    for part in _parts(records):
        graph.load("\n".join(json.dumps(record) for record in part).encode(), mode="append")
    data = data_of(graph)
    for number in range(PER_GRAPH):
        query = lively_query(random, schema, records, graph, data)
        try:
            asked = Question.of(f"{seed}/{number}", graph, query.text, query.values, data=data, most=MOST_ROWS)
        except (TooManyRows, SumOverflow, Uncomputable, ComputationFailed):
            continue
        yield graph, Case(schema, records, query), asked


def _parts(records: tuple[Record, ...]) -> Iterator[list[Record]]:
    """The records in several loads, each of which leaves a fragment of its own: nodes first, then edges."""
    nodes = [record for record in records if "type" in record]
    edges = [record for record in records if "edge" in record]
    yield from (part for part in (nodes[::2], nodes[1::2], edges[::2], edges[1::2]) if part)


def _fails_by_order(graph: Graph, case: Case, problem: str) -> bool:
    """Has a condition of the match been computed for rows that another one would have left out?"""
    failed = problem.rstrip().splitlines()[-1].partition(":")[0].rpartition(".")[2]
    return failed in _FAILURES and checks_what_may_fail(graph, case.query)


def test_random_queries_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    asked = [one for seed in range(FIRST_SEED, FIRST_SEED + GRAPHS) for one in _asked(seed, tmp_path)]
    found = problems(quick_session(spark), [question for _, _, question in asked], rows_per_task=1)
    wrong = [
        report(case, graph, found[one.name])
        for graph, case, one in asked
        if found[one.name] and not _fails_by_order(graph, case, found[one.name])
    ]
    assert wrong == [], f"{len(wrong)} of {len(asked)}:\n" + "\n\n".join(wrong[:3])
    assert len(asked) > GRAPHS * PER_GRAPH / 2
