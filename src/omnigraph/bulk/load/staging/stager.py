"""The first step of a load, on the workers: read a slice, check every row by itself, stage the good ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.sources.external import with_bytes, without_refused
from omnigraph.bulk.load.sources.reading import blocks_of
from omnigraph.bulk.load.sources.slices import Slice
from omnigraph.bulk.load.staging.unreadable import unreadable_group
from omnigraph.bulk.meters import note
from omnigraph.bulk.runner import TaskResult
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import OmniError, Violation
from omnigraph.formats.format import Format
from omnigraph.formats.jsonl.blocks import Block, TypedRecords, Unreadable
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import Catalog, NodeType
from omnigraph.settings import BulkSettings
from omnigraph.storage.external.sources import BlobSources
from omnigraph.storage.files.datafiles import Destination, StagedFile, compressed, write_file
from omnigraph.write.rules import SHOWN, Violations, broken_rows, check_rows
from omnigraph.write.tally import Tally
from omnigraph.write.vectors import fill_vectors


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What every task that stages rows needs to know.

    The first ``error_limit`` errors of a slice are listed; with ``stop_at_limit`` its task stops there. With
    ``skip_bad`` rows that break a rule by themselves are not staged; with ``writes_bad_records`` a later step
    writes them down. ``schema_digest`` names the schema of the branch: files are committed only under that one.
    """

    job: str
    catalog: Catalog
    schema_digest: str | None
    targets: Mapping[str, Destination]
    embedder: EmbeddingClient | None
    error_limit: int = SHOWN
    stop_at_limit: bool = False
    skip_bad: bool = False
    writes_bad_records: bool = False
    rows_per_file: int = BulkSettings().rows_per_file
    blobs: BlobSources = field(default_factory=BlobSources)

    @property
    def needs_positions(self) -> bool:
        """Must reports have the positions of records that break a rule by themselves?"""
        return self.skip_bad or self.writes_bad_records


@dataclass(slots=True)
class SliceReport:
    """What a task did with one slice: the files it staged, records by table, how many of them bring no id and
    have no key, and the errors of single records.

    Lines are counted from the start of the slice. ``invalid`` has the positions of records that break a rule by
    themselves, among the records of their type, if the plan needs them; ``invalid_tables`` names the tables of
    such records. ``copied_bytes`` are those of blobs that came from elsewhere. A slice ``is_partial`` if its task
    stopped at the limit of errors; one that is not ``is_closed`` ends within a record. ``row_lines`` has the lines
    of readable records by table, for sources that cannot be read again to find them; a range if none is missing.
    """

    slice: int
    files: list[StagedFile] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    anonymous: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    unreadable_total: int = 0
    unreadable_groups: Tally = field(default_factory=Tally)
    violations: list[Violation] = field(default_factory=list)
    violations_total: int = 0
    unembedded: set[str] = field(default_factory=set)
    copied_bytes: int = 0
    invalid: dict[str, list[int]] = field(default_factory=dict)
    invalid_tables: set[str] = field(default_factory=set)
    is_partial: bool = False
    is_closed: bool = True
    row_lines: dict[str, range | npt.NDArray[np.int64]] = field(default_factory=dict)

    @property
    def errors(self) -> int:
        return self.unreadable_total + self.violations_total


