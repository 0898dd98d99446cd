"""The tasks of a large merge: one bucket of one table, merged as a small merge is, with the outcome staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from ulid import ULID

from omnigraph.bulk.merge.buckets import RowRange, touched_in
from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import TaskResult
from omnigraph.errors import Conflict, Violation
from omnigraph.history.diff import Op, TableDiff, diff_table
from omnigraph.history.merging.sides import LISTED, Decisions, Three
from omnigraph.history.merging.threeway import IMAGES, merge_table
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.files.datafiles import Destination, StagedFile, write_file
from omnigraph.storage.objects import open_objects
from omnigraph.write.base import with_blobs
from omnigraph.write.delta import TableDelta
from omnigraph.write.rules import Violations, check_rows

_DELETED: Final = pa.schema([pa.field("id", pa.string())])


@dataclass(frozen=True, slots=True)
class MergedTable:
    """What all tasks of one table have to know."""

    job: str
    table_key: str
    sides: Three
    decisions: Decisions
    target: Destination
    buckets: int
    rows_per_file: int

    @property
    def images(self) -> int:
        """Of how many conflicts a task returns the rows: with those of all buckets, surely of the first ones."""
        return min(IMAGES, 2 * IMAGES // self.buckets + 64)


@dataclass(frozen=True, slots=True)
class MergeTask:
    """Merges the entities of one bucket."""

    table: MergedTable
    rows: tuple[RowRange, ...]


@dataclass(frozen=True, slots=True)
class MergedFile:
    """A staged file of merged rows. The first ``replacing`` of them take the place of rows of the target."""

    staged: StagedFile
    replacing: int


@dataclass(frozen=True, slots=True)
class DeletedIds:
    """The ids of entities that the merge deletes, in an object of the job."""

    key: str
    rows: int


@dataclass(frozen=True, slots=True)
class MergedBucket:
    """What became of one bucket: the source's changes by operation, staged files, conflicts, broken rules."""

    counts: Mapping[str, int]
    files: tuple[MergedFile, ...] = ()
    deleted: DeletedIds | None = None
    conflicts: tuple[Conflict, ...] = ()
    decided: frozenset[tuple[str, str]] = frozenset()
    violations: tuple[Violation, ...] = ()
    violations_total: int = 0
    has_change: bool = False
    """Does the target change, or would it if there were no conflicts?"""


@dataclass(frozen=True, slots=True)
class MergedRows:
    """The change of the target in one bucket. The rows that replace others come first."""

    change: TableDelta
    replacing: int = 0


def merge_bucket(task: MergeTask) -> TaskResult[MergedBucket]:
    """Compare and merge the entities of one bucket, and stage the rows that the target gets."""
    table, key = task.table, task.table.table_key
    sides, decisions = table.sides, table.decisions
    tables = open_tables(sides.target.address)
    touched = touched_in(table.target.address, task.rows)
    theirs = diff_table(tables, sides.base, sides.source, key, touched)
    ours = diff_table(tables, sides.base, sides.target, key, touched)
    merged = merge_table(
        theirs, ours, decisions.choices, decisions.resolve, strict=decisions.strict, images=table.images
    )
    done = MergedBucket(theirs.counts(), conflicts=merged.conflicts, decided=merged.decided)
    done = replace(done, has_change=merged.delta is not None)
    if merged.delta is None or merged.conflicts:
        return TaskResult(done, rows=len(theirs.ids))
    rows = _replacing_first(merged.delta, theirs, ours)
    broken = Violations(LISTED)
    check_rows(sides.target.entity(key), rows.change.upserts, broken)
    done = replace(
        done,
        files=_staged(table, rows),
        deleted=_written(table, rows.change.deletes),
        violations=tuple(broken.listed),
        violations_total=broken.total,
    )
    return TaskResult(done, rows=len(theirs.ids), bytes=rows.change.upserts.nbytes)


def _replacing_first(change: TableDelta, theirs: TableDiff, ours: TableDiff) -> MergedRows:
    """The change, with the rows first whose entities the target has: those it has changed and not deleted, and
    those that only the source has changed and not inserted."""
    is_ours = _among(change.ids, ours.ids)
    kept = _among(change.ids, ours.ids.filter(pc.not_equal(ours.ops, Op.DELETE.value)))
    inserted = _among(change.ids, theirs.ids.filter(pc.equal(theirs.ops, Op.INSERT.value)))
    exists = np.where(is_ours, kept, ~inserted)
    order = pa.array(np.argsort(~exists, kind="stable"))
    return MergedRows(replace(change, upserts=change.upserts.take(order)), int(exists.sum()))


def _among(ids: pa.Array, known: pa.Array) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = pc.is_in(ids, value_set=known).to_numpy(zero_copy_only=False)
    return found


def _staged(table: MergedTable, rows: MergedRows) -> tuple[MergedFile, ...]:
    upserts = with_blobs(table.sides.target.entity(table.table_key), rows.change.upserts)
    files = []
    for start in range(0, upserts.num_rows, table.rows_per_file):
        part = upserts.slice(start, table.rows_per_file)
        name, size = write_file(table.target, table.job, part)
        staged = StagedFile(table.table_key, name, part.num_rows, size)
        files.append(MergedFile(staged, min(max(rows.replacing - start, 0), part.num_rows)))
    return tuple(files)


def _written(table: MergedTable, ids: pa.Array) -> DeletedIds | None:
    """Write the ids of deleted entities, for later steps of the job."""
    if not len(ids):
        return None
    key = f"{layout.job_folder(table.job)}/deleted-{ULID()}.arrow"
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, _DELETED) as writer:
        writer.write_table(pa.table([ids], schema=_DELETED))
    open_objects(table.target.address).hint(key, sink.getvalue().to_pybytes())
    return DeletedIds(key, len(ids))


def read_deleted(address: Address, parts: Sequence[DeletedIds]) -> pa.Array:
    """The ids of deleted entities that tasks have written."""
    tables = [_DELETED.empty_table()]
    for part in parts:
        found = open_objects(address).get(part.key)
        assert found is not None, part.key  # noqa: S101  written by an earlier step of this job
        tables.append(pa.ipc.open_file(found.content).read_all())
    return pa.concat_tables(tables)["id"].combine_chunks()
