"""The tasks of a change of the schema: the computed columns of some fragments, each in a file of its own."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import TaskResult
from omnigraph.storage.files.datafiles import Destination, StagedFile, write_file
from omnigraph.storage.stage.columns import ColumnFile, ComputedColumn, compute_columns
from omnigraph.storage.tables import TableRef


@dataclass(frozen=True, slots=True)
class ColumnTask:
    """Computes columns of some fragments of one version of a table."""

    job: str
    ref: TableRef
    fragments: tuple[int, ...]
    columns: tuple[ComputedColumn, ...]
    target: Destination


def write_columns(task: ColumnTask) -> TaskResult[tuple[ColumnFile, ...]]:
    """Write a file with the computed columns of each fragment; no table refers to it yet."""
    tables = open_tables(task.target.address)
    tables.verify_fragments(task.ref, task.fragments)
    handle = tables.open(task.ref)
    files: list[ColumnFile] = []
    size = 0
    for fragment in task.fragments:
        values = compute_columns(handle, fragment, task.columns)
        name, written = write_file(task.target, task.job, values)
        files.append(ColumnFile(fragment, StagedFile(task.target.table_key, name, values.num_rows, written)))
        size += values.nbytes
    return TaskResult(tuple(files), sum(file.staged.rows for file in files), size)
