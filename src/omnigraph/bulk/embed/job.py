"""Filling the vectors of a graph: in this process where few are missing, else by tasks over pieces of the tables.

::

    embed        each piece: rows that want vectors, with them, into data files that keep the row ids    (workers)
    delete       the rows as they were, by deletion vectors                                              (workers)
    commit       the ordinary write protocol, with the files as they are                                 (driver)

That takes as long as the server does, and others write meanwhile. If a table moved, pieces that did not change
stay as they are, and of the others only texts that are new are asked for.
"""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from omnigraph.bulk.deletions import Deletion, delete_replaced
from omnigraph.bulk.destinations import destination
from omnigraph.bulk.embed.requests import (
    WRITER,
    Counts,
    EmbedCounts,
    EmbedRequest,
    EmbedResult,
    EmbedTarget,
    change_of,
    embed_here,
    stored_batches,
)
from omnigraph.bulk.embed.tasks import Embedding, PieceFiles, embed_piece
from omnigraph.bulk.pieces import Piece, open_table, open_tables, pieces_of, require_shared
from omnigraph.bulk.runner import Engine, JobEvent, Runner, RunnerChoice
from omnigraph.bulk.scratch import scratch_folder
from omnigraph.embed.cache import CachingClient
from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.resumable import job_client, resumable
from omnigraph.errors import JavaUnavailable, MissingExtra, NotOnSpark
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.recovery.jobs import JobRecord, running
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.datafiles import StagedFile, column_ids
from omnigraph.storage.staging import Shrunk, stage_changed_files
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base, capture
from omnigraph.write.delta import TableDelta
from omnigraph.write.protocol import Prepared, Stage, StagedTable, commit_write

SMALL: Final = 20_000
"""Up to this many rows that want vectors are filled in this process, if nobody says otherwise."""
_COUNTED: Final = 1_000_000
"""Tables with more rows than this are not read just to find out how few are missing."""
_ROWS_PER_TASK: Final = 20_000


def embed(
    repository: Repository, request: EmbedRequest, client: EmbeddingClient, runners: RunnerChoice
) -> EmbedResult:
    """Fill vectors as one commit, or none if none is missing, where the engine and the size say."""
    repository.require_writable()
    runner = _runner(repository, request, runners)
    if runner is None:
        return _embed_small(repository, request, client, runners)
    record = JobRecord(
        runner.job,
        WRITER,
        request.branch.name,
        request.branch.native,
        tuple(sorted(_locations(repository, request))),
        request.actor,
        dt.datetime.now(dt.UTC),
    )
    with running(repository, record) as job:
        keeping = resumable(client, repository.address, scratch_folder(runner.job)) or client
        preparation = _Preparation(runner, repository, request, keeping)
        written = commit_write(repository, request.write, preparation, job.lock)
        job.committed = written.files
    counts = request.counts(written.result)
    return EmbedResult(request.branch.name, client.model, runner.engine.value, counts, written.commit)


def _embed_small(
    repository: Repository, request: EmbedRequest, client: EmbeddingClient, runners: RunnerChoice
) -> EmbedResult:
    """Fill vectors in this process's memory; the listener hears how many there are."""
    runner, start, rows = runners.local(), time.monotonic(), 0

    def tell(more: int) -> None:
        nonlocal rows
        runner.check()
        rows += more
        if more:
            runner.tell(JobEvent(runner.job, "embedding", 0, 0, rows, 0, time.monotonic() - start))

    return embed_here(repository, request, CachingClient(job_client(client), tell))


def _runner(repository: Repository, request: EmbedRequest, runners: RunnerChoice) -> Runner | None:
    """Who runs the tasks; None if there is so little to do that none are needed."""
    engine = runners.engine
    is_asked = engine is Engine.SPARK or (engine is Engine.AUTO and runners.is_spark_given)
    if engine is Engine.SPARK:
        require_shared(repository.address)
        for target in request.targets:
            if target.node.blobs:
                raise NotOnSpark(f"changing rows of {target.node.name}, which has blobs,", "use engine='local'")
    elif repository.address.scheme is Scheme.MEMORY or (
        not is_asked and _is_small(capture(repository, request.branch), request.targets)
    ):
        return None
    if engine is not Engine.LOCAL:
        try:
            return runners.start_spark()
        except (MissingExtra, JavaUnavailable):
            if is_asked:
                raise
    return runners.local()


def _is_small(base: Base, targets: Iterable[EmbedTarget]) -> bool:
    """Do few rows want a vector? Reading stops as soon as there are too many."""
    sizes = {target.table_key: base.pin(target.table_key).row_count for target in targets}
    if sum(sizes.values()) <= SMALL:
        return True
    if sum(sizes.values()) > _COUNTED:
        return False
    wanting = 0
    for target in targets:
        for batch in stored_batches(base, target.table_key, ["id"], target.where):
            wanting += batch.num_rows
            if wanting > SMALL:
                return False
    return True


