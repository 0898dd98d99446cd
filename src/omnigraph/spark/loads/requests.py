"""Loads on Spark: from what the caller passed to the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.bulk.load.job import LoadEngine, load
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.sources.files import Location, find_sources
from omnigraph.bulk.pieces import require_shared
from omnigraph.embed.client import EmbeddingClient
from omnigraph.manifest.repository import Repository
from omnigraph.spark.choice import SparkChoice
from omnigraph.spark.loads.frames import FrameRows, FrameSource
from omnigraph.spark.loads.joins import SparkJoins
from omnigraph.write.vectors import warn_unembedded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def load_on_spark(
    repository: Repository,
    data: Location | Sequence[Location] | None,
    nodes: Mapping[str, DataFrame | Location] | None,
    edges: Mapping[str, DataFrame | Location] | None,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    choice: SparkChoice,
) -> LoadResult:
    """Find the sources of a load, then a session, then run the job."""
    repository.require_writable()
    require_shared(repository.address)
    catalog = repository.catalog(options.branch, or_of=options.fork_from)
    files, frames = find_sources(catalog, repository.address.options, data, nodes or {}, edges or {})
    session = choice.session()

    def start() -> LoadEngine:
        runner = choice.runner(session)
        rows = [FrameRows(runner, FrameSource(entity, frame)) for entity, frame in frames]
        return LoadEngine(runner, SparkJoins(runner), rows)

    done = load(repository, files, options, embedder, start)
    warn_unembedded(done.warnings)
    return done
