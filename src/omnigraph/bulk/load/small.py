"""Small loads: records that are read, checked and committed in the memory of this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.jobs import job_record, planned_branch
from omnigraph.bulk.load.checking.validation import by_line, located, repeated_key, repeated_keys
from omnigraph.bulk.load.options import LoadOptions, LoadResult, Mode
from omnigraph.bulk.load.sources.external import with_bytes, without_refused
from omnigraph.bulk.load.staging.unreadable import unreadable_group
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    ConstraintViolation,
    KeyConflict,
    RecordError,
    RecordProblem,
    Violation,
)
from omnigraph.formats.jsonl.blocks import Block, TypedRecords
from omnigraph.formats.jsonl.lines import Lines
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import EntityType, NodeType
from omnigraph.manifest.ids import fresh_id
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.recovery.forks import discard_branch
from omnigraph.recovery.jobs import running
from omnigraph.storage.external.sources import BlobSources
from omnigraph.storage.locks import CommitLock
from omnigraph.write.base import capture
from omnigraph.write.delta import TableDelta, last_per_id
from omnigraph.write.evaluator import validate
from omnigraph.write.protocol import Prepared, WriteRequest, commit_write
from omnigraph.write.tally import Tally
from omnigraph.write.vectors import fill_vectors

Part = tuple[str, Iterable[Block]]
"""A source by the name that errors call it, and its records."""


@dataclass(frozen=True, slots=True)
class RecordLines:
    """The lines of the records of a load: the ids of each table, with the source and the line of each."""

    sources: Sequence[str]
    tables: dict[str, tuple[pa.Array, Lines, Lines]] = field(default_factory=dict)

    def places_of(self, table_key: str, row_id: str | None) -> list[tuple[str, int]]:
        """The sources and lines of the records with an id, in order."""
        if table_key not in self.tables or row_id is None:
            return []
        ids, sources, lines = self.tables[table_key]
        at = np.flatnonzero(pc.equal(ids, row_id).to_numpy(zero_copy_only=False))
        return [(self.sources[source], line) for source, line in zip(sources[at], lines[at].tolist(), strict=True)]

    def located(self, error: ConstraintViolation) -> ConstraintViolation:
        """The error with the line of each violation that a record of the load causes, sorted by line."""
        return located(error, lambda violations: [self._located(violation) for violation in violations])

    def _located(self, violation: Violation) -> Violation:
        """A violation with the line of the last record of its row. The row of a cardinality is a node's."""
        places = [] if violation.rule == "card" else self.places_of(violation.table_key, violation.row_id)
        return replace(violation, source=places[-1][0], line=places[-1][1]) if places else violation


@dataclass(frozen=True, slots=True)
class PreparedLoad:
    """Records that were read, and the change that loading them makes. ``unembedded`` are vectors left null."""

    options: LoadOptions
    records: Mapping[str, TypedRecords]
    delta: dict[str, TableDelta]
    lines: RecordLines
    unembedded: tuple[str, ...]
    edges_without_identity: int

    def counts(self, kind: str) -> dict[str, int]:
        """How many records there are of each type of a kind."""
        return {
            found.entity.name: len(found.lines)
            for key, found in sorted(self.records.items())
            if key.startswith(f"{kind}:")
        }


def prepare_load(parts: Iterable[Part], options: LoadOptions, embedder: EmbeddingClient | None) -> PreparedLoad:
    """Read the records of a load; nothing is written."""
    records, sources = _read_records(parts, options.error_limit, options.blobs)
    reading = options.blobs.reading()
    delta: dict[str, TableDelta] = {}
    lines = RecordLines(sources)
    unembedded: set[str] = set()
    anonymous = 0
    for table_key, (found, numbers) in records.items():
        entity, mode = found.entity, options.mode
        missing, count = found.rows["id"].null_count, found.rows.num_rows
        rows = with_bytes(entity, with_fresh_ids(found.rows), reading).combine_chunks()
        lines.tables[table_key] = rows["id"].combine_chunks(), numbers, found.lines
        ids = lines.tables[table_key][0]
        is_distinct = missing == count or pc.count_distinct(ids).as_py() == len(ids)
        if not is_distinct and mode is not Mode.MERGE:
            raise _repeated_ids(entity, lines, options.error_limit)
        if isinstance(entity, NodeType):
            rows, skipped = fill_vectors(entity, rows, dict.fromkeys(entity.embeds, True), embedder)
            unembedded.update(skipped)
        elif mode is Mode.MERGE:
            anonymous += missing
        delta[table_key] = TableDelta(
            table_key,
            rows if is_distinct else last_per_id(rows),
            pa.array([], pa.string()),
            replaces=mode is Mode.OVERWRITE,
            strict=mode is Mode.APPEND and missing < count,
            fresh=mode is not Mode.OVERWRITE and missing == count,
        )
    typed = {key: found for key, (found, _) in records.items()}
    return PreparedLoad(options, typed, delta, lines, tuple(sorted(unembedded)), anonymous)


