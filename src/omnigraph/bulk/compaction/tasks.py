"""The tasks of `optimize`: one group of files written again, or one segment of an index built."""

from __future__ import annotations

from dataclasses import dataclass

from lance import LanceDataset

from omnigraph.bulk.pieces import open_tables
from omnigraph.bulk.runner import TaskResult
from omnigraph.errors import JobFailed
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.compacting import FileGroup, Rewritten, discard_rewritten, rewrite
from omnigraph.storage.indexing import BuiltSegment, SegmentBuild, build_segments
from omnigraph.storage.tables import TableRef, Tables


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Writes a group of fragments of one version of a table again."""

    job: str
    address: Address
    ref: TableRef
    group: FileGroup


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """Builds a segment of an index of one version of a table."""

    address: Address
    ref: TableRef
    build: SegmentBuild


def rewrite_group(task: RewriteTask) -> TaskResult[Rewritten]:
    """Write a group of fragments again; no table refers to the files yet. JobFailed if the job is over by then."""
    tables = open_tables(task.address)
    fragments = task.group.fragments
    tables.verify_fragments(task.ref, [fragment.id for fragment in fragments])
    done = rewrite(_own(tables, task.ref), task.group)
    folder = f"{layout.native_prefix(task.ref.location, task.ref.branch)}/data"
    for name in done.files:
        tables.objects.put(layout.job_note(task.job, f"{folder}/{name}"), b"")
    if not tables.objects.has(layout.job_record(task.job)):
        discard_rewritten(tables.objects, task.ref, [done])
        tables.objects.delete_prefix(layout.job_folder(task.job))
        raise JobFailed(task.job, "writing files again", "the job was over before this task was")
    return TaskResult(done, sum(fragment.num_rows or 0 for fragment in fragments))


def build_segment(task: SegmentTask) -> TaskResult[BuiltSegment]:
    """Build a segment; no table refers to it yet."""
    tables = open_tables(task.address)
    tables.verify_fragments(task.ref, task.build.fragments)
    (built,) = build_segments(_own(tables, task.ref), [task.build])
    return TaskResult(built, task.build.rows)


def _own(tables: Tables, ref: TableRef) -> LanceDataset:
    """A handle that no other thread uses."""
    handle = tables.dataset(ref.location, ref.branch, ref.version)
    if handle is None:
        raise tables.missing(ref)
    return handle
