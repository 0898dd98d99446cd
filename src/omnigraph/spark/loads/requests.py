"""Loads on Spark: from what the caller passed to the job."""

from __future__ import annotations

from omnigraph.bulk.load.job import LoadEngine, load
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.sources.finding import Sources, TypedData
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
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    choice: SparkChoice,
) -> LoadResult:
    """Find a session, then run the job on the files and DataFrames of a load."""
    repository.require_writable()
    require_shared(repository.address)
    frames = [_frame_source(data) for data in sources.frames]
    session = choice.session()

    def start() -> LoadEngine:
        runner = choice.runner(session)
        return LoadEngine(runner, SparkJoins(runner), [FrameRows(runner, frame) for frame in frames])

    done = load(repository, sources.files, options, embedder, start)
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
