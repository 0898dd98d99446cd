"""Records that are wrong: written down with their reasons, and left out of the load if that was asked for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import obstore
import pyarrow.compute as pc

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.repository import Repository
from omnigraph.pipeline.ranges import read_range, unpacked
from omnigraph.pipeline.scratch import scratch_folder
from omnigraph.pipeline.sources import SLICE_BYTES, Slice
from omnigraph.pipeline.staging import SliceReport, StagePlan, blocks_of, lines_of
from omnigraph.pipeline.tasks import Done, Runner
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.objects import open_objects
from omnigraph.storage.remoteobjects import s3_store
from omnigraph.storage.unavailable import translated
from omnigraph.write.engines import Format
from omnigraph.write.rules import Violations, broken_rows, check_rows

_LONGEST_KEPT: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class BadRow:
    """A record that can be read and is wrong beside others: the how-many-th of its type in its slice, and why."""

    table_key: str
    index: int
    reason: str


@dataclass(slots=True)
class BadRecords:
    """The wrong records of one load. ``path`` is where they are written, if anywhere."""

    path: str | None
    skips: bool
    count: int = 0
    parts: list[str] = field(default_factory=list)
    before: Sequence[int] = ()
    noted_rows: set[tuple[int, str, int]] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)

    def note_unreadable(
        self,
        repository: Repository,
        runner: Runner,
        plan: StagePlan,
        slices: Sequence[Slice],
        reports: Sequence[SliceReport],
        before: Sequence[int],
    ) -> None:
        """Write down what the first pass objected to."""
        self.before = before
        self.count += sum(report.unreadable_total for report in reports)
        for report in reports:
            self.left_out.update({key: len(places) for key, places in report.left_out.items()})
        self.count += self.left_out.total()
        if self.path is None:
            return
        concerned = [part for part in slices if reports[part.number].errors]
        work = partial(_write_unreadable, repository.address, runner.job, plan.catalog, tuple(before))
        self.parts += runner.run("writing bad records", work, concerned)

    def note_rows(
        self,
        address: Address,
        runner: Runner,
        catalog: Catalog,
        slices: Sequence[Slice],
        rows: Mapping[int, list[BadRow]],
    ) -> None:
        """Write down records that are wrong beside others, by slice; each once, however often it is found."""
        fresh = {
            number: [bad for bad in found if (number, bad.table_key, bad.index) not in self.noted_rows]
            for number, found in rows.items()
        }
        self.noted_rows |= {(n, bad.table_key, bad.index) for n, found in fresh.items() for bad in found}
        self.count += sum(map(len, fresh.values()))
        self.left_out.update(bad.table_key for found in fresh.values() for bad in found)
        if self.path is None:
            return
        tasks = [(part, fresh[part.number]) for part in slices if fresh.get(part.number)]
        work = partial(_write_rows, address, runner.job, catalog, tuple(self.before))
        self.parts += runner.run("writing bad records", work, tasks)

    def message(self, given: str | None) -> str | None:
        """The commit message: it says if records were left out."""
        if not self.skips or not self.count:
            return given
        said = f"left out {self.count} bad records"
        return said if given is None else f"{given} ({said})"

    def finish(self, address: Address) -> None:
        """Put everything that was written down where the caller wants it."""
        if self.path is None:
            return
        objects = open_objects(address)
        found = (objects.get(key) for key in self.parts)
        _write_all(self.path, (part.content for part in found if part is not None), address.options)


def _write_all(path: str, parts: Iterable[bytes], options: Mapping[str, str]) -> None:
    if path.startswith("s3://"):
        bucket, _, key = path.removeprefix("s3://").partition("/")
        with translated(path):
            obstore.put(s3_store(parse_address(f"s3://{bucket}", options)), key, iter(parts))
        return
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("wb") as file:
        for part in parts:
            file.write(part)


def _write_unreadable(address: Address, job: str, catalog: Catalog, before: tuple[int, ...], part: Slice) -> Done:
    """Write the records of a slice that cannot be read, and those that break a rule by themselves."""
    reasons: dict[int, list[str]] = {}
    passed = 0
    for block in blocks_of(part, catalog):
        for bad in block.unreadable:
            reasons.setdefault(passed + bad.line, []).append(f"column {bad.column}: {bad.reason}")
        for records in block.records.values():
            broken = pc.indices_nonzero(broken_rows(records.entity, records.rows)).to_pylist()
            for index in broken:
                found = Violations()
                check_rows(records.entity, records.rows.slice(index, 1), found)
                said = [violation.message for violation in found.listed]
                reasons.setdefault(passed + int(records.lines[index]), []).extend(said)
        passed += block.lines
    return _written(address, job, f"unreadable-{part.number}", part, before, reasons)


def _write_rows(
    address: Address, job: str, catalog: Catalog, before: tuple[int, ...], task: tuple[Slice, list[BadRow]]
) -> Done:
    part, rows = task
    lines = lines_of(part, catalog, {bad.table_key for bad in rows})
    reasons: dict[int, list[str]] = {}
    for bad in rows:
        reasons.setdefault(int(lines[bad.table_key][bad.index]), []).append(bad.reason)
    return _written(address, job, f"rows-{part.number}-{len(rows)}-{rows[0].index}", part, before, reasons)


def _written(
    address: Address, job: str, name: str, part: Slice, before: tuple[int, ...], reasons: Mapping[int, list[str]]
) -> Done:
    start = part.first_row if part.file.format is Format.PARQUET else before[part.number]
    texts = _texts(part, set(reasons))
    entries = [
        {"source": part.file.name, "line": line + start, "reasons": reasons[line], "record": texts.get(line)}
        for line in sorted(reasons)
    ]
    key = f"{scratch_folder(job)}/{name}.jsonl"
    content = "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
    open_objects(address).put(key, content.encode(errors="replace"))
    return Done(key)


def _texts(part: Slice, wanted: set[int]) -> dict[int, Any]:
    """The records of some lines of a slice as they are written, cut if they are very long; rows of Parquet have
    no such text."""
    if part.file.format is Format.PARQUET:
        return {}
    numbered = enumerate(_lines(part), 1)
    return {n: line[:_LONGEST_KEPT].decode(errors="replace") for n, line in numbered if n in wanted}


def _lines(part: Slice) -> Iterator[bytes]:
    file = part.file
    if file.compression is None:
        yield from read_range(file.name, file.options, part.start, part.stop).data.split(b"\n")
        return
    for portion in unpacked(file.name, file.options, file.compression, SLICE_BYTES):
        yield from portion.data.removesuffix(b"\n").split(b"\n")
