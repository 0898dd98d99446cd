"""What a user asks the pipeline to load, and the way from there to the job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.bulk.load.job import Input, load
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.sources import SourceFile, find_files, typed_files
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.typenames import edge_type, node_type
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import BranchExists, SourceUnusable
from omnigraph.manifest.repository import Repository
from omnigraph.spark.choice import SparkChoice
from omnigraph.spark.loads.frames import FrameRows, FrameSource
from omnigraph.spark.loads.joins import SparkJoins
from omnigraph.spark.sessions import cores
from omnigraph.write.vectors import warn_unembedded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Place = str | os.PathLike[str]


def load_on_spark(
    repository: Repository,
    data: Place | Sequence[Place] | None,
    nodes: Mapping[str, DataFrame | Place] | None,
    edges: Mapping[str, DataFrame | Place] | None,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    choice: SparkChoice,
) -> LoadResult:
    """Find everything that is to be loaded, then a session, then run the job."""
    repository.require_writable()
    require_shared(repository.address)
    if options.fork_from is None:
        repository.branches.find(options.branch)
    files, frames = _given(repository, data, nodes or {}, edges or {})
    session = choice.session()

    def attempt() -> LoadResult:
        runner = choice.runner(session)
        given = Input(files, [FrameRows(runner, frame) for frame in frames])
        return load(repository, runner, SparkJoins(runner), given, options, embedder, cores(session))

    try:
        done = attempt()
    except BranchExists:  # another writer has made the branch since the job began: its files have to lie elsewhere
        done = attempt()
    warn_unembedded(done.warnings)
    return done


def _given(
    repository: Repository,
    data: Place | Sequence[Place] | None,
    nodes: Mapping[str, Any],
    edges: Mapping[str, Any],
) -> tuple[list[SourceFile], list[FrameSource]]:
    """The files and the DataFrames that a caller named."""
    catalog, options = repository.catalog, repository.address.options
    places = [] if data is None else [data] if isinstance(data, str | os.PathLike) else list(data)
    files = find_files(places, catalog, options)
    frames: list[FrameSource] = []
    for kind, typed in (("node", nodes), ("edge", edges)):
        for name, source in typed.items():
            entity = node_type(catalog, name) if kind == "node" else edge_type(catalog, name)
            if isinstance(source, str | os.PathLike):
                files += typed_files(source, entity.table_key, options)
            else:
                frames.append(FrameSource(entity, source))
    if not files and not frames:
        raise SourceUnusable("nothing", "give files, or DataFrames as nodes={TYPE: df} and edges={TYPE: df}")
    return files, frames
