"""The first pass of a load, on the workers: read a slice, check every row by itself, stage what is good."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from omnigraph.bulk.load.sources import SLICE_BYTES, Slice
from omnigraph.bulk.ranges import Lines, open_file, read_range, unpacked
from omnigraph.bulk.runner import Done
from omnigraph.embed.client import EmbeddingClient
from omnigraph.errors import OmniError, SourceUnusable, Violation
from omnigraph.formats.columnar import check_columns, read_columns
from omnigraph.formats.format import Format
from omnigraph.formats.jsonl.blocks import Block, TypedRecords, Unreadable, read_block
from omnigraph.formats.jsonl.records import too_long
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import Catalog, EntityType, NodeType
from omnigraph.storage.files.datafiles import ROWS_PER_FILE, Destination, StagedFile, write_file
from omnigraph.write.rules import Violations, broken_rows, check_rows
from omnigraph.write.vectors import fill_vectors

_LISTED: Final = 20
_HELD_FILES: Final = 4


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What every task of the first pass must know. ``most`` errors of one slice are listed, and, if the load is to
    stop at that many, no more are looked for. Files get up to ``rows_per_file`` rows."""

    job: str
    catalog: Catalog
    targets: Mapping[str, Destination]
    embedder: EmbeddingClient | None
    most: int = _LISTED
    stops: bool = False
    skips: bool = False
    bad_records: str | None = None
    rows_per_file: int = ROWS_PER_FILE


@dataclass(slots=True)
class SliceReport:
    """What became of one slice: files, counts by table, and everything wrong with single records.

    Lines count from the start of the slice, where they are not those of a whole file. ``broken`` has the places of
    records that can be read but break a rule, among those of their type, where anybody will ask for them; they are
    staged with the others unless the load goes on without them. ``breaking`` names the tables of such records. A
    slice ``is_partial`` if it was not read to its end because enough is wrong with it.
    """

    slice: int
    files: list[StagedFile] = field(default_factory=list)
    records: dict[str, int] = field(default_factory=dict)
    lines: int = 0
    unreadable: list[Unreadable] = field(default_factory=list)
    unreadable_total: int = 0
    violations: list[Violation] = field(default_factory=list)
    violations_total: int = 0
    unembedded: set[str] = field(default_factory=set)
    broken: dict[str, list[int]] = field(default_factory=dict)
    breaking: set[str] = field(default_factory=set)
    is_partial: bool = False

    @property
    def errors(self) -> int:
        return self.unreadable_total + self.violations_total


