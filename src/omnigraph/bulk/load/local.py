"""Loads of all sources: where they run, and those that run in this process.

Small ones are one change in memory, larger ones are staged as files by threads. Sources are read in chunks or
slices, so that a load of any size takes the memory of a few of them and of its keys.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from mmap import mmap
from typing import Any

from omnigraph.bulk.load import job
from omnigraph.bulk.load.checking.rejected import LocalJoins
from omnigraph.bulk.load.inputs import is_location
from omnigraph.bulk.load.job import LoadEngine
from omnigraph.bulk.load.options import LoadOptions, LoadResult
from omnigraph.bulk.load.small import Part, load_small
from omnigraph.bulk.load.sources.cutting import Cuts, certain_cuts, is_cut, likely_cuts
from omnigraph.bulk.load.sources.description import Location, Source
from omnigraph.bulk.load.sources.files import SourceFile
from omnigraph.bulk.load.sources.finding import Sources, are_locations, find_sources
from omnigraph.bulk.load.sources.held import HeldRows, held_records, held_rows, held_text
from omnigraph.bulk.load.sources.reading import blocks_of
from omnigraph.bulk.load.sources.slices import Slice, slices_of
from omnigraph.bulk.load.staging.held import BegunRows, ChunkedRows
from omnigraph.bulk.runner import Engine, LocalRunner
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import (
    BranchNotFound,
    ConstraintViolation,
    JavaUnavailable,
    MissingExtra,
    RecordError,
    RequestError,
    ResourceLimit,
    SourceUnusable,
)
from omnigraph.formats.jsonl.blocks import Block
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import Scheme
from omnigraph.storage.together import in_shares
from omnigraph.write.protocol import repeated_if_schema_changed
from omnigraph.write.vectors import warn_unembedded


@dataclass(frozen=True, slots=True)
class LoadData:
    """What a caller passed to a load: ``data``, which may be of all types, rows by type, and an engine.

    ``is_spark_given`` says that the caller passed a session or an address, which selects Spark.
    """

    data: Any = None
    nodes: Mapping[str, Any] = field(default_factory=dict)
    edges: Mapping[str, Any] = field(default_factory=dict)
    engine: Engine = Engine.AUTO
    is_spark_given: bool = False

    @property
    def locations(self) -> Location | Sequence[Location] | None:
        """The data, if it says where files are."""
        return self.data if are_locations(self.data) and not self.is_text else None

    @property
    def is_text(self) -> bool:
        """Is the data the records themselves, as JSON Lines?"""
        return isinstance(self.data, bytes | mmap) or (isinstance(self.data, str) and not is_location(self.data))

    @property
    def is_spent(self) -> bool:
        """Can anything among the data be read only once?"""
        given = [self.data, *self.nodes.values(), *self.edges.values()]
        every = [one.data if isinstance(one, Source) else one for one in given]
        return any(isinstance(one, Iterator) or hasattr(one, "read_next_batch") for one in every)

    def find(self, catalog: Catalog, options: Mapping[str, str]) -> Sources:
        """The files and typed rows, checked against the schema."""
        if self.data is not None and self.locations is None and not (self.nodes or self.edges):
            return Sources()
        return find_sources(catalog, options, self.locations, self.nodes, self.edges)

    def held(self, sources: Sources, catalog: Catalog) -> list[HeldRows]:
        """What this process holds: records of all types, then rows by type."""
        typed = [held_rows(one, catalog) for one in sources.held]
        if self.data is None or self.locations is not None:
            return typed
        every = held_text(self.data, catalog) if self.is_text else held_records(self.data, catalog)
        return [every, *typed]


def runs_on_spark(data: LoadData, sources: Sources, options: LoadOptions) -> bool:
    """Does a load run on Spark? RequestError if it cannot run on the engine that the caller named."""
    if sources.frames and data.engine is Engine.LOCAL:
        raise RequestError("Spark DataFrames are loaded on Spark only; give `df.toArrow()` to load them here")
    if sources.frames or data.engine is Engine.SPARK:
        return True
    is_large = data.is_spark_given or sources.file_bytes > options.settings.local_load
    return data.engine is Engine.AUTO and is_large


def load(
    repository: Repository,
    data: LoadData,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    start: Callable[[], LocalRunner],
    on_spark: Callable[[Sources, Sequence[BegunRows]], LoadResult],
) -> LoadResult:
    """Load everything that a caller passed as one commit, in this process or on Spark.

    ``start`` makes a runner for an attempt in this process. There is a second attempt if the schema was changed
    meanwhile, unless something can be read only once.
    """
    if options.max_errors is not None and options.max_errors < 1:
        raise RequestError(f"max_errors is {options.max_errors}; it is at least 1")

    def attempt() -> LoadResult:
        state = repository.snapshot(_schema_giver(repository, options))
        sources = data.find(state.catalog, repository.address.options)
        begun = [BegunRows(rows) for rows in data.held(sources, state.catalog)]
        if runs_on_spark(data, sources, options):
            try:
                return on_spark(sources, begun)
            except (MissingExtra, JavaUnavailable):
                if data.engine is Engine.SPARK or sources.frames:
                    raise
        return _load_here(repository, sources, begun, state, options, embedder, start)

    try:
        done = attempt() if data.is_spent else repeated_if_schema_changed(attempt)
    except (RecordError, ConstraintViolation) as error:
        error.hint = _hint(options)
        raise
    warn_unembedded(done.warnings)
    return done


def _hint(options: LoadOptions) -> str:
    """What can be done about bad records that the options do not say already."""
    skip = "--skip-bad (skip_bad=True) loads the rest"
    if options.bad_records is not None:
        return f"all of them are in {options.bad_records}; {skip}"
    return f"{skip}, --bad-records PATH (bad_records=PATH) writes all of them to a file"


def _load_here(
    repository: Repository,
    sources: Sources,
    begun: Sequence[BegunRows],
    state: Snapshot,
    options: LoadOptions,
    embedder: EmbeddingClient | None,
    start: Callable[[], LocalRunner],
) -> LoadResult:
    in_memory = repository.address.scheme is Scheme.MEMORY
    if in_memory and (options.skip_bad or options.bad_records is not None):
        raise RequestError("bad records are not set apart in a graph in memory; load into one on disk or on S3")
    is_small = _is_small(sources.files, begun, options)
    if in_memory and not is_small:
        limit = options.settings.small_load
        raise ResourceLimit("bytes loaded into a graph in memory", limit, limit + 1)
    if is_small:
        parts = _parts(sources.files, begun, options, state.catalog)
        return load_small(repository, state, parts, options, embedder)

    def engine() -> LoadEngine:
        runner = start()
        return LoadEngine(runner, LocalJoins(), [ChunkedRows(runner, one) for one in begun])

    unlimited = replace(options, settings=replace(options.settings, key_budget=sys.maxsize))
    is_spent = any(one.rows.is_spent for one in begun)
    return job.load(repository, sources.files, unlimited, embedder, engine, repeats=not is_spent)


def _is_small(files: Sequence[SourceFile], begun: Sequence[BegunRows], options: LoadOptions) -> bool:
    """Does everything fit one change in memory? Of what this process holds, no more than that is read."""
    if options.skip_bad or options.bad_records is not None:
        return False
    room = options.settings.small_load - sum(file.unpacked_size for file in files)
    for one in begun:
        if room < 0:
            break
        room = one.fits(room)
    return room >= 0


def _parts(
    files: Sequence[SourceFile], begun: Sequence[BegunRows], options: LoadOptions, catalog: Catalog
) -> Iterator[Part]:
    """The records of files, which threads read, and of what this process holds, which one thread reads."""
    yield from _read(files, options.settings, catalog)
    for one in begun:
        yield one.rows.name, one.blocks()


def _read(files: Sequence[SourceFile], settings: BulkSettings, catalog: Catalog) -> Iterator[Part]:
    """The records of files, in slices; once more if CSV files turn out not to have been cut at ends of records."""
    runner = LocalRunner()

    def read(cuts: Cuts) -> list[tuple[Slice, list[Block]]]:
        slices = slices_of(files, runner.cores, settings, cuts)
        return list(zip(slices, in_shares(lambda part: list(blocks_of(part, catalog)), slices), strict=True))

    likely = likely_cuts(runner, files, settings)
    try:
        found = read(likely)
        is_sure = not any(is_cut(part, likely) and not blocks[-1].is_closed for part, blocks in found if blocks)
    except SourceUnusable:
        if not likely:
            raise
        is_sure = False
    if not is_sure:
        found = read(certain_cuts(runner, files, settings))
    yield from ((part.file.name, blocks) for part, blocks in found)


def _schema_giver(repository: Repository, options: LoadOptions) -> Branch:
    """The branch whose schema the records have to fit: the one that they are loaded into, or else its parent."""
    try:
        return repository.branches.find(options.branch)
    except BranchNotFound:
        if options.fork_from is None:
            raise
    return repository.branches.find(options.fork_from)
