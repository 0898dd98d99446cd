"""Running a read on Spark: refuse what cannot run, gather what all rows share, match, and make the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.bulk.pieces import ROWS_PER_TASK, Piece, pieces_of
from omnigraph.bulk.runner import TaskResult
from omnigraph.embed.client import EmbeddingClient, configured_client
from omnigraph.errors import JobFailed
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledRead
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.run.expressions import Expressions, this_moment
from omnigraph.read.run.search.scorers import RelativeScorer, Scorer, scorer_of
from omnigraph.spark.queries.failures import computation_failure
from omnigraph.spark.queries.hops import max_hops
from omnigraph.spark.queries.matching import Matching
from omnigraph.spark.queries.output import Output, Page, as_frame, as_table, united
from omnigraph.spark.queries.ranking import fusing_constants, scored
from omnigraph.spark.queries.reading import Batch, Values
from omnigraph.spark.queries.rows import Matched
from omnigraph.spark.queries.scanning import Pieces, Tables, check_scans
from omnigraph.spark.queries.steps import Match, hops_in, match_of
from omnigraph.spark.runner import SparkRunner

Embedder = Callable[[], EmbeddingClient | None]


def query_frame(
    spark: SparkSession,
    graph: Snapshot,
    query: CompiledRead,
    values: Mapping[str, Value],
    *,
    embedder: Embedder = configured_client,
) -> DataFrame:
    """The result of a read as a DataFrame whose columns are the query's, in their order.

    What Spark cannot do is refused as NotOnSpark before any job runs. If the query scores texts, one job runs here
    already: it counts the words of the whole column.
    """
    return as_frame(query.ir, _answer(SparkRunner(spark), graph, query.ir, values, embedder))


def run_query(
    spark: SparkSession,
    graph: Snapshot,
    query: CompiledRead,
    values: Mapping[str, Value],
    *,
    embedder: Embedder = configured_client,
    runner: SparkRunner | None = None,
    rows_per_task: int = ROWS_PER_TASK,
) -> pa.Table:
    """The rows of a read, with the types and in the order in which the embedded engine gives them.

    The caller can watch and cancel a ``runner`` of its own. A task reads about ``rows_per_task`` rows of a table.
    """
    running = SparkRunner(spark) if runner is None else runner
    frame = _answer(running, graph, query.ir, values, embedder, rows_per_task)
    try:
        with running.watched(f"query {query.name}"):
            collected = frame.toArrow()
    except JobFailed as failed:
        failure = computation_failure(failed.__cause__ or failed)
        if failure is not None:
            raise failure from None
        raise
    return as_table(query.ir, collected)


def _answer(
    runner: SparkRunner,
    graph: Snapshot,
    query: ir.ReadIR,
    values: Mapping[str, Value],
    embedder: Embedder,
    rows_per_task: int = ROWS_PER_TASK,
) -> DataFrame:
    """The result, under column names of its own: those of a query may repeat."""
    expressions = Expressions(query.name, {ir.NOW: this_moment(), **values}, embedder)
    if isinstance(query, ir.UnionIR):
        page = Page.of(query.whole, expressions)
        frames = [_read(runner, graph, read, expressions, rows_per_task) for read in query.reads]
        return united(query, frames, page)
    return _read(runner, graph, query, expressions, rows_per_task)


def _read(
    runner: SparkRunner, graph: Snapshot, read: ir.QueryIR, expressions: Expressions, rows_per_task: int
) -> DataFrame:
    """The result of one read."""
    match = match_of(read, graph.catalog)
    page = Page.of(read, expressions)
    fusing = fusing_constants(read.rankings, expressions)
    for hop in hops_in(match.steps):
        max_hops(hop, graph)
    unranked = Values(read.name, expressions.params)
    check_scans(match, unranked)

    pieces = partial(pieces_of, graph, rows=rows_per_task)
    ranked = replace(unranked, scorers=_scorers(read, match, pieces, expressions, runner))
    tables = Tables(runner.spark, graph, match, ranked, pieces, read.params)
    rows = Matching(tables, expressions).run(match.steps, Matched(None, {}))
    return Output(read, tables, expressions, rows).result(scored(rows, read.rankings, fusing, tables), page)


def _scorers(
    query: ir.QueryIR, match: Match, pieces: Pieces, expressions: Expressions, runner: SparkRunner
) -> dict[ir.Score, Scorer]:
    """The scorers of all arms that score any row. A relative one learns about the whole table, in a job."""
    found: dict[ir.Score, Scorer] = {}
    for arm in dict.fromkeys(arm for ranking in query.rankings for arm in ranking.arms()):
        entity = match.variables[arm.variable]
        table = pieces(entity.table_key)
        scorer = scorer_of(arm, expressions) if table else None
        if isinstance(scorer, RelativeScorer):
            counted = partial(_counted, scorer, entity, arm.property)
            scorer = scorer.knowing(runner.run("statistics", counted, table))
        if scorer is not None:
            found[arm] = scorer
    return found


def _counted(scorer: RelativeScorer[Any], entity: EntityType, column: str, piece: Piece) -> TaskResult[Any]:
    """What a scorer has to know about one piece of a table."""
    batches = (Batch(entity, rows) for rows in piece.batches([column]))
    return TaskResult(scorer.counted(batches), rows=piece.rows)
