"""What a user asks the pipeline to load, and the way from there to the job."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import BranchExists, SourceUnusable
from omnigraph.manifest.repository import Repository
from omnigraph.pipeline.frameloads import FrameSource
from omnigraph.pipeline.load import Input, load
from omnigraph.pipeline.pinned import require_shared
from omnigraph.pipeline.session import cores, spark_session
from omnigraph.pipeline.sources import find_files, typed_files
from omnigraph.pipeline.tasks import Listener, Runner
from omnigraph.pipeline.typenames import edge_type, node_type
from omnigraph.read.limits import Cancellation
from omnigraph.write.engines import LoadOptions
from omnigraph.write.requests import LoadResult, warn_unembedded

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Place = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class SparkChoice:
    """The session a job runs in, and who watches it."""

    spark: SparkSession | None = None
    master: str | None = None
    remote: str | None = None
    listener: Listener | None = None
    cancellation: Cancellation | None = None


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
    given = _given(repository, data, nodes or {}, edges or {})
    session = spark_session(choice.spark, master=choice.master, remote=choice.remote)

    def attempt() -> LoadResult:
        runner = Runner(session, listener=choice.listener, cancellation=choice.cancellation)
        return load(repository, runner, given, options, embedder, cores(session))

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
) -> Input:
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
    return Input(files, frames)
