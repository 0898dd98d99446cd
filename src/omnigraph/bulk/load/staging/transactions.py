"""The transactions of a load: the staged files of each table as one change for the write protocol."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.schema import LanceSchema

from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.load.staging.merge import Matches
from omnigraph.bulk.matches import DeletionTask, MatchFile, delete_replaced, read_matches
from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import StagedFile, column_ids, read_file, row_id_text, write_file
from omnigraph.storage.stage.changes import (
    Shrunk,
    stage_appended_files,
    stage_changed_files,
    stage_replacing_files,
)
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import with_blobs
from omnigraph.write.protocol import Stage, StagedTable


@dataclass(frozen=True, slots=True)
class _RewriteTask:
    """Writes a staged file again, because some of its rows are excluded or replace others."""

    load: StagedLoad
    job: str
    file: StagedFile
    matches: tuple[MatchFile, ...]


def table_stages(runner: Runner, load: StagedLoad, replaced: Matches) -> Mapping[str, Stage]:
    """A function for each table of a load that stages its change."""
    return {key: partial(_stage_table, runner, load, replaced, key) for key in load.files}


def _stage_table(
    runner: Runner, load: StagedLoad, replaced: Matches, table_key: str, ref: TableRef, operation: str
) -> StagedTable:
    handle = open_tables(load.snapshot.address).open(ref)
    matches = replaced.get(table_key, ())
    files = _final_files(runner, load, matches, table_key)
    names = frozenset(file.name for file in files)
    version = load.targets[table_key].version
    rows = sum(file.rows for file in files)
    if load.mode is Mode.OVERWRITE:
        schema = load.targets[table_key].schema
        fresh = column_ids(LanceSchema.from_pyarrow(schema))
        fragments = [file.fragment(fresh, version) for file in files]
        staged = stage_replacing_files(handle, ref.location, ref.branch, schema, fragments, operation)
        return StagedTable(staged, rows, names)
    ids = column_ids(handle.lance_schema)
    fragments = [file.fragment(ids, version) for file in files]
    committed = load.snapshot.rows(table_key)
    if not matches:
        staged = stage_appended_files(handle, ref.location, ref.branch, fragments, operation)
        return StagedTable(staged, committed + rows, names)
    deletions = [DeletionTask(load.snapshot.address, ref, match) for match in matches]
    shrunk = Shrunk.together(runner.run("deleting replaced rows", delete_replaced, deletions))
    staged = stage_changed_files(handle, ref.location, ref.branch, shrunk, fragments, operation)
    return StagedTable(staged, committed + rows - sum(file.rows for file in matches), names)


def _final_files(
    runner: Runner, load: StagedLoad, matches: tuple[MatchFile, ...], table_key: str
) -> list[StagedFile]:
    """The files of a table to commit. Those with rows that are excluded or replace others are written again."""
    files = load.files[table_key]
    concerned = {name for match in matches for name in match.files} | set(load.excluded.masks)
    rewrites = [
        _RewriteTask(load, runner.job, file, tuple(match for match in matches if file.name in match.files))
        for file in files
        if file.name in concerned
    ]
    written = dict(
        zip((r.file.name for r in rewrites), runner.run("merging rows", _rewrite, rewrites), strict=True)
    )
    final = [written.get(file.name, file) for file in files]
    return [file for file in final if file is not None]


def _rewrite(task: _RewriteTask) -> TaskResult[StagedFile | None]:
    """Write the rows of a file that are loaded: first those that replace others, under the row ids of those."""
    load, file = task.load, task.file
    target = load.targets[file.table_key]
    rows = _with_blobs(task) if target.has_blobs else read_file(target, file.name)
    excluded = load.excluded.mask(file)
    matches = read_matches(load.snapshot.address, task.matches)
    of_file = matches.filter(pc.equal(matches["file"], file.name)).sort_by("row")
    replacing = of_file["row"].to_numpy()
    is_new = np.ones(file.rows, bool) if excluded is None else ~excluded
    is_new[replacing] = False
    order = np.concatenate([replacing, np.flatnonzero(is_new)])
    if not len(order):
        return TaskResult(None)
    name, size = write_file(target, task.job, rows.take(pa.array(order)))
    row_ids = row_id_text(of_file["row_id"].to_pylist()) if len(replacing) else None
    return TaskResult(StagedFile(file.table_key, name, len(order), size, row_ids=row_ids), rows=len(order))


def _with_blobs(task: _RewriteTask) -> pa.Table:
    """The rows of a staged file with blobs."""
    load, file = task.load, task.file
    target, tables = load.targets[file.table_key], open_tables(load.snapshot.address)
    fragment = file.fragment(column_ids(LanceSchema.from_pyarrow(target.schema)), target.version)
    location = layout.job_table(task.job, uuid.uuid4().hex)
    rows = tables.staged_rows(target.folder, fragment, target.schema, location)
    return with_blobs(load.snapshot.entity(file.table_key), rows)