def _locations(repository: Repository, request: EmbedRequest) -> set[str]:
    tables = repository.manifest.latest(request.branch.native).tables
    return {tables[target.table_key].location for target in request.targets}


@dataclass(frozen=True, slots=True)
class _Done:
    """A piece that is done, and the fragments it was done from: a digest of each."""

    fragments: Mapping[int, str]
    files: PieceFiles


class _Preparation:
    """The embedded pieces against one state of the branch after another."""

    def __init__(
        self, runner: Runner, repository: Repository, request: EmbedRequest, client: EmbeddingClient
    ) -> None:
        self.runner = runner
        self.repository = repository
        self.request = request
        self.client = client
        self._done: dict[str, list[_Done]] = {}
        self._caching = CachingClient(client, lambda _: None)

    def __call__(self, base: Base) -> Prepared[dict[str, Counts]]:
        graph = base.snapshot
        found: dict[str, Counts] = {}
        delta: dict[str, TableDelta] = {}
        tasks: list[Embedding] = []
        fragments: dict[str, dict[int, str]] = {}
        for target in self.request.targets:
            key = target.table_key
            if target.node.blobs:
                found[key], change = change_of(base, target, self._caching)
                if change is not None:
                    delta[key] = change
                continue
            fragments[key] = _fragments(graph, key)
            tasks += self._tasks(base, graph, target, fragments[key])
        outcomes: list[PieceFiles] = self.runner.run("embedding", embed_piece, tasks)
        for task, files in zip(tasks, outcomes, strict=True):
            own = {number: fragments[task.piece.table_key][number] for number in task.piece.fragments}
            self._done[task.piece.table_key].append(_Done(own, files))
        for key in fragments:
            found[key] = _total(done.files.counts for done in self._done[key])
        stages: dict[str, Stage] = {
            key: partial(self._stage, graph, key)
            for key in fragments
            if any(done.files.matches is not None for done in self._done[key])
        }
        return Prepared(delta, found, repeatable=True, stages=stages)

    def _tasks(
        self, base: Base, graph: Snapshot, target: EmbedTarget, fragments: Mapping[int, str]
    ) -> list[Embedding]:
        """The pieces that are to be done: all, or those whose fragments are not what they were."""
        key = target.table_key
        earlier = self._done.get(key, [])
        kept = [done for done in earlier if done.fragments.items() <= fragments.items()]
        stale = [done for done in earlier if done not in kept]
        self._done[key] = kept
        skipped = {number for done in kept for number in done.fragments}
        place = destination(self.repository, base, self.request.branch, key)
        tasks: list[Embedding] = []
        for piece in pieces_of(graph, key, _ROWS_PER_TASK):
            rest = tuple(number for number in piece.fragments if number not in skipped)
            same = (done for done in stale if not done.fragments.keys().isdisjoint(rest))
            known = tuple(file for done in same for file in done.files.files)
            if rest:
                share = Piece(graph, key, rest, piece.rows)
                tasks.append(Embedding(share, target, place, self.runner.job, self.client, known))
        return tasks

    def _stage(self, graph: Snapshot, key: str, ref: TableRef, operation: str) -> StagedTable:
        """The change of one table: new files, and deletion vectors for the rows they replace."""
        handle = open_tables(graph.address).open(ref)
        done = [one.files for one in self._done[key]]
        staged: list[StagedFile] = [file.staged for one in done for file in one.files]
        matches = [one.matches for one in done if one.matches is not None]
        deletions = [Deletion(graph.address, ref, match) for match in matches]
        shrunk = Shrunk.together(self.runner.run("replacing rows", delete_replaced, deletions))
        ids, version = column_ids(handle.lance_schema), str(handle.data_storage_version)
        new = [file.fragment(ids, version) for file in staged]
        change = stage_changed_files(handle, ref.location, ref.branch, shrunk, new, operation)
        return StagedTable(change, graph.rows(key), frozenset(file.name for file in staged))


def _fragments(graph: Snapshot, key: str) -> dict[int, str]:
    """The fragments of a table, each with a digest of everything that makes it what it is."""
    if not graph.rows(key):
        return {}
    return {
        fragment.fragment_id: sha256(json.dumps(fragment.metadata.to_json()).encode()).hexdigest()
        for fragment in open_table(graph, key).get_fragments()
    }


def _total(counts: Iterable[Counts]) -> Counts:
    total: dict[str, EmbedCounts] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, EmbedCounts()) + count
    return total
