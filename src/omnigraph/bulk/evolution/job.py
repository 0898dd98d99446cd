"""Changes of the schema with columns to compute: small tables in the calling thread, large ones by tasks.

::

    check        do the rows keep the new rules?                                    (driver)
    compute      new columns of each fragment, in files of their own                (workers)
    commit       the ordinary write protocol, with the staged files                 (driver)

The files of the other columns stay as they are. No table refers to the new files before the commit; they are
removed if there is none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from hashlib import sha256
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from lance import LanceDataset

from omnigraph.bulk.evolution.tasks import ColumnTask, write_columns
from omnigraph.bulk.jobs import LateJob
from omnigraph.bulk.pieces import require_shared
from omnigraph.bulk.runner import Engine, Runner, RunnerChoice
from omnigraph.failpoints import hit
from omnigraph.manifest.repository import Repository
from omnigraph.settings import BulkSettings
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.datafiles import Destination
from omnigraph.storage.stage.columns import (
    Column,
    ColumnFile,
    ComputedColumn,
    changed_schema,
    file_schema,
    stage_column_files,
    written_where_needed,
)
from omnigraph.storage.tables import TableRef
from omnigraph.write.evolution.apply import WRITER, SchemaResult, apply_schema
from omnigraph.write.evolution.columns import change_in_process
from omnigraph.write.evolution.plan import SchemaRequest
from omnigraph.write.protocol import StagedTable

_TEXT_BYTES: Final = 32
_LIST_BYTES: Final = 128


def apply_large_schema(
    repository: Repository, request: SchemaRequest, runners: RunnerChoice, settings: BulkSettings
) -> SchemaResult:
    """Accept a schema as one commit; columns of large tables are computed by tasks."""
    if runners.engine is Engine.SPARK:
        require_shared(repository.address)
    with SchemaJob(repository, request, runners, settings) as job:
        return apply_schema(repository, replace(request, change_columns=job, job_lock=job))


class SchemaJob:
    """Computes the columns of one change of the schema, table by table, each in the way that suits its size.

    It is the ``change_columns`` of a request, and its ``job_lock``. At its end it removes the files that its tasks
    have written and no table refers to.
    """

    def __init__(
        self, repository: Repository, request: SchemaRequest, runners: RunnerChoice, settings: BulkSettings
    ) -> None:
        self._repository = repository
        self._runners = runners
        self._settings = settings
        self._job = LateJob(repository, runners, WRITER, request.branch, request.actor)
        self._files: dict[str, frozenset[str]] = {}
        self._known: dict[str, ColumnFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._job.running is not None and error is None:
            self._job.running.committed = frozenset().union(*self._files.values())
        self._job.end(kind, error, trace)

    def verify(self) -> None:
        """Raise LockLost if the job has lost its lock: the process that took it may have removed staged files."""
        self._job.verify()

    def __call__(
        self, repository: Repository, columns: tuple[Column, ...], rows: int, ref: TableRef, operation_id: str
    ) -> StagedTable:
        """Stage the columns that a table is to have."""
        self._files.pop(ref.location, None)
        handle = repository.tables.open(ref)
        columns = tuple(written_where_needed(handle, columns))
        computed = tuple(column for column in columns if isinstance(column, ComputedColumn))
        if not rows or not computed or self._is_small(handle, computed, rows):
            self._runners.local().require_active()
            return change_in_process(repository, columns, rows, ref, operation_id)
        runner, _ = self._job.begin()
        schema = changed_schema(handle, columns, operation_id)
        files = self._computed(runner, handle, ref, computed)
        hit("schema.after_columns")
        staged = stage_column_files(handle, ref.location, ref.branch, schema, computed, files, operation_id)
        names = frozenset(file.staged.name for file in files)
        self._files[ref.location] = names
        return StagedTable(staged, rows, names)

    def _is_small(self, handle: LanceDataset, columns: Sequence[ComputedColumn], rows: int) -> bool:
        if self._repository.address.scheme is Scheme.MEMORY:
            return True
        needs = {name for column in columns for name in column.needs}
        read = sum(_width(handle.schema.field(name).type) for name in needs)
        size = rows * (read + sum(_width(column.field.type) for column in columns))
        return not self._runners.needs_spark and size <= self._settings.small_rewrite

    def _computed(
        self, runner: Runner, handle: LanceDataset, ref: TableRef, columns: tuple[ComputedColumn, ...]
    ) -> list[ColumnFile]:
        """A file with the computed columns of each fragment.

        If the table has moved since an earlier attempt, only fragments with other files are computed.
        """
        digests = _digests(handle)
        version = str(handle.data_storage_version)
        address = self._repository.address
        folder = f"{address.lance_root}/{layout.native_prefix(ref.location, ref.branch)}"
        target = Destination(ref.location, address, folder, file_schema(columns), version)
        missing = [number for number, digest in digests.items() if digest not in self._known]
        tasks = [
            ColumnTask(runner.job, ref, fragments, columns, target)
            for fragments in _grouped(handle, missing, self._settings.rows_per_file)
        ]
        for files in runner.run("computing columns", write_columns, tasks):
            self._known.update({digests[file.fragment]: file for file in files})
        return [self._known[digest] for digest in digests.values()]


def _grouped(handle: LanceDataset, fragments: Sequence[int], rows: int) -> Iterator[tuple[int, ...]]:
    """The fragments in groups of about so many rows."""
    group: list[int] = []
    count = 0
    sizes = {fragment.fragment_id: fragment.metadata.physical_rows for fragment in handle.get_fragments()}
    for number in fragments:
        if group and count + sizes[number] > rows:
            yield tuple(group)
            group, count = [], 0
        group.append(number)
        count += sizes[number]
    if group:
        yield tuple(group)


def _digests(handle: LanceDataset) -> dict[int, str]:
    """What the computed columns of each fragment depend on: its files, and the columns that the table has.

    Which of its rows are deleted makes no difference.
    """
    files = {one.fragment_id: json.dumps(one.metadata.to_json()["files"]) for one in handle.get_fragments()}
    return {
        number: sha256(f"{handle.lance_schema}{number}{listed}".encode()).hexdigest()
        for number, listed in files.items()
    }


def _width(kind: pa.DataType) -> int:
    """About how many bytes a value takes in memory."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size * _width(kind.value_type))
    if pa.types.is_primitive(kind):
        return max(1, int(kind.bit_width) // 8)
    return _LIST_BYTES if pa.types.is_list(kind) else _TEXT_BYTES
