"""Rows that this process holds as the input of a job: staged by threads here, or by tasks elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from typing import Any, Final

import pyarrow as pa

from omnigraph.bulk.load.sources.held import Chunk, HeldRows, size_of
from omnigraph.bulk.load.staging.stager import SliceReport, StagePlan, in_order, stage_block
from omnigraph.bulk.runner import LocalRunner, Runner, TaskResult
from omnigraph.errors import StorageUnavailable
from omnigraph.failpoints import hit
from omnigraph.formats.jsonl.blocks import Block
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.objects import open_objects

_CHUNKS_PER_CORE: Final = 4
"""How many chunks are written down for each core before tasks stage them."""
_LINES: Final = ".jsonl"
_COLUMNS: Final = ".arrows"


class BegunRows:
    """Rows that are being read: the first chunks, which tell how large they are, and the rest."""

    def __init__(self, rows: HeldRows) -> None:
        self.rows = rows
        self._first: list[Chunk] = []
        self._rest: Iterator[Chunk] | None = rows.chunks()

    def fits(self, room: int) -> int:
        """Read until all is read or more than ``room`` bytes are; how many bytes are left of the room."""
        for chunk in self._rest or ():
            self._first.append(chunk)
            room -= size_of(chunk)
            if room < 0:
                break
        return room

    def require_columns(self) -> None:
        """Read the first chunk, and refuse columns that do not fit the type of the rows."""
        self.fits(0)
        for chunk in self._first[:1]:
            if isinstance(chunk, pa.Table):
                self.rows.read(chunk.slice(0, 0))

    def chunks(self) -> Iterator[Chunk]:
        """All chunks. They are read again if they have been read, and can be."""
        if self._rest is None:
            return self.rows.chunks()
        found = chain(self._first, self._rest)
        self._first, self._rest = [], None
        return found

    def blocks(self) -> Iterable[Block]:
        """The records of all chunks."""
        return (self.rows.read(chunk) for chunk in self.chunks())


@dataclass(frozen=True, slots=True)
class ChunkedRows:
    """Held rows as a source of a job in this process, whose threads stage chunks while more of them are read."""

    runner: LocalRunner
    begun: BegunRows

    @property
    def name(self) -> str:
        return self.begun.rows.name

    def stage(self, plan: StagePlan, first: int) -> list[SliceReport]:
        """Stage all chunks; with a limit of errors, none is read after one that has as many."""
        plan = _with_all_errors(plan)
        over: list[int] = []

        def stage(task: tuple[int, Chunk]) -> TaskResult[SliceReport]:
            number, chunk = task
            report = stage_block(plan, self.name, number, self.begun.rows.read(chunk))
            if report.is_partial:
                over.append(number)
            return TaskResult(report, sum(report.records.values()), size_of(chunk))

        tasks = _until(enumerate(self.begun.chunks()), over)
        reports = self.runner.run_each(_step(self.name), stage, tasks)
        return in_order(reports, first)


@dataclass(frozen=True, slots=True)
class SpooledRows:
    """Held rows as a source of a job whose tasks run elsewhere.

    This process writes chunks into the job's folder of the graph's store, which all tasks reach. They are removed
    once they are staged, and with the job's other files if it dies.
    """

    runner: Runner
    address: Address
    begun: BegunRows

    @property
    def name(self) -> str:
        return self.begun.rows.name

    def stage(self, plan: StagePlan, first: int) -> list[SliceReport]:
        """Stage all chunks, as many at a time as the tasks have use for; with a limit of errors, none is read
        after some that have as many."""
        objects, chunks = open_objects(self.address), enumerate(self.begun.chunks())
        stage = partial(_stage_spooled, _with_all_errors(plan), self.address, self.name, self.begun.rows.read)
        reports: list[SliceReport] = []
        while tasks := self._written(plan.job, first, islice(chunks, self.runner.cores * _CHUNKS_PER_CORE)):
            hit("load.after_spool")
            reports += self.runner.run(_step(self.name), stage, tasks)
            objects.delete_all([key for _, key in tasks])
            if any(report.is_partial for report in reports):
                break
        return in_order(reports, first)

    def _written(self, job: str, source: int, chunks: Iterable[tuple[int, Chunk]]) -> list[tuple[int, str]]:
        """Write chunks down; the number and the key of each."""
        objects, tasks = open_objects(self.address), list[tuple[int, str]]()
        for number, chunk in chunks:
            content, kind = (chunk, _LINES) if isinstance(chunk, bytes) else (_as_bytes(chunk), _COLUMNS)
            key = layout.job_rows(job, f"{source}-{number}{kind}")
            objects.hint(key, content)
            tasks.append((number, key))
        return tasks


def _stage_spooled(
    plan: StagePlan, address: Address, name: str, read: Callable[[Chunk], Block], task: tuple[int, str]
) -> TaskResult[SliceReport]:
    """Stage a chunk that the driver has written down."""
    number, key = task
    stored = open_objects(address).get(key)
    if stored is None:
        raise StorageUnavailable(f"{address}/{key}", "the rows that the driver wrote there are gone")
    chunk = pa.ipc.open_stream(stored.content).read_all() if key.endswith(_COLUMNS) else stored.content
    report = stage_block(plan, name, number, read(chunk))
    return TaskResult(report, sum(report.records.values()), len(stored.content))


def _as_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _step(name: str) -> str:
    return f"reading and staging {name}"


def _with_all_errors(plan: StagePlan) -> StagePlan:
    """The plan of rows that cannot be read a second time: reports list all errors that are to be written down."""
    return replace(plan, error_limit=sys.maxsize) if plan.writes_bad_records else plan


def _until(tasks: Iterator[tuple[int, Any]], over: Sequence[int]) -> Iterator[tuple[int, Any]]:
    for task in tasks:
        if over:
            return
        yield task
