"""The bad records of a load: written down with their reasons, and skipped if the caller wants the rest loaded.

A record is unreadable, or invalid (it breaks a rule by itself), or rejected (it breaks a rule together with other
rows). Which records are rejected depends on the state of the branch.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final

import obstore
import pyarrow as pa

from omnigraph.bulk.load.checking.origins import Origins
from omnigraph.bulk.load.sources.external import without_refused
from omnigraph.bulk.load.sources.reading import blocks_of, pieces, portions
from omnigraph.bulk.load.sources.slices import Slice
from omnigraph.bulk.load.staging.stager import StagePlan
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.formats.jsonl.blocks import TypedRecords
from omnigraph.formats.quoting import record_lines, records_on
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.storage import layout
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.objects import open_objects
from omnigraph.storage.unavailable import translated
from omnigraph.write.rules import Violations, check_rows
from omnigraph.write.vectors import fill_vectors

_LONGEST_TEXT: Final = 64 << 10
"""How many bytes of a bad record are written down."""


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A rejected record: its position among the records of its type in its slice, and the reason."""

    table_key: str
    position: int
    reason: str


@dataclass(frozen=True, slots=True)
class _BadSlice:
    """The bad records of a slice: the positions of invalid ones by table, and the rejected ones."""

    part: Slice
    lines_before: int
    invalid: Mapping[str, Sequence[int]]
    rejected: Sequence[RejectedRow]


@dataclass(slots=True)
class BadRecords:
    """The bad records of one load. ``path`` is the file for them, if the caller wants one.

    ``rejected`` has the rejected records by slice, for the state of the branch that the load is to change.
    """

    path: str | None
    skip: bool
    origins: Origins
    rejected: Mapping[int, Sequence[RejectedRow]] = field(default_factory=dict)
    is_written: bool = False

    def set_rejected(self, rows: Mapping[int, Sequence[RejectedRow]]) -> None:
        """Set the records that are rejected on top of another state of the branch."""
        self.rejected = rows
        self.is_written = False

    def readable_counts(self) -> Counter[str]:
        """How many invalid and rejected records there are, by table."""
        counts: Counter[str] = Counter()
        for report in self.origins.reports:
            counts.update({key: len(positions) for key, positions in report.invalid.items()})
        counts.update(row.table_key for rows in self.rejected.values() for row in rows)
        return counts

    def commit_message(self, message: str | None) -> str | None:
        """The caller's message, with the number of skipped records if there are any."""
        unreadable = sum(report.unreadable_total for report in self.origins.reports)
        count = unreadable + self.readable_counts().total()
        if not self.skip or not count:
            return message
        skipped = f"left out {count} bad record{'' if count == 1 else 's'}"
        return skipped if message is None else f"{message} ({skipped})"

    def write(self, runner: Runner, address: Address, plan: StagePlan) -> None:
        """Write all bad records to the caller's file, by source and line, unless that is done."""
        if self.path is None or self.is_written:
            return
        before = self.origins.lines_before
        tasks = [
            _BadSlice(part, before[part.number], report.invalid, self.rejected.get(part.number, ()))
            for part, report in zip(self.origins.slices, self.origins.reports, strict=False)
            if report.errors or part.number in self.rejected
        ]
        keys = runner.run("writing bad records", partial(_write_slice, address, plan), tasks)
        objects = open_objects(address)
        found = (objects.get(key) for key in keys)
        contents = (part.content for part in found if part is not None)
        _write_all(self.path, chain(contents, self._frame_entries()), address.options)
        self.is_written = True

    def _frame_entries(self) -> Iterator[bytes]:
        """The bad rows of DataFrames, from the reports, as a DataFrame cannot be read again."""
        files, before = len(self.origins.slices), self.origins.lines_before
        for number in range(files, len(self.origins.reports)):
            report, source = self.origins.reports[number], self.origins.sources[number]
            reasons: dict[int, list[str]] = {}
            for bad in report.unreadable:
                reasons.setdefault(bad.line, []).append(bad.reason)
            for violation in report.violations:
                reasons.setdefault(violation.line or 0, []).append(violation.message)
            for line in sorted(reasons):
                yield _entry(source, line + before[number], reasons[line], None)
            for row in self.rejected.get(number, ()):
                kept = self.origins.line_of(number, row.table_key, row.position)
                yield _entry(source, None if kept is None else kept[1], [row.reason], None)


def _entry(source: str, line: int | None, reasons: Sequence[str], record: str | None) -> bytes:
    entry = {"source": source, "line": line, "reasons": list(reasons), "record": record}
    return json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n"


