"""Queries whose answers on Spark are compared with those of the reference, and many of them at a time."""

from __future__ import annotations

import datetime as dt
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from tests.read.agreement import difference
from tests.read.engine import reference_answer
from tests.read.reference_results import Answer
from tests.read.reference_rows import GraphData

from omnigraph.bulk.pieces import ROWS_PER_TASK
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import NotOnSpark
from omnigraph.graph import Graph
from omnigraph.lang.parameters import Value, bind_parameters
from omnigraph.lang.query import ir
from omnigraph.lang.query.compile import CompiledRead, compile_read
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.result.result import Result, Target
from omnigraph.spark.queries.execution import run_query

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_A_TIME = 4
QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "Asia/Tokyo",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A handful of rows is sooner read than a program for them compiled; and no result depends on the time zone."""


@dataclass(frozen=True)
class Question:
    """A query on one state of a graph, with the answer of the reference and the table of the embedded engine."""

    name: str
    query: CompiledRead
    values: Mapping[str, Value]
    graph: Snapshot
    embedder: Callable[[], EmbeddingClient | None]
    expected: Answer
    embedded: pa.Table

    @classmethod
    def of(
        cls,
        name: str,
        graph: Graph,
        text: str,
        params: Mapping[str, Any],
        query: str | None = None,
        data: GraphData | None = None,
        most: int = 1_000_000,
    ) -> Question:
        """A question about the newest state of a graph."""
        compiled = compile_read(text, graph.catalog, query)
        values = bind_parameters(compiled.name, compiled.params, params)
        values[ir.NOW] = dt.datetime.now(dt.UTC)
        return cls(
            name,
            compiled,
            values,
            graph.snapshot(),
            graph._embedder,
            reference_answer(graph, text, params, query, data=data, most=most),
            graph.query(text, params, name=query).table,
        )


def quick_session(spark: SparkSession) -> SparkSession:
    """A session that shares everything with another but for settings that suit a handful of rows."""
    session = spark.newSession()
    for name, value in QUICK.items():
        session.conf.set(name, value)
    return session


def problems(
    spark: SparkSession, questions: Sequence[Question], rows_per_task: int = ROWS_PER_TASK
) -> dict[str, str]:
    """By name of the question: how Spark's answer differs, empty if it does not."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found: Iterable[str] = pool.map(lambda question: problem(spark, question, rows_per_task), questions)
        return {question.name: said for question, said in zip(questions, found, strict=True)}


def problem(spark: SparkSession, question: Question, rows_per_task: int = ROWS_PER_TASK) -> str:
    """How Spark's answer differs from what is expected; empty if it does not."""
    try:
        table = run_query(
            spark,
            question.graph,
            question.query,
            question.values,
            embedder=question.embedder,
            rows_per_task=rows_per_task,
        )
    except NotOnSpark as error:
        return f"refused: {error.what}"
    except Exception:  # noqa: BLE001  whatever goes wrong is what we look for
        return traceback.format_exc(limit=-8)
    if table.schema != question.embedded.schema:
        return f"columns {table.schema}, and not {question.embedded.schema}"
    return difference(question.expected, Result(question.name, Target("main", None), None, table).rows)
