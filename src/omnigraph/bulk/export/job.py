"""Exports: one snapshot of a graph as records that a load takes back."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, BinaryIO, Final

from omnigraph.bulk.export.parts import Part, PartSource, PartTask, ordered_parts, stored_parts, write_part
from omnigraph.bulk.export.targets import MARKER, RUNS, Target, check_arrived, parse_target
from omnigraph.bulk.pieces import open_table, require_shared
from omnigraph.bulk.runner import Engine, JobEvent, Runner, RunnerChoice
from omnigraph.errors import ExportRefused, JavaUnavailable
from omnigraph.formats.encoding import json_lines
from omnigraph.formats.format import Format
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import BulkSettings
from omnigraph.storage.address import Scheme

_REPORT_SECONDS: Final = 0.2


@dataclass(frozen=True, slots=True)
class ExportResult:
    """The files that an export wrote, and the snapshot they are of. ``target`` is None for a stream."""

    target: str | None
    format: str
    engine: str
    ordered: bool
    branch: str
    graph_commit_id: str | None
    manifest_version: int
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    files: tuple[str, ...]
    bytes: int

    @property
    def total_entities(self) -> int:
        return sum(self.nodes.values()) + sum(self.edges.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "target": self.target,
            "format": self.format,
            "engine": self.engine,
            "ordered": self.ordered,
            "branch": self.branch,
            "graph_commit_id": self.graph_commit_id,
            "manifest_version": self.manifest_version,
            "nodes": [{"name": name, "entities": count} for name, count in self.nodes.items()],
            "edges": [{"name": name, "entities": count} for name, count in self.edges.items()],
            "total_entities": self.total_entities,
            "files": list(self.files),
            "bytes": self.bytes,
        }


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The tables of a snapshot to export, and how. ``options`` are the storage options of the target."""

    snapshot: Snapshot
    keys: Sequence[str]
    format: Format
    ordered: bool
    runners: RunnerChoice
    force: bool = False
    options: Mapping[str, str] | None = None
    settings: BulkSettings = field(default_factory=BulkSettings)

    def result(self, target: Target | None, engine: Engine, parts: Sequence[Part]) -> ExportResult:
        """The result of an export that wrote these parts."""
        counts = dict.fromkeys(self.keys, 0)
        for part in parts:
            counts[part.table_key] += part.rows
        nodes, edges = (
            {key.partition(":")[2]: rows for key, rows in counts.items() if key.startswith(kind)}
            for kind in ("node:", "edge:")
        )
        return ExportResult(
            None if target is None else str(target),
            self.format.value,
            engine.value,
            self.ordered,
            self.snapshot.branch,
            self.snapshot.graph_commit_id,
            self.snapshot.manifest_version,
            nodes,
            edges,
            tuple(part.path for part in parts if part.path) if target is not None else (),
            sum(part.bytes for part in parts),
        )


def export(request: ExportRequest, location: str | os.PathLike[str] | BinaryIO) -> ExportResult:
    """Write the tables of one snapshot to a file, a directory or a stream."""
    if not isinstance(location, str | os.PathLike):
        return _export_stream(request, location)
    options = request.options
    if options is None and request.snapshot.address.scheme is Scheme.S3:
        options = request.snapshot.address.options
    target = parse_target(location, request.format, options)
    refuse_inside(request.snapshot, target)
    engine = _engine(request, target)
    existed = target.prepare(force=request.force)
    try:
        if not target.is_directory:
            return _export_file(request, target)
        return _export_directory(request, target, engine)
    except BaseException:
        target.remove(with_root=not existed)
        raise


def refuse_inside(snapshot: Snapshot, target: Target) -> None:
    """Refuse to write among the files of the graph."""
    if f"{target.root}/".startswith(f"{snapshot.address.root}/"):
        raise ExportRefused(f"to {target}", "that is inside the graph; choose another place")


def _engine(request: ExportRequest, target: Target) -> Engine:
    """The engine that the caller named; without one, Spark for a large directory, if it is installed."""
    if not target.is_directory:
        if request.runners.engine is Engine.SPARK:
            raise ExportRefused(f"to {target}", "Spark writes directories; end the target with /")
        return Engine.LOCAL
    if request.runners.engine is Engine.SPARK:
        require_shared(request.snapshot.address)
    if request.runners.engine is not Engine.AUTO:
        return request.runners.engine
    if request.snapshot.address.scheme is Scheme.MEMORY:
        return Engine.LOCAL
    if request.runners.is_spark_given:
        return Engine.SPARK
    is_small = stored_bytes(request.snapshot, request.keys) <= request.settings.small_export
    return Engine.LOCAL if is_small or importlib.util.find_spec("pyspark") is None else Engine.SPARK


