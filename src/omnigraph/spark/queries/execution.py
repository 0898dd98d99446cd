"""Running a read on Spark: refuse what cannot run, gather what all rows share, match, and make the result."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.bulk.pieces import pieces_of
from omnigraph.embed.client import EmbeddingClient, configured_client
from omnigraph.lang.parameters import Value
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledRead
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.run.expressions import Expressions
from omnigraph.read.values.vectors import Floats
from omnigraph.spark.queries.hops import most_hops
from omnigraph.spark.queries.matching import Matched, Matching
from omnigraph.spark.queries.output import Output, Page, as_frame, as_table
from omnigraph.spark.queries.ranking import arms_of, fusing_constants, rankings_of, scored
from omnigraph.spark.queries.reading import Values
from omnigraph.spark.queries.scanning import Tables, check_scans
from omnigraph.spark.queries.steps import Match, hops_in, match_of
from omnigraph.spark.queries.texts import Statistics, statistics
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
    return as_frame(query.ir, _answer(SparkRunner(spark), graph, query, values, embedder))


def run_query(
    spark: SparkSession,
    graph: Snapshot,
    query: CompiledRead,
    values: Mapping[str, Value],
    *,
    embedder: Embedder = configured_client,
    runner: SparkRunner | None = None,
) -> pa.Table:
    """The rows of a read, with the types and in the order in which the embedded engine gives them.

    A ``runner`` of the caller's can be watched and cancelled.
    """
    running = SparkRunner(spark) if runner is None else runner
    frame = _answer(running, graph, query, values, embedder)
    with running.watched(f"query {query.name}"):
        collected = frame.toArrow()
    return as_table(query.ir, collected)


def _answer(
    runner: SparkRunner, graph: Snapshot, query: CompiledRead, values: Mapping[str, Value], embedder: Embedder
) -> DataFrame:
    """The result under column names of our own: those of queries may repeat."""
    read = query.ir
    match = match_of(read, graph.catalog)
    expressions = Expressions(query.name, {ir.NOW: _now(), **values}, embedder)
    rankings = rankings_of(read)
    page = Page.of(read, expressions)
    fusing = fusing_constants(rankings, match, expressions)
    for hop in hops_in(match.steps):
        most_hops(hop, graph)
    unranked = Values(query.name, expressions.params)
    check_scans(match, unranked)

    arms = [arm for ranking in rankings for arm in arms_of(ranking)]
    present = [arm for arm in arms if graph.rows(match.variables[arm.variable].table_key)]
    vectors = {arm: tuple(found) for arm in present if (found := _vector(arm, expressions)) is not None}
    counted = {arm: known for arm in present if (known := _counted(arm, graph, match, expressions, runner))}
    tables = Tables(runner.spark, graph, match, replace(unranked, vectors=vectors, statistics=counted))
    rows = Matching(tables, expressions).run(match.steps, Matched(None, {}))
    return Output(read, tables, expressions, rows).result(scored(rows, rankings, fusing, tables), page)


def _vector(arm: ir.Nearest | ir.Bm25, expressions: Expressions) -> Floats | None:
    """What distances are measured from."""
    return expressions.vector(arm) if isinstance(arm, ir.Nearest) else None


def _counted(
    arm: ir.Nearest | ir.Bm25, graph: Snapshot, match: Match, expressions: Expressions, runner: SparkRunner
) -> Statistics | None:
    """The statistics of the texts that are scored."""
    query = expressions.constant(arm.query) if isinstance(arm, ir.Bm25) else None
    if query is None:
        return None
    pieces = pieces_of(graph, match.variables[arm.variable].table_key)
    return statistics(runner, pieces, arm.property, str(query))


def _now() -> dt.datetime:
    """This moment, to the millisecond that a DateTime can hold."""
    now = dt.datetime.now(dt.UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