class SliceStager:
    """Stages the records of one slice: rows that are good go to files, what is wrong goes to the report."""

    def __init__(self, plan: StagePlan, slice_number: int, source: str) -> None:
        self.plan = plan
        self.source = source
        self.report = SliceReport(slice_number)
        self._held: dict[str, list[pa.Table]] = {}
        self._given: set[str] = set()
        self._written: dict[str, int] = {}

    @property
    def is_over(self) -> bool:
        """Have enough errors been found to stop looking?"""
        return self.plan.stops and self.report.errors >= self.plan.most

    def add_block(self, block: Block) -> None:
        """Stage the records of some lines."""
        before = self.report.lines
        self.note_unreadable(block.unreadable, before)
        self.report.lines += block.lines
        for records in block.records.values():
            self.add(records, before)

    def note_unreadable(self, found: list[Unreadable], before: int) -> None:
        report = self.report
        report.unreadable_total += len(found)
        room = max(0, self.plan.most - len(report.unreadable))
        report.unreadable += [Unreadable(bad.line + before, bad.column, bad.reason) for bad in found[:room]]

    def add(self, records: TypedRecords, before: int) -> None:
        """Complete, check and stage the records of one type."""
        entity, plan, report = records.entity, self.plan, self.report
        key = entity.table_key
        earlier = report.records.get(key, 0)
        report.records[key] = earlier + records.rows.num_rows
        given = records.rows["id"].null_count < records.rows.num_rows
        rows = with_fresh_ids(records.rows)
        if isinstance(entity, NodeType):
            rows, skipped = fill_vectors(entity, rows, dict.fromkeys(entity.embeds, True), plan.embedder)
            report.unembedded.update(skipped)
        found = Violations(plan.most)
        check_rows(entity, rows, found)
        if found.total:
            report.breaking.add(key)
            self._note_violations(rows, records.lines + before, found)
            if plan.skips or plan.bad_records is not None:
                broken = broken_rows(entity, rows)
                places = pc.indices_nonzero(broken).to_numpy() + earlier
                report.broken.setdefault(key, []).extend(places.tolist())
                rows = rows.filter(pc.invert(broken)) if plan.skips else rows
        if rows.num_rows and self._is_worth_staging:
            self._hold(key, rows, given)

    @property
    def _is_worth_staging(self) -> bool:
        """May the load be committed, or be asked what else is wrong with it? Not if a record cannot be read."""
        return self.plan.skips or not self.report.unreadable_total

    def finish(self) -> SliceReport:
        """Stage what is still held; the report."""
        if self._is_worth_staging:
            for key in list(self._held):
                self._stage(key)
        return self.report

    def _hold(self, key: str, rows: pa.Table, given: bool) -> None:
        """Keep rows until there are enough for files of a good size."""
        held = self._held.setdefault(key, [])
        held.append(rows)
        if given:
            self._given.add(key)
        if sum(part.num_rows for part in held) >= _HELD_FILES * self.plan.rows_per_file:
            self._stage(key)

    def _note_violations(self, rows: pa.Table, lines: npt.NDArray[np.int64], found: Violations) -> None:
        report = self.report
        report.violations_total += found.total
        room = max(0, self.plan.most - len(report.violations))
        listed = found.listed[:room]
        wanted = pa.array([violation.row_id for violation in listed], pa.string())
        ids = rows["id"].combine_chunks()
        mine = pc.indices_nonzero(pc.is_in(ids, value_set=wanted)).to_numpy()
        where = dict(zip(ids.take(pa.array(mine)).to_pylist(), lines[mine].tolist(), strict=True))
        report.violations += [
            Violation(v.table_key, v.row_id, v.rule, v.message, self.source, where.get(v.row_id or ""))
            for v in listed
        ]

    def _stage(self, key: str) -> None:
        """Write the rows that are held as files of even size."""
        rows = pa.concat_tables(self._held.pop(key))
        target = _holding(self.plan.targets[key], rows)
        files = -(-rows.num_rows // self.plan.rows_per_file)
        edges = [rows.num_rows * part // files for part in range(files + 1)]
        for low, high in pairwise(edges):
            part = rows.slice(low, high - low)
            name, size = write_file(target, self.plan.job, part)
            first = self._written.get(key, 0)
            self._written[key] = first + part.num_rows
            widest = max(part[column].nbytes for column in ("id", "src", "dst") if column in part.column_names)
            given = key in self._given
            self.report.files.append(
                StagedFile(key, name, part.num_rows, size, self.report.slice, first, widest, given)
            )


def _holding(target: Destination, rows: pa.Table) -> Destination:
    """The destination, made to hold rows that lack what they must have; such rows are never committed."""
    fields = [column.with_nullable(True) if rows[column.name].null_count else column for column in target.schema]
    return replace(target, schema=pa.schema(fields, target.schema.metadata))


def stage_slice(plan: StagePlan, part: Slice) -> Done:
    """Stage one slice of a file."""
    stager = SliceStager(plan, part.number, part.file.name)
    for block in blocks_of(part, plan.catalog):
        if stager.is_over:
            stager.report.is_partial = True
            break
        stager.add_block(block)
    report = stager.finish()
    return Done(report, rows=sum(report.records.values()), bytes=_size(part))


def _size(part: Slice) -> int:
    return (
        part.file.size if part.file.compression or part.file.format is Format.PARQUET else part.stop - part.start
    )


def portions(part: Slice) -> Iterator[Lines]:
    """The lines of a slice of JSON, as much at a time as is read."""
    file = part.file
    if file.compression is None:
        yield read_range(file.name, file.options, part.start, part.stop)
    else:
        yield from unpacked(file.name, file.options, file.compression, SLICE_BYTES)


def _row_group_blocks(part: Slice, catalog: Catalog) -> Iterator[Block]:
    assert part.file.table_key is not None  # noqa: S101  Parquet files are typed when they are found
    entity = _entity(catalog, part.file.table_key)
    try:
        with open_file(part.file.name, part.file.options) as opened:
            groups = list(range(part.start, part.stop))
            for batch in pq.ParquetFile(opened).iter_batches(batch_size=ROWS_PER_FILE, row_groups=groups):
                check_columns(entity, batch.schema.names, part.file.name)
                yield read_columns(entity, batch)
    except (pa.ArrowException, OSError) as error:
        raise SourceUnusable(part.file.name, f"it cannot be read as Parquet: {error}") from error


def _entity(catalog: Catalog, table_key: str) -> EntityType:
    kind, _, name = table_key.partition(":")
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def lines_of(part: Slice, catalog: Catalog, tables: Collection[str]) -> dict[str, npt.NDArray[np.int64]]:
    """The lines, within the slice, of the records of some tables, in the order in which they are staged."""
    found: dict[str, list[npt.NDArray[np.int64]]] = {key: [] for key in tables}
    before = 0
    for block in blocks_of(part, catalog):
        for key in set(tables) & block.records.keys():
            found[key].append(block.records[key].lines + before)
        before += block.lines
    return {key: np.concatenate(lines) if lines else np.zeros(0, np.int64) for key, lines in found.items()}


def blocks_of(part: Slice, catalog: Catalog) -> Iterator[Block]:
    """The blocks of a slice, one after the other; a line that is too long is a block of its own."""
    if part.file.format is Format.PARQUET:
        yield from _row_group_blocks(part, catalog)
        return
    for lines in portions(part):
        yield read_block(lines.data, catalog)
        if lines.overlong is not None:
            yield Block({}, [Unreadable(1, 1, too_long(lines.overlong))], 1)


BlockReader = Callable[[pa.RecordBatch], Block]
"""Reads the records of a batch of rows; line numbers are row numbers, from 1."""


def stage_rows(
    plan: StagePlan, read: BlockReader, name: str, part: int, batches: Iterator[pa.RecordBatch]
) -> SliceReport | OmniError:
    """Stage the rows of one partition; what stands in the way is the outcome, as trying again would not help."""
    stager = SliceStager(plan, part, name)
    try:
        for batch in batches:
            stager.add_block(read(batch))
        return stager.finish()
    except OmniError as error:
        return error


def in_order(outcomes: Iterable[SliceReport | OmniError], first: int = 0) -> list[SliceReport]:
    """The reports in the order of their partitions, numbered from the first on; raises what is none."""
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