def _write_all(path: str, parts: Iterable[bytes], options: Mapping[str, str]) -> None:
    with translated(path):
        if path.startswith("s3://"):
            bucket, _, key = path.removeprefix("s3://").partition("/")
            obstore.put(s3_store(parse_address(f"s3://{bucket}", options)), key, iter(parts))
            return
        target = Path(path.removeprefix("file://")).expanduser()
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            file.writelines(parts)


def _write_slice(address: Address, plan: StagePlan, task: _BadSlice) -> TaskResult[str]:
    """Write the bad records of a slice to the job's folder, each with all its reasons; the key of the object."""
    part = task.part
    reasons: dict[int, list[str]] = {}
    rejected: dict[str, dict[int, str]] = {}
    for row in task.rejected:
        rejected.setdefault(row.table_key, {})[row.position] = row.reason
    read: Counter[str] = Counter()
    lines = 0
    for block in (without_refused(each, plan.blobs) for each in blocks_of(part, plan.catalog)):
        for bad in block.unreadable:
            reason = bad.reason if part.file.format.is_table else f"column {bad.column}: {bad.reason}"
            reasons.setdefault(lines + bad.line, []).append(reason)
        for key, records in block.records.items():
            first, others = read[key], rejected.get(key, {})
            read[key] += records.rows.num_rows
            invalid = _reasons(plan, records, _within(task.invalid.get(key, ()), first, records))
            with_others = ((index, others[first + index]) for index in _within(sorted(others), first, records))
            for index, reason in chain(invalid, with_others):
                reasons.setdefault(lines + int(records.lines[index]), []).append(reason)
        lines += block.lines
    texts = _texts(part, set(reasons))
    content = b"".join(
        _entry(part.file.name, line + task.lines_before, reasons[line], texts.get(line))
        for line in sorted(reasons)
    )
    key = f"{layout.job_folder(plan.job)}/bad-{part.number}.jsonl"
    open_objects(address).put(key, content)
    return TaskResult(key)


def _within(positions: Sequence[int], first: int, records: TypedRecords) -> list[int]:
    """The positions that lie in a block of records that begins at ``first``, counted from there."""
    low, high = bisect_left(positions, first), bisect_left(positions, first + records.rows.num_rows)
    return [position - first for position in positions[low:high]]


def _reasons(plan: StagePlan, records: TypedRecords, indexes: Sequence[int]) -> Iterator[tuple[int, str]]:
    """The rules that invalid records break, record by record."""
    rows = with_fresh_ids(records.rows.take(pa.array(indexes, pa.int64())))
    if isinstance(records.entity, NodeType) and len(indexes):
        embeds = dict.fromkeys(records.entity.embeds, True)
        rows, _ = fill_vectors(records.entity, rows, embeds, plan.embedder)
    for row, index in enumerate(indexes):
        found = Violations()
        check_rows(records.entity, rows.slice(row, 1), found)
        yield from ((index, violation.message) for violation in found.listed)


def _texts(part: Slice, wanted: set[int]) -> dict[int, str]:
    """The texts of the records on some lines of a slice, cut if they are long. Rows of Parquet and Arrow
    have none, nor have lines that are too long to be read."""
    if part.file.format.is_delimited:
        found = _rows_on(part, wanted)
    elif part.file.format.is_table:
        return {}
    else:
        found = _lines_on(part, wanted)
    return {line: text[:_LONGEST_TEXT].decode(errors="replace") for line, text in found}


def _lines_on(part: Slice, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
    """Lines of JSON."""
    before = 0
    for portion in portions(part):
        lines = portion.data.removesuffix(b"\n").split(b"\n") if portion.data else []
        for number in wanted & set(range(before + 1, before + len(lines) + 1)):
            yield number, lines[number - before - 1].removesuffix(b"\r")
        before += len(lines) + (portion.overlong is not None)


def _rows_on(part: Slice, wanted: set[int]) -> Iterator[tuple[int, bytes]]:
    """The rows of CSV that begin on some lines; one with an open quote is the rest of its file."""
    before = 0
    for piece in pieces(part):
        lines = record_lines(piece.data, part.file.dialect, 0)[1]
        here = [line - before for line in wanted if before < line <= before + lines]
        if here and piece.is_closed:
            for line, text in records_on(piece.data, part.file.dialect, here).items():
                yield before + line, text.removeprefix(BOM_UTF8)
        elif here:
            yield before + 1, bytes(piece.data)
        before += lines