def stored_bytes(snapshot: Snapshot, keys: Sequence[str]) -> int:
    """How many bytes the data files of some tables have."""
    return sum(
        file.file_size_bytes or 0
        for key in keys
        if snapshot.rows(key)
        for fragment in open_table(snapshot, key).get_fragments()
        for file in fragment.metadata.files
    )


def _export_directory(request: ExportRequest, target: Target, engine: Engine) -> ExportResult:
    """Write each table as files of its own, several at a time, and the marker last."""
    runner: Runner = request.runners.local()
    if engine is Engine.SPARK:
        try:
            runner = request.runners.start_spark()
        except JavaUnavailable:
            if request.runners.engine is Engine.SPARK:
                raise
            engine = Engine.LOCAL
    sources = _sources(request, runner, target)
    tasks = [
        PartTask(request.snapshot.entity(key), source, _path(key, number, request.format), request.format, target)
        for key in request.keys
        for number, source in enumerate(sources[key])
    ]
    parts = runner.run("write", write_part, tasks)
    check_arrived(target, {part.path: part.bytes for part in parts})
    target.discard(RUNS)
    target.discard_partial()
    target.write_chunks(MARKER, [_marker(request, parts)])
    return request.result(target, engine, parts)


def _sources(request: ExportRequest, runner: Runner, scratch: Target) -> Mapping[str, Sequence[PartSource]]:
    if request.ordered:
        return ordered_parts(request.snapshot, request.keys, runner, scratch, request.settings)
    return {key: stored_parts(request.snapshot, key, request.settings) for key in request.keys}


def _path(table_key: str, number: int, form: Format) -> str:
    kind, _, name = table_key.partition(":")
    return f"{kind}s/{name}/part-{number:05d}.{form.value}"


def _marker(request: ExportRequest, parts: Sequence[Part]) -> bytes:
    """The content of the marker, which is the same for equal exports."""
    files = [{"path": part.path, "rows": part.rows, "bytes": part.bytes} for part in parts]
    content = {"format": request.format.value, "ordered": request.ordered, "files": files}
    return (json.dumps(content, indent=1) + "\n").encode()


def _export_file(request: ExportRequest, target: Target) -> ExportResult:
    """Write all tables as one file, which gets its name when it is complete."""
    parts: list[Part] = []
    target.write_chunks("", _lines(request, parts))
    return request.result(target, Engine.LOCAL, parts)


def _export_stream(request: ExportRequest, stream: BinaryIO) -> ExportResult:
    """Write all tables to a stream, line by line."""
    if request.format is not Format.JSONL:
        raise ExportRefused("to a stream", "Parquet is written to a directory")
    if request.runners.engine is Engine.SPARK:
        raise ExportRefused("to a stream", "Spark writes directories")
    parts: list[Part] = []
    stream.writelines(_lines(request, parts))
    return request.result(None, Engine.LOCAL, parts)


def _lines(request: ExportRequest, parts: list[Part]) -> Iterator[memoryview]:
    """The records of all tables, nodes first. The rows and bytes of each table are added to ``parts``."""
    runner, start = request.runners.local(), time.monotonic()
    reported = 0.0

    def report() -> None:
        event = JobEvent(runner.job, "write", len(parts), len(request.keys), sum(part.rows for part in parts))
        runner.report(replace(event, bytes=sum(part.bytes for part in parts), seconds=time.monotonic() - start))

    with tempfile.TemporaryDirectory(prefix="omnigraph-runs-") as folder:
        sources = _sources(request, runner, Target(folder, is_directory=True))
        for key in request.keys:
            parts.append(Part(key, "", 0, 0))
            for batch in (batch for source in sources[key] for batch in source.batches()):
                runner.require_active()
                size = 0
                for chunk in json_lines(request.snapshot.entity(key), batch):
                    size += len(chunk)
                    yield chunk
                parts[-1] = replace(parts[-1], rows=parts[-1].rows + batch.num_rows, bytes=parts[-1].bytes + size)
                if time.monotonic() > reported + _REPORT_SECONDS:
                    reported = time.monotonic()
                    report()
    report()
