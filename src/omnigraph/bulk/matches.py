"""Matches: pairs of a staged row and the committed row with the same id, which it replaces.

They take too much memory to travel with tasks, so they are files in the job's folder, which are removed with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import TaskResult
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.objects import open_objects
from omnigraph.storage.stage.changes import Shrunk, delete_rows
from omnigraph.storage.tables import TableRef

MATCHES: Final = pa.schema(
    [
        pa.field("file", pa.string()),
        pa.field("row", pa.int64()),
        pa.field("row_id", pa.uint64()),
        pa.field("row_address", pa.uint64()),
    ]
)


@dataclass(frozen=True, slots=True)
class MatchFile:
    """A file of matches: the staged files and the fragments of the table that occur in it."""

    key: str
    files: frozenset[str]
    fragments: frozenset[int]
    rows: int


def write_matches(address: Address, job: str, name: str, matches: pa.Table) -> MatchFile:
    """Write matches to the job's folder, for a later step of the job."""
    key = f"{layout.job_folder(job)}/{name}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, MATCHES) as writer:
        writer.write_table(matches.cast(MATCHES))
    open_objects(address).put(key, sink.getvalue().to_pybytes())
    fragments = np.unique(matches["row_address"].to_numpy() >> np.uint64(32))
    files = frozenset(pc.unique(matches["file"]).to_pylist())
    return MatchFile(key, files, frozenset(fragments.tolist()), matches.num_rows)


def read_matches(address: Address, files: Iterable[MatchFile]) -> pa.Table:
    """The matches of some files."""
    objects = open_objects(address)
    tables = [MATCHES.empty_table()]
    for file in files:
        found = objects.get(file.key)
        assert found is not None, file.key  # noqa: S101  written by an earlier step of this job
        tables.append(pa.ipc.open_file(found.content).read_all())
    return pa.concat_tables(tables)


@dataclass(frozen=True, slots=True)
class DeletionTask:
    """Deletes the committed rows of one file of matches. All matches of a fragment are in one file."""

    address: Address
    ref: TableRef
    matches: MatchFile


def delete_replaced(task: DeletionTask) -> TaskResult[Shrunk]:
    """Write the deletion vectors of replaced rows: the fragments that vanish, and those that shrink."""
    handle = open_tables(task.address).open(task.ref)
    matches = read_matches(task.address, [task.matches])
    return TaskResult(delete_rows(handle, matches["row_address"].combine_chunks()), rows=matches.num_rows)
