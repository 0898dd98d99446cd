"""Exports: one snapshot of a graph as records that a load takes back."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, BinaryIO, Final, TypeVar

from omnigraph.bulk.export.parts import (
    Part,
    PartTask,
    Source,
    ordered_parts,
    stored_parts,
    write_part,
)
from omnigraph.bulk.export.targets import MARKER, RUNS, Target, check_arrived, parse_target
from omnigraph.bulk.pieces import open_table, require_shared
from omnigraph.bulk.runner import Engine, JobEvent, Runner, RunnerChoice
from omnigraph.errors import ExportRefused, JavaUnavailable, RequestError
from omnigraph.formats.encoding import json_lines
from omnigraph.formats.format import Format
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.address import Scheme

SMALL_EXPORT: Final = 4 << 30
"""Up to this many stored bytes an export runs in this process, if nobody says otherwise."""
_TELL_EVERY: Final = 0.2
Kind = TypeVar("Kind", bound=StrEnum)


def choice(kind: type[Kind], value: str) -> Kind:
    """The member of an enumeration that a user named."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(kind)
        raise RequestError(f"'{value}' is no {kind.__name__.lower()} of an export; there are {known}") from None


@dataclass(frozen=True, slots=True)
class ExportResult:
    """What an export wrote, and of which state of the graph. ``target`` is None if it went into a stream."""

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
class Request:
    """What is to be exported, and how."""

    graph: Snapshot
    keys: Sequence[str]
    format: Format
    ordered: bool
    runners: RunnerChoice
    force: bool = False
    options: Mapping[str, str] | None = None

    def done(self, target: Target | None, engine: Engine, parts: Sequence[Part]) -> ExportResult:
        """The result, once these parts are written."""
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
            self.graph.branch,
            self.graph.graph_commit_id,
            self.graph.manifest_version,
            nodes,
            edges,
            tuple(part.path for part in parts if part.path) if target is not None else (),
            sum(part.bytes for part in parts),
        )


def export(request: Request, place: str | os.PathLike[str] | BinaryIO) -> ExportResult:
    """Write the tables of one snapshot to a file, a directory or a stream."""
    if not isinstance(place, str | os.PathLike):
        return _export_stream(request, place)
    options = request.options
    if options is None and request.graph.address.scheme is Scheme.S3:
        options = request.graph.address.options
    target = parse_target(place, request.format, options)
    _refuse_inside(request.graph, target)
    engine = _engine(request, target)
    existed = target.prepare(force=request.force)
    try:
        if not target.is_directory:
            return _export_file(request, target)
        return _export_directory(request, target, engine)
    except BaseException:
        target.remove(with_root=not existed)
        raise


def _refuse_inside(graph: Snapshot, target: Target) -> None:
    """Refuse to write among the files of the graph."""
    if f"{target.root}/".startswith(f"{graph.address.root}/"):
        raise ExportRefused(f"to {target}", "that is inside the graph; choose another place")


def _engine(request: Request, target: Target) -> Engine:
    """Who does the work, if it is not said: Spark for what is large, if it is there."""
    if not target.is_directory:
        if request.runners.engine is Engine.SPARK:
            raise ExportRefused(f"to {target}", "Spark writes directories; end the target with /")
        return Engine.LOCAL
    if request.runners.engine is Engine.SPARK:
        require_shared(request.graph.address)
    if request.runners.engine is not Engine.AUTO:
        return request.runners.engine
    if request.graph.address.scheme is Scheme.MEMORY:
        return Engine.LOCAL
    if request.runners.is_spark_given:
        return Engine.SPARK
    if stored_bytes(request.graph, request.keys) <= SMALL_EXPORT or importlib.util.find_spec("pyspark") is None:
        return Engine.LOCAL
    return Engine.SPARK


def stored_bytes(graph: Snapshot, keys: Sequence[str]) -> int:
    """How many bytes the files of tables have."""
    return sum(
        file.file_size_bytes or 0
        for key in keys
        if graph.rows(key)
        for fragment in open_table(graph, key).get_fragments()
        for file in fragment.metadata.files
    )


def _export_directory(request: Request, target: Target, engine: Engine) -> ExportResult:
    """All tables as files of their own, written at the same time, with the marker last."""
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
        PartTask(request.graph.entity(key), source, _path(key, number, request.format), request.format, target)
        for key in request.keys
        for number, source in enumerate(sources[key])
    ]
    parts: list[Part] = runner.run("write", write_part, tasks)
    check_arrived(target, {part.path: part.bytes for part in parts})
    target.discard(RUNS)
    target.discard_partial()
    target.write_chunks(MARKER, [_marker(request, parts)])
    return request.done(target, engine, parts)


def _sources(request: Request, runner: Runner, scratch: Target) -> Mapping[str, Sequence[Source]]:
    if request.ordered:
        return ordered_parts(request.graph, request.keys, runner, scratch)
    return {key: stored_parts(request.graph, key) for key in request.keys}


def _path(table_key: str, number: int, form: Format) -> str:
    kind, _, name = table_key.partition(":")
    return f"{kind}s/{name}/part-{number:05d}.{form.value}"


def _marker(request: Request, parts: Sequence[Part]) -> bytes:
    """What says that all is there; equal exports have equal ones."""
    files = [{"path": part.path, "rows": part.rows, "bytes": part.bytes} for part in parts]
    content = {"format": request.format.value, "ordered": request.ordered, "files": files}
    return (json.dumps(content, indent=1) + "\n").encode()


def _export_file(request: Request, target: Target) -> ExportResult:
    """All tables as one file, which takes its name when it is complete."""
    parts: list[Part] = []
    target.write_chunks("", _lines(request, parts))
    return request.done(target, Engine.LOCAL, parts)


def _export_stream(request: Request, stream: BinaryIO) -> ExportResult:
    """All tables as lines that somebody reads while they are made."""
    if request.format is not Format.JSONL:
        raise ExportRefused("to a stream", "Parquet is written to a directory")
    if request.runners.engine is Engine.SPARK:
        raise ExportRefused("to a stream", "Spark writes directories")
    parts: list[Part] = []
    stream.writelines(_lines(request, parts))
    return request.done(None, Engine.LOCAL, parts)


def _lines(request: Request, parts: list[Part]) -> Iterator[memoryview]:
    """The records of all tables, nodes first; ``parts`` is told what there was of each."""
    runner, start = request.runners.local(), time.monotonic()
    told = 0.0

    def tell() -> None:
        event = JobEvent(runner.job, "write", len(parts), len(request.keys), sum(part.rows for part in parts))
        runner.tell(replace(event, bytes=sum(part.bytes for part in parts), seconds=time.monotonic() - start))

    with tempfile.TemporaryDirectory(prefix="omnigraph-runs-") as folder:
        sources = _sources(request, runner, Target(folder, is_directory=True))
        for key in request.keys:
            parts.append(Part(key, "", 0, 0))
            for batch in (batch for source in sources[key] for batch in source.batches()):
                runner.check()
                size = 0
                for chunk in json_lines(request.graph.entity(key), batch):
                    size += len(chunk)
                    yield chunk
                parts[-1] = replace(parts[-1], rows=parts[-1].rows + batch.num_rows, bytes=parts[-1].bytes + size)
                if time.monotonic() > told + _TELL_EVERY:
                    told = time.monotonic()
                    tell()
    tell()
