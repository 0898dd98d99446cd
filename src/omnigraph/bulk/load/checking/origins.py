"""Where the records of a load come from: the file and line behind a staged row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.sources.reading import lines_of
from omnigraph.bulk.load.sources.slices import Slice
from omnigraph.bulk.load.staging.stager import SliceReport
from omnigraph.bulk.masks import record_positions
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.errors import Violation
from omnigraph.storage.files.datafiles import StagedFile, read_file

_Row = tuple[str, str]
"""A row: its table, and its id."""
_SourceLine = tuple[str, int]
"""The name of a source, and a line of it."""


@dataclass(frozen=True, slots=True)
class Origins:
    """The input of a load: slices of files, which can be read again, then parts of DataFrames, which cannot.

    ``sources`` has the name of each, and ``reports`` how many lines it has and which of its records are bad.
    """

    slices: Sequence[Slice]
    sources: Sequence[str]
    reports: Sequence[SliceReport]

    @property
    def lines_before(self) -> list[int]:
        """How many lines of its source come before each slice or part."""
        lines: dict[str, int] = {}
        counted: list[int] = []
        for report, source in zip(self.reports, self.sources, strict=True):
            counted.append(lines.get(source, 0))
            lines[source] = counted[-1] + report.lines
        return counted

    def line_of(self, number: int, table_key: str, position: int) -> _SourceLine | None:
        """The line of a record of a source that cannot be read again, if its report has kept the lines."""
        lines = self.reports[number].row_lines.get(table_key)
        if lines is None:
            return None
        return self.sources[number], int(lines[position]) + self.lines_before[number]

    def invalid_frame_rows(self) -> dict[_Row, _SourceLine]:
        """The lines of the rows of DataFrames that broke a rule when they were read."""
        files = len(self.slices)
        frames = zip(self.reports[files:], self.sources[files:], self.lines_before[files:], strict=True)
        return {
            (violation.table_key, violation.row_id): (source, violation.line + before)
            for report, source, before in frames
            for violation in report.violations
            if violation.row_id is not None and violation.line is not None
        }


@dataclass(frozen=True, slots=True)
class _Record:
    """A record by its slice, and its position among the records of its type in the slice."""

    slice: int
    position: int


def with_source_lines(
    runner: Runner, load: StagedLoad, violations: Sequence[Violation], origins: Origins
) -> list[Violation]:
    """The violations with the file and line of their records. One without a record in the load, such as an edge
    that was committed before, stays as it is."""
    wanted: dict[str, set[str]] = {}
    for violation in violations:
        if violation.row_id is not None and violation.rule != "card":
            wanted.setdefault(violation.table_key, set()).add(violation.row_id)
    tasks = [(file, frozenset(wanted[key])) for key in wanted for file in load.files.get(key, ())]
    found: dict[_Row, list[_Record]] = {}
    results = runner.run("finding records", partial(_find, load), tasks)
    for (file, _), records in zip(tasks, results, strict=True):
        for row_id, record in records:
            found.setdefault((file.table_key, row_id), []).append(record)
    # Of records with one id the second is reported: the first that should not be there.
    chosen = {row: records[min(1, len(records) - 1)] for row, records in found.items()}
    lines = origins.invalid_frame_rows() | _source_lines(runner, load, chosen, origins)
    return [_located(violation, lines) for violation in violations]


def _located(violation: Violation, lines: dict[_Row, _SourceLine]) -> Violation:
    line = lines.get((violation.table_key, violation.row_id or ""))
    if line is None or violation.rule == "card":
        return violation
    return replace(violation, source=line[0], line=line[1])


def _find(load: StagedLoad, task: tuple[StagedFile, frozenset[str]]) -> TaskResult[list[tuple[str, _Record]]]:
    """The rows of a file that have one of some ids, with the records they came from."""
    file, wanted = task
    ids = read_file(load.targets[file.table_key], file.name, ["id"])
    at = ids.append_column("position", pa.array(np.arange(file.rows) + file.first))
    kept = load.excluded.filter(at, file)
    rows = kept.filter(pc.is_in(kept["id"], value_set=pa.array(sorted(wanted))))
    skipped = load.skipped.get((file.slice, file.table_key), ())
    positions = record_positions(rows["position"].to_pylist(), skipped)
    found = zip(rows["id"].to_pylist(), positions, strict=True)
    return TaskResult([(row_id, _Record(file.slice, position)) for row_id, position in found])


def _source_lines(
    runner: Runner, load: StagedLoad, records: dict[_Row, _Record], origins: Origins
) -> dict[_Row, _SourceLine]:
    """The file and line of each record. The slices that have any of them are read again."""
    by_slice: dict[int, dict[_Row, int]] = {}
    for row, record in records.items():
        by_slice.setdefault(record.slice, {})[row] = record.position
    tasks = [(part, by_slice[part.number]) for part in origins.slices if part.number in by_slice]
    before = origins.lines_before
    lines: dict[_Row, _SourceLine] = {}
    results = runner.run("finding lines", partial(_line_numbers, load), tasks)
    for (part, _), found in zip(tasks, results, strict=True):
        lines |= {row: (part.file.name, line + before[part.number]) for row, line in found.items()}
    for row, record in records.items():
        if record.slice >= len(origins.slices):
            kept = origins.line_of(record.slice, row[0], record.position)
            if kept is not None:
                lines[row] = kept
    return lines


def _line_numbers(load: StagedLoad, task: tuple[Slice, dict[_Row, int]]) -> TaskResult[dict[_Row, int]]:
    part, wanted = task
    by_table = lines_of(part, load.snapshot.catalog, {table_key for table_key, _ in wanted}, load.blobs)
    return TaskResult({(key, row_id): int(by_table[key][position]) for (key, row_id), position in wanted.items()})
