"""Loads on Spark: from what the caller passed to the job."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.bulk.load.job import LoadEngine, load
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.sources.finding import Sources, TypedData
from omnigraph.bulk.load.staging.held import BegunRows, SpooledRows
from omnigraph.bulk.pieces import require_shared
from omnigraph.embed.client import EmbeddingClient
from omnigraph.manifest.repository import Repository
from omnigraph.spark.choice import SparkChoice
from omnigraph.spark.loads.frames import FrameRows, FrameSource
from omnigraph.spark.loads.joins import SparkJoins
from omnigraph.write.vectors import warn_unembedded


def load_on_spark(
    repository: Repository,
    sources: Sources,
    held: Sequence[BegunRows],
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    choice: SparkChoice,
) -> LoadResult:
    """Find a session, then run the job on the files and DataFrames of a load, and on what this process holds.

    What can be told of them is checked before Spark starts.
    """
    repository.require_writable()
    require_shared(repository.address)
    frames = [_frame_source(data) for data in sources.frames]
    for one in held:
        one.require_columns()
    session = choice.session()

    def start() -> LoadEngine:
        runner = choice.runner(session)
        spooled = [SpooledRows(runner, repository.address, one) for one in held]
        return LoadEngine(runner, SparkJoins(runner), [*(FrameRows(runner, frame) for frame in frames), *spooled])

    repeats = not any(one.rows.is_spent for one in held)
    done = load(repository, sources.files, options, embedder, start, repeats=repeats)
    warn_unembedded(done.warnings)
    return done


def _frame_source(data: TypedData) -> FrameSource:
    """A DataFrame with the columns of its type, chosen and named as the caller wants."""
    frame = data.source.data
    columns = data.layout.columns(data.entity, frame.columns, data.name)
    if all(name == column for name, column in columns.items()) and len(columns) == len(frame.columns):
        return FrameSource(data.entity, frame, data.name)
    chosen = [frame[column].alias(name) for name, column in columns.items()]
    return FrameSource(data.entity, frame.select(*chosen), data.name)
