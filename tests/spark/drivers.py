"""Drivers that are killed: each runs a stream to the end of its input, unless a failpoint ends it first.

::

    OMNIGRAPH_FAILPOINTS=stream.after_commit=kill python -m tests.spark.drivers stream /graph /input /checkpoint
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.failpoints import hit
from omnigraph.spark.datasource.source import register
from omnigraph.spark.sessions import spark_session
from omnigraph.spark.streaming.stream import stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def lines(spark: SparkSession, folder: str) -> DataFrame:
    """A stream of lines, one file per micro-batch."""
    return spark.readStream.option("maxFilesPerTrigger", "1").text(folder)


def run_stream(spark: SparkSession, graph: str, folder: str, checkpoint: str) -> None:
    query = stream(
        graph, lines(spark, folder), name="lines", records=True, checkpoint=checkpoint, available_now=True
    )
    query.awaitTermination()


def run_sink(spark: SparkSession, graph: str, folder: str, checkpoint: str) -> None:
    register(spark)
    sink = lines(spark, folder).writeStream.format("omnigraph").option("stream", "lines").option("records", "true")
    query = sink.option("checkpointLocation", checkpoint).trigger(availableNow=True).start(graph)
    query.awaitTermination()


def changes(spark: SparkSession, graph: str, **options: str) -> DataFrame:
    """A stream of a graph's changes from the beginning, two commits per micro-batch."""
    register(spark)
    given = {"start": "beginning", "commits": "2", **options}
    return spark.readStream.format("omnigraph").options(**given).load(graph)


def run_changes(spark: SparkSession, graph: str, folder: str, checkpoint: str) -> None:
    """Write each micro-batch of changes as a file of its own, so that one that comes twice replaces itself."""

    def write(frame: DataFrame, batch: int) -> None:
        rows = [row.asDict() for row in frame.select("graph_commit_id", "op", "id", "before", "after").collect()]
        Path(folder, f"{batch}.json").write_text(json.dumps(rows))
        hit("stream.after_commit")

    writer = changes(spark, graph).writeStream.foreachBatch(write)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()


RUNS = {"stream": run_stream, "sink": run_sink, "changes": run_changes}


def kill_at(failpoint: str, kind: str, *arguments: Path | str) -> int:
    """Run a driver in a process of its own, to be killed at a failpoint; how it ended."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.spark.drivers", kind, *map(str, arguments)],
        env=os.environ | {"OMNIGRAPH_FAILPOINTS": f"{failpoint}=kill"},
        cwd=Path(__file__).parents[2],
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return ended.returncode


if __name__ == "__main__":
    RUNS[sys.argv[1]](spark_session("local[2]"), *sys.argv[2:])