def _read_records(
    parts: Iterable[Part], limit: int, sources_of_blobs: BlobSources
) -> tuple[dict[str, tuple[TypedRecords, Lines]], list[str]]:
    """All records by table key, each with the number of its source; RecordError lists the first bad ones."""
    found: dict[str, list[tuple[TypedRecords, int]]] = {}
    problems: list[RecordProblem] = []
    sources: list[str] = []
    before: dict[str, int] = {}
    total = 0
    tally = Tally()
    for name, blocks in parts:
        sources.append(name)
        for block in (without_refused(each, sources_of_blobs) for each in blocks):
            earlier = before.get(name, 0)
            total += len(block.unreadable)
            problems += [
                RecordProblem(name, bad.line + earlier, bad.column, bad.reason)
                for bad in block.unreadable[: max(0, limit - len(problems))]
            ]
            for bad in block.unreadable:
                tally.add(unreadable_group(name, replace(bad, line=bad.line + earlier)))
            for key, records in block.records.items():
                located = replace(records, lines=records.lines + earlier)
                found.setdefault(key, []).append((located, len(sources) - 1))
            before[name] = earlier + block.lines
    if total:
        raise RecordError(problems, total, tally.summary())
    return {key: _together(of_type) for key, of_type in found.items()}, sources


def _together(parts: Sequence[tuple[TypedRecords, int]]) -> tuple[TypedRecords, Lines]:
    """The records of one type, in order, and the number of the source of each."""
    rows = pa.concat_tables([records.rows for records, _ in parts])
    lines = np.concatenate([records.lines for records, _ in parts])
    numbers = np.repeat([source for _, source in parts], [len(records.lines) for records, _ in parts])
    return TypedRecords(parts[0][0].entity, rows, lines), numbers


def _repeated_ids(entity: EntityType, lines: RecordLines, limit: int) -> KeyConflict | ConstraintViolation:
    """The error about ids that several records have. In a merge the last record wins, and there is none."""
    table_key = entity.table_key
    ids, _, _ = lines.tables[table_key]
    counts = pc.value_counts(ids)
    repeated = counts.filter(pc.greater(counts.field("counts"), 1))
    listed = [(row["values"], row["counts"]) for row in repeated.slice(0, limit).to_pylist()]
    if not entity.key:
        return KeyConflict(table_key, [row_id for row_id, _ in listed], len(repeated), repeated=True)
    violations = [
        repeated_key(entity, row_id, count, *lines.places_of(table_key, row_id)[1]) for row_id, count in listed
    ]
    return repeated_keys(entity, sorted(violations, key=by_line), len(repeated))


def load_small(
    repository: Repository,
    state: Snapshot,
    parts: Iterable[Part],
    options: LoadOptions,
    embedder: EmbeddingClient | None,
) -> LoadResult:
    """Load records that fit the memory of this process as one commit, into a branch that is forked if it is
    missing and the options name a parent. ``state`` is the one whose schema the records have to fit."""
    prepared = prepare_load(parts, options, embedder)
    if options.fork_from is None:
        return _commit(repository, repository.branches.find(options.branch), prepared, state)
    return _load_into_fork(repository, options.fork_from, prepared, state)


def _commit(
    repository: Repository,
    branch: Branch,
    prepared: PreparedLoad,
    state: Snapshot,
    job_lock: CommitLock | None = None,
) -> LoadResult:
    options = prepared.options
    repeatable = options.mode is not Mode.OVERWRITE
    change = Prepared(prepared.delta, None, repeatable, limit=options.error_limit)
    wanted = options.graph_commit_id
    request = WriteRequest(
        "load", branch, options.actor, options.message, graph_commit_id=wanted, compiled_for=state
    )
    with _locating(prepared.lines):
        commit = commit_write(repository, request, lambda _: change, job_lock).commit
    return LoadResult(
        branch.name,
        options.mode.value,
        prepared.counts("node"),
        prepared.counts("edge"),
        commit,
        warnings=prepared.unembedded,
        edges_without_identity=prepared.edges_without_identity,
    )


def _load_into_fork(repository: Repository, parent: str, prepared: PreparedLoad, state: Snapshot) -> LoadResult:
    """Commit to a branch that is forked if it is missing, once the load is known to fit.

    A branch that another load forked and takes back, because it has failed, is forked again.
    """
    try:
        branch = repository.branches.find(prepared.options.branch)
    except BranchNotFound:
        try:
            return _fork_and_load(repository, parent, prepared, state)
        except BranchExists:
            branch = repository.branches.find(prepared.options.branch)
    try:
        done = _commit(repository, branch, prepared, state)
    except BranchNotFound:
        return _load_into_fork(repository, parent, prepared, state)
    return replace(done, base_branch=parent)


def _fork_and_load(repository: Repository, parent: str, prepared: PreparedLoad, state: Snapshot) -> LoadResult:
    """Make a branch for a load that fits, and commit to it. If this process dies, the branch goes with the job."""
    options = prepared.options
    planned = planned_branch(repository, options.branch, parent)
    with _locating(prepared.lines):
        base = capture(repository, repository.branches.find(parent))
        validate(prepared.delta, base, options.error_limit)
    with running(repository, job_record(fresh_id(), "load", planned, (), options.actor, forks=True)) as job:
        with repository.locks.control() as lock:
            branch = repository.branches.create(planned.name, parent, lock, options.actor, planned.incarnation)
        try:
            done = _commit(repository, branch, prepared, state, job.lock)
        except BaseException:
            discard_branch(repository, branch)
            raise
    return replace(done, base_branch=parent, branch_created=True)


@contextmanager
def _locating(lines: RecordLines) -> Iterator[None]:
    """Add to violations the lines of the load that cause them."""
    try:
        yield
    except ConstraintViolation as error:
        raise lines.located(error) from None
