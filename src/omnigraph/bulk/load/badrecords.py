"""Records that are wrong: written down with their reasons, and left out of the load if that was asked for."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Final

import obstore
import pyarrow as pa

from omnigraph.bulk.load.origins import Origins
from omnigraph.bulk.load.sources import Slice
from omnigraph.bulk.load.staging import StagePlan, blocks_of, portions
from omnigraph.bulk.runner import Done, Runner
from omnigraph.bulk.scratch import scratch_folder
from omnigraph.formats.format import Format
from omnigraph.formats.jsonl.blocks import TypedRecords
from omnigraph.formats.rows import with_fresh_ids
from omnigraph.lang.schema.catalog import NodeType
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.objects import open_objects
from omnigraph.storage.unavailable import translated
from omnigraph.write.rules import Violations, check_rows
from omnigraph.write.vectors import fill_vectors

_LONGEST_KEPT: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that can be read and is wrong beside others: the how-many-th of its type in its slice, and why."""

    table_key: str
    index: int
    reason: str


@dataclass(frozen=True, slots=True)
class _BadSlice:
    """The wrong records of a slice that can be read: which break a rule alone, by table, which beside others."""

    part: Slice
    before: int
    broken: Mapping[str, Sequence[int]]
    beside: Sequence[BadRow]


@dataclass(slots=True)
class BadRecords:
    """The wrong records of one load. ``path`` is where they are written, if anywhere.

    What was read tells of those that are wrong by themselves. ``beside`` has those that are wrong beside others,
    by slice; which these are depends on the state of the branch, so they are noted anew for each state.
    """

    path: str | None
    skips: bool
    origins: Origins
    beside: Mapping[int, Sequence[BadRow]] = field(default_factory=dict)
    is_written: bool = False

    def note_beside(self, rows: Mapping[int, Sequence[BadRow]]) -> None:
        """Note the records that are wrong beside others, on top of the state that the load is to change now."""
        self.beside = rows
        self.is_written = False

    def left_out(self) -> Counter[str]:
        """How many of the records that can be read are wrong, by table."""
        counts: Counter[str] = Counter()
        for report in self.origins.reports:
            counts.update({key: len(places) for key, places in report.broken.items()})
        counts.update(bad.table_key for rows in self.beside.values() for bad in rows)
        return counts

    def message(self, given: str | None) -> str | None:
        """The commit message: it says if records were left out."""
        unreadable = sum(report.unreadable_total for report in self.origins.reports)
        count = unreadable + self.left_out().total()
        if not self.skips or not count:
            return given
        said = f"left out {count} bad records"
        return said if given is None else f"{given} ({said})"

    def write(self, runner: Runner, address: Address, plan: StagePlan) -> None:
        """Write all of them where the caller wants them, file by file, in the order of lines."""
        if self.path is None or self.is_written:
            return
        before = self.origins.before
        tasks = [
            _BadSlice(part, before[part.number], report.broken, self.beside.get(part.number, ()))
            for part, report in zip(self.origins.slices, self.origins.reports, strict=False)
            if report.errors or part.number in self.beside
        ]
        keys = runner.run("writing bad records", partial(_write_slice, address, plan), tasks)
        objects = open_objects(address)
        found = (objects.get(key) for key in keys)
        contents = (part.content for part in found if part is not None)
        _write_all(self.path, chain(contents, self._of_frames()), address.options)
        self.is_written = True

    def _of_frames(self) -> Iterator[bytes]:
        """What is wrong with rows of DataFrames, which nobody can read again."""
        files, before = len(self.origins.slices), self.origins.before
        for number in range(files, len(self.origins.reports)):
            report, source = self.origins.reports[number], self.origins.sources[number]
            reasons: dict[int, list[str]] = {}
            for bad in report.unreadable:
                reasons.setdefault(bad.line, []).append(bad.reason)
            for violation in report.violations:
                reasons.setdefault(violation.line or 0, []).append(violation.message)
            for line in sorted(reasons):
                yield _entry(source, line + before[number], reasons[line], None)
            for row in self.beside.get(number, ()):
                yield _entry(source, None, [row.reason], None)


def _entry(source: str, line: int | None, reasons: Sequence[str], record: str | None) -> bytes:
    told = {"source": source, "line": line, "reasons": list(reasons), "record": record}
    return json.dumps(told, ensure_ascii=False).encode(errors="replace") + b"\n"


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


def _write_slice(address: Address, plan: StagePlan, task: _BadSlice) -> Done:
    """Write the wrong records of a slice, each once, with all that is wrong with it."""
    part = task.part
    reasons: dict[int, list[str]] = {}
    beside: dict[str, dict[int, str]] = {}
    for bad in task.beside:
        beside.setdefault(bad.table_key, {})[bad.index] = bad.reason
    read: Counter[str] = Counter()
    passed = 0
    for block in blocks_of(part, plan.catalog):
        for unreadable in block.unreadable:
            said = f"column {unreadable.column}: {unreadable.reason}"
            reasons.setdefault(passed + unreadable.line, []).append(said)
        for key, records in block.records.items():
            first, others = read[key], beside.get(key, {})
            read[key] += records.rows.num_rows
            alone = _broken(plan, records, _within(task.broken.get(key, ()), first, records))
            shared = ((index, others[first + index]) for index in _within(sorted(others), first, records))
            for index, said in chain(alone, shared):
                reasons.setdefault(passed + int(records.lines[index]), []).append(said)
        passed += block.lines
    texts = _texts(part, set(reasons))
    content = b"".join(
        _entry(part.file.name, line + task.before, reasons[line], texts.get(line)) for line in sorted(reasons)
    )
    key = f"{scratch_folder(plan.job)}/bad-{part.number}.jsonl"
    open_objects(address).put(key, content)
    return Done(key)


def _within(places: Sequence[int], first: int, records: TypedRecords) -> list[int]:
    """Those of some places among the records of a type that lie in a block, counted from its first."""
    low, high = bisect_left(places, first), bisect_left(places, first + records.rows.num_rows)
    return [place - first for place in places[low:high]]


def _broken(plan: StagePlan, records: TypedRecords, places: Sequence[int]) -> Iterator[tuple[int, str]]:
    """What is wrong with records that break a rule by themselves."""
    rows = with_fresh_ids(records.rows.take(pa.array(places, pa.int64())))
    if isinstance(records.entity, NodeType) and len(places):
        embeds = dict.fromkeys(records.entity.embeds, True)
        rows, _ = fill_vectors(records.entity, rows, embeds, plan.embedder)
    for position, place in enumerate(places):
        found = Violations()
        check_rows(records.entity, rows.slice(position, 1), found)
        yield from ((place, violation.message) for violation in found.listed)


def _texts(part: Slice, wanted: set[int]) -> dict[int, Any]:
    """The records of some lines of a slice as they are written, cut if they are long; rows of Parquet have no such
    text, and a line that is too long to be read has none that could be shown."""
    if part.file.format is Format.PARQUET:
        return {}
    texts: dict[int, Any] = {}
    passed = 0
    for portion in portions(part):
        lines = portion.data.removesuffix(b"\n").split(b"\n") if portion.data else []
        for number in wanted & set(range(passed + 1, passed + len(lines) + 1)):
            line = lines[number - passed - 1].removesuffix(b"\r")
            texts[number] = line[:_LONGEST_KEPT].decode(errors="replace")
        passed += len(lines) + (portion.overlong is not None)
    return texts
