"""Filling the vectors of a graph: in this process if few are missing, else by tasks over pieces of the tables.

::

    embed        each piece: rows without vectors, with them, into data files that keep the row ids      (workers)
    delete       the rows that these replace, by deletion vectors                                        (workers)
    commit       the ordinary write protocol, with the staged files                                      (driver)

It takes as long as the embedding server needs, and others write meanwhile. If a table moves, pieces that did not
change stay as they are, and for the others only new texts are sent to the server.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Final

from omnigraph.bulk.embed.requests import (
    WRITER,
    Counts,
    EmbedCounts,
    EmbedRequest,
    EmbedResult,
    EmbedTarget,
    change_of,
    embed_in_process,
    stored_batches,
)
from omnigraph.bulk.embed.tasks import EmbeddedPiece, EmbedTask, embed_piece
from omnigraph.bulk.jobs import destination, job_record
from omnigraph.bulk.matches import DeletionTask, delete_replaced
from omnigraph.bulk.pieces import Piece, open_table, open_tables, pieces_of, require_shared
from omnigraph.bulk.runner import Engine, JobEvent, Runner, RunnerChoice
from omnigraph.embed.cache import CachingClient
from omnigraph.embed.client import EmbeddingClient
from omnigraph.embed.resumable import job_client, resumable
from omnigraph.errors import NotOnSpark
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import TablePin
from omnigraph.recovery.jobs import running
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.datafiles import StagedFile, column_ids
from omnigraph.storage.stage.changes import Shrunk, stage_changed_files
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base, capture
from omnigraph.write.delta import TableDelta
from omnigraph.write.protocol import Prepared, Stage, StagedTable, commit_write

_MAX_COUNTED_ROWS: Final = 1_000_000
"""Tables with more rows are not read to count missing vectors."""


def embed(
    repository: Repository, request: EmbedRequest, client: EmbeddingClient, runners: RunnerChoice
) -> EmbedResult:
    """Fill vectors as one commit, or none if no vector is missing."""
    repository.require_writable()
    runner = _runner(repository, request, runners)
    if runner is None:
        return _embed_small(repository, request, client, runners)
    record = job_record(runner.job, WRITER, request.branch, _pins(repository, request), request.actor)
    with running(repository, record) as job:
        resuming = resumable(client, repository.address, layout.job_folder(runner.job)) or client
        preparer = _EmbedPreparer(runner, repository, request, resuming)
        written = commit_write(repository, request.write, preparer, job.lock)
        job.committed = written.files
    counts = request.counts(written.result)
    return EmbedResult(request.branch.name, client.model, runner.engine.value, counts, written.commit)


def _embed_small(
    repository: Repository, request: EmbedRequest, client: EmbeddingClient, runners: RunnerChoice
) -> EmbedResult:
    """Fill vectors in the memory of this process, and report the progress to the listener."""
    runner, start, rows = runners.local(), time.monotonic(), 0

    def report(more: int) -> None:
        nonlocal rows
        runner.require_active()
        rows += more
        if more:
            runner.report(JobEvent(runner.job, "embedding", 0, 0, rows, 0, time.monotonic() - start))

    return embed_in_process(repository, request, CachingClient(job_client(client), report))


def _runner(repository: Repository, request: EmbedRequest, runners: RunnerChoice) -> Runner | None:
    """The runner of the tasks; None if so few vectors are missing that this process fills them without tasks."""
    if runners.engine is Engine.SPARK:
        require_shared(repository.address)
        for target in request.targets:
            if target.node.blobs:
                raise NotOnSpark(f"changing rows of {target.node.name}, which has blobs,", "use engine='local'")
    elif repository.address.scheme is Scheme.MEMORY or (
        not runners.needs_spark and _is_small(capture(repository, request.branch), request)
    ):
        return None
    return runners.start()


def _is_small(base: Base, request: EmbedRequest) -> bool:
    """Do few rows lack a vector? Reading stops as soon as there are too many."""
    limit = request.settings.small_embedding
    rows = sum(base.pin(target.table_key).row_count for target in request.targets)
    if rows <= limit:
        return True
    if rows > _MAX_COUNTED_ROWS:
        return False
    missing = 0
    for target in request.targets:
        for batch in stored_batches(base, target.table_key, ["id"], target.where):
            missing += batch.num_rows
            if missing > limit:
                return False
    return True


def _pins(repository: Repository, request: EmbedRequest) -> list[TablePin]:
    tables = repository.manifest.latest(request.branch.native).tables
    return [tables[target.table_key] for target in request.targets]


@dataclass(frozen=True, slots=True)
class _FinishedPiece:
    """A piece whose vectors are computed, and a digest of each fragment that it was computed from."""

    fragments: Mapping[int, str]
    files: EmbeddedPiece


class _EmbedPreparer:
    """Prepares the commit of the filled vectors. Pieces are computed again only if their fragments changed."""

    def __init__(
        self, runner: Runner, repository: Repository, request: EmbedRequest, client: EmbeddingClient
    ) -> None:
        self.runner = runner
        self.repository = repository
        self.request = request
        self.client = client
        self._finished: dict[str, list[_FinishedPiece]] = {}
        self._caching = CachingClient(client, lambda _: None)

    def __call__(self, base: Base) -> Prepared[dict[str, Counts]]:
        snapshot = base.snapshot
        found: dict[str, Counts] = {}
        delta: dict[str, TableDelta] = {}
        tasks: list[EmbedTask] = []
        fragments: dict[str, dict[int, str]] = {}
        for target in self.request.targets:
            key = target.table_key
            if target.node.blobs:
                found[key], change = change_of(base, target, self._caching)
                if change is not None:
                    delta[key] = change
                continue
            fragments[key] = _fragments(snapshot, key)
            tasks += self._tasks(base, target, fragments[key])
        for task, files in zip(tasks, self.runner.run("embedding", embed_piece, tasks), strict=True):
            own = {number: fragments[task.piece.table_key][number] for number in task.piece.fragments}
            self._finished[task.piece.table_key].append(_FinishedPiece(own, files))
        for key in fragments:
            found[key] = _total(piece.files.counts for piece in self._finished[key])
        stages: dict[str, Stage] = {
            key: partial(self._stage, snapshot, key)
            for key in fragments
            if any(piece.files.matches is not None for piece in self._finished[key])
        }
        return Prepared(delta, found, repeatable=True, stages=stages)

    def _tasks(self, base: Base, target: EmbedTarget, fragments: Mapping[int, str]) -> list[EmbedTask]:
        """Tasks for all fragments but those of finished pieces that have not changed."""
        key, snapshot = target.table_key, base.snapshot
        earlier = self._finished.get(key, [])
        kept = [piece for piece in earlier if piece.fragments.items() <= fragments.items()]
        stale = [piece for piece in earlier if piece not in kept]
        self._finished[key] = kept
        skipped = {number for piece in kept for number in piece.fragments}
        place = destination(base, self.request.branch, key)
        tasks: list[EmbedTask] = []
        for piece in pieces_of(snapshot, key, self.request.settings.embedded_rows_per_task):
            rest = tuple(number for number in piece.fragments if number not in skipped)
            changed = (old for old in stale if not old.fragments.keys().isdisjoint(rest))
            known = tuple(file for old in changed for file in old.files.files)
            if rest:
                share = Piece(snapshot, key, rest, piece.rows)
                tasks.append(EmbedTask(share, target, place, self.runner.job, self.client, known))
        return tasks

    def _stage(self, snapshot: Snapshot, key: str, ref: TableRef, operation: str) -> StagedTable:
        """Stage the change of one table: new files, and deletion vectors for the rows they replace."""
        handle = open_tables(snapshot.address).open(ref)
        pieces = [piece.files for piece in self._finished[key]]
        staged: list[StagedFile] = [file.staged for piece in pieces for file in piece.files]
        matches = [piece.matches for piece in pieces if piece.matches is not None]
        deletions = [DeletionTask(snapshot.address, ref, match) for match in matches]
        shrunk = Shrunk.together(self.runner.run("replacing rows", delete_replaced, deletions))
        ids, version = column_ids(handle.lance_schema), str(handle.data_storage_version)
        new = [file.fragment(ids, version) for file in staged]
        change = stage_changed_files(handle, ref.location, ref.branch, shrunk, new, operation)
        return StagedTable(change, snapshot.rows(key), frozenset(file.name for file in staged))


def _fragments(snapshot: Snapshot, key: str) -> dict[int, str]:
    """The fragments of a table, each with a digest of its metadata."""
    if not snapshot.rows(key):
        return {}
    return {
        fragment.fragment_id: sha256(json.dumps(fragment.metadata.to_json()).encode()).hexdigest()
        for fragment in open_table(snapshot, key).get_fragments()
    }


def _total(counts: Iterable[Counts]) -> Counts:
    total: dict[str, EmbedCounts] = {}
    for one in counts:
        for name, count in one.items():
            total[name] = total.get(name, EmbedCounts()) + count
    return total
