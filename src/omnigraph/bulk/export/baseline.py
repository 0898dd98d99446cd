"""Baselines: one state of a branch as a file of records, and the cursor from which the changes after it follow."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from ulid import ULID

from omnigraph.bulk.export.job import ExportRequest, ExportResult, export, refuse_inside
from omnigraph.bulk.export.targets import parse_target
from omnigraph.errors import ExportRefused
from omnigraph.failpoints import hit
from omnigraph.storage.files.durability import sync
from omnigraph.storage.unavailable import translated

_PARTIAL: Final = ".partial"


@dataclass(frozen=True, slots=True)
class Baseline:
    """A state that was written, and the cursor behind it. ``target`` is None for a stream."""

    target: str | None
    branch: str
    snapshot_commit_id: str | None
    resume_cursor: str
    total_entities: int
    bytes: int

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "branch": self.branch,
            "snapshot_commit_id": self.snapshot_commit_id,
            "resume_cursor": self.resume_cursor,
            "total_entities": self.total_entities,
            "bytes": self.bytes,
        }


def write_baseline(request: ExportRequest, location: str | os.PathLike[str] | BinaryIO, cursor: str) -> Baseline:
    """Write the tables of a snapshot to a local file or a stream, and give the cursor behind it.

    The cursor is given when the file has its name and survives a power cut. A file that is not finished has
    another name, and is removed.
    """
    if not isinstance(location, str | os.PathLike):
        return _baseline(None, export(request, location), cursor)
    target = parse_target(location, request.format)
    if target.is_remote or target.is_directory:
        raise ExportRefused(f"to {target}", "a baseline is one local file")
    refuse_inside(request.snapshot, target)
    target.prepare(force=request.force)
    final = Path(target.root)
    partial = final.with_name(f".{final.name}.{ULID()}{_PARTIAL}")
    with translated(str(target)):
        try:
            with partial.open("xb") as file:
                done = export(request, file)
                file.flush()
                os.fsync(file.fileno())
            hit("baseline.before_rename")
            partial.replace(final)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        sync(final.parent)
    return _baseline(str(target), done, cursor)


def _baseline(target: str | None, done: ExportResult, cursor: str) -> Baseline:
    return Baseline(target, done.branch, done.graph_commit_id, cursor, done.total_entities, done.bytes)