class SliceStager:
    """Stages the records of one slice: good rows go to data files, errors to the report."""

    def __init__(self, plan: StagePlan, slice_number: int, source: str) -> None:
        self.plan = plan
        self.source = source
        self.report = SliceReport(slice_number)
        self._held: dict[str, list[pa.Table]] = {}
        self._explicit_ids: set[str] = set()
        self._written: dict[str, int] = {}
        self._reading = plan.blobs.reading()

    @property
    def is_at_limit(self) -> bool:
        """Have so many errors been found that the rest of the slice is not read?"""
        return self.plan.stop_at_limit and self.report.errors >= self.plan.error_limit

    def add_block(self, block: Block) -> None:
        """Stage the records of some lines."""
        self.report.is_closed = block.is_closed
        block = without_refused(block, self.plan.blobs)
        before = self.report.lines
        self._note_unreadable(block.unreadable, before)
        self.report.lines += block.lines
        for records in block.records.values():
            self._add(records, before)
            note(rows=records.rows.num_rows)

    def finish(self) -> SliceReport:
        """Stage the rows that are still held; the report."""
        if self._can_be_loaded:
            for key in list(self._held):
                self._stage(key)
        return self.report

    def _note_unreadable(self, found: list[Unreadable], before: int) -> None:
        report = self.report
        report.unreadable_total += len(found)
        room = max(0, self.plan.error_limit - len(report.unreadable))
        report.unreadable += [Unreadable(bad.line + before, bad.column, bad.reason) for bad in found[:room]]
        for bad in found:
            report.unreadable_groups.add(unreadable_group(self.source, replace(bad, line=bad.line + before)))

    def _add(self, records: TypedRecords, before: int) -> None:
        """Complete, check and stage the records of one type."""
        entity, plan, report = records.entity, self.plan, self.report
        key = entity.table_key
        earlier = report.records.get(key, 0)
        report.records[key] = earlier + records.rows.num_rows
        without_id = records.rows["id"].null_count
        if without_id:
            report.anonymous[key] = report.anonymous.get(key, 0) + without_id
        rows = with_fresh_ids(records.rows)
        if isinstance(entity, NodeType):
            rows, skipped = fill_vectors(entity, rows, dict.fromkeys(entity.embeds, True), plan.embedder)
            report.unembedded.update(skipped)
        found = Violations(plan.error_limit)
        check_rows(entity, rows, found)
        if found.total:
            report.invalid_tables.add(key)
            self._note_violations(rows, records.lines + before, found)
            if plan.needs_positions:
                invalid = broken_rows(entity, rows)
                positions = pc.indices_nonzero(invalid).to_numpy() + earlier
                report.invalid.setdefault(key, []).extend(positions.tolist())
                rows = rows.filter(pc.invert(invalid)) if plan.skip_bad else rows
        if rows.num_rows and self._can_be_loaded:
            self._hold(key, with_bytes(entity, rows, self._reading), without_id < records.rows.num_rows)
            report.copied_bytes = self._reading.bytes

    @property
    def _can_be_loaded(self) -> bool:
        """Is it worth staging rows? Not once a record is unreadable, unless bad records are skipped."""
        return self.plan.skip_bad or not self.report.unreadable_total

    def _hold(self, key: str, rows: pa.Table, has_ids: bool) -> None:
        held = self._held.setdefault(key, [])
        held.append(rows)
        if has_ids:
            self._explicit_ids.add(key)
        if sum(part.num_rows for part in held) >= self.plan.rows_per_file:
            self._stage(key)

    def _note_violations(self, rows: pa.Table, lines: npt.NDArray[np.int64], found: Violations) -> None:
        report = self.report
        report.violations_total += found.total
        room = max(0, self.plan.error_limit - len(report.violations))
        listed = found.listed[:room]
        wanted = pa.array([violation.row_id for violation in listed], pa.string())
        ids = rows["id"].combine_chunks()
        at = pc.indices_nonzero(pc.is_in(ids, value_set=wanted)).to_numpy()
        line_of = dict(zip(ids.take(pa.array(at)).to_pylist(), lines[at].tolist(), strict=True))
        report.violations += [
            replace(violation, source=self.source, line=line_of.get(violation.row_id or ""))
            for violation in listed
        ]

    def _stage(self, key: str) -> None:
        """Write the rows that are held as files of even size."""
        rows = pa.concat_tables(self._held.pop(key))
        target = _nullable_where_needed(self.plan.targets[key], rows)
        if key not in self._explicit_ids:
            target = compressed(target, "id", "lz4")
        for end in ("src", "dst"):
            target = compressed(target, end, "lz4") if end in rows.column_names else target
        files = -(-rows.num_rows // self.plan.rows_per_file)
        edges = [rows.num_rows * part // files for part in range(files + 1)]
        for low, high in pairwise(edges):
            part = rows.slice(low, high - low)
            name, size = write_file(target, self.plan.job, part)
            first = self._written.get(key, 0)
            self._written[key] = first + part.num_rows
            widest = max(part[column].nbytes for column in ("id", "src", "dst") if column in part.column_names)
            self.report.files.append(
                StagedFile(
                    key,
                    name,
                    part.num_rows,
                    size,
                    slice=self.report.slice,
                    first=first,
                    key_bytes=widest,
                    explicit_ids=key in self._explicit_ids,
                )
            )


def _nullable_where_needed(target: Destination, rows: pa.Table) -> Destination:
    """The destination with columns that accept the nulls of invalid rows; such rows are never committed."""
    fields = [column.with_nullable(True) if rows[column.name].null_count else column for column in target.schema]
    return replace(target, schema=pa.schema(fields, target.schema.metadata))


def stage_slice(plan: StagePlan, part: Slice) -> TaskResult[SliceReport]:
    """Stage one slice of a file."""
    stager = SliceStager(plan, part.number, part.file.name)
    note(of=_size(part))
    for block in blocks_of(part, plan.catalog):
        if stager.is_at_limit:
            stager.report.is_partial = True
            break
        stager.add_block(block)
    report = stager.finish()
    return TaskResult(report, rows=sum(report.records.values()), bytes=_size(part))


def _size(part: Slice) -> int:
    file = part.file
    is_range = file.compression is None and (file.format is Format.JSONL or file.format.is_delimited)
    return part.stop - part.start if is_range else file.size


def stage_block(plan: StagePlan, name: str, number: int, block: Block) -> SliceReport:
    """Stage the records of one block of a source that cannot be read again; the report keeps their lines."""
    stager = SliceStager(plan, number, name)
    block = without_refused(block, plan.blobs)
    stager.add_block(block)
    report = stager.finish()
    report.row_lines = {key: _without_gaps(records.lines) for key, records in block.records.items()}
    report.is_partial = stager.is_at_limit
    return report


def _without_gaps(lines: npt.NDArray[np.int64]) -> range | npt.NDArray[np.int64]:
    """Ascending lines as a range, if they are one: the driver keeps those of all chunks."""
    if not len(lines) or int(lines[-1]) - int(lines[0]) + 1 != len(lines):
        return lines
    return range(int(lines[0]), int(lines[-1]) + 1)


BlockReader = Callable[[pa.RecordBatch], Block]
"""Reads the records of a batch of rows; line numbers are row numbers, from 1."""


def stage_rows(
    plan: StagePlan, read: BlockReader, name: str, part: int, batches: Iterator[pa.RecordBatch]
) -> SliceReport | OmniError:
    """Stage the rows of one partition of a DataFrame. Errors are returned, so that Spark does not retry."""
    stager = SliceStager(plan, part, name)
    try:
        for batch in batches:
            stager.add_block(read(batch))
        return stager.finish()
    except OmniError as error:
        return error


def in_order(outcomes: Iterable[SliceReport | OmniError], first: int = 0) -> list[SliceReport]:
    """The reports in the order of their partitions, numbered from ``first``. An error among them is raised."""
    reports: list[SliceReport] = []
    for outcome in outcomes:
        if isinstance(outcome, OmniError):
            raise outcome
        reports.append(outcome)
    reports.sort(key=lambda report: report.slice)
    return [_renumbered(report, first + index) for index, report in enumerate(reports)]


def _renumbered(report: SliceReport, number: int) -> SliceReport:
    report.slice = number
    report.files = [replace(file, slice=number) for file in report.files]
    return report
