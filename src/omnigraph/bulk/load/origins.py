"""Where the records of a load stand: the file and line behind a staged row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.checks import Ground
from omnigraph.bulk.load.sources import Slice
from omnigraph.bulk.load.staging import SliceReport, lines_of
from omnigraph.bulk.runner import Done, Runner
from omnigraph.bulk.scratch import kept_rows, record_indexes
from omnigraph.errors import Violation
from omnigraph.storage.files.datafiles import StagedFile, read_file

_Key = tuple[str, str]
"""A row: its table, and its id."""


@dataclass(frozen=True, slots=True)
class Origins:
    """What was read: slices of files, which can be read again, and behind them parts of DataFrames, which cannot.

    ``sources`` has the name of each, and ``reports`` tells how many lines it has and what is wrong with them.
    """

    slices: Sequence[Slice]
    sources: Sequence[str]
    reports: Sequence[SliceReport]

    @property
    def before(self) -> list[int]:
        """How many lines of its source come before each."""
        lines: dict[str, int] = {}
        counted: list[int] = []
        for report, source in zip(self.reports, self.sources, strict=True):
            counted.append(lines.get(source, 0))
            lines[source] = counted[-1] + report.lines
        return counted

    def noted(self) -> dict[_Key, tuple[str, int]]:
        """The places of rows of DataFrames that were found to break a rule when they were read."""
        files = len(self.slices)
        frames = zip(self.reports[files:], self.sources[files:], self.before[files:], strict=True)
        return {
            (violation.table_key, violation.row_id): (source, violation.line + before)
            for report, source, before in frames
            for violation in report.violations
            if violation.row_id is not None and violation.line is not None
        }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a record stands: the slice it was read in, and the how-many-th of its type it is there."""

    slice: int
    index: int


def with_places(
    runner: Runner, ground: Ground, violations: Sequence[Violation], origins: Origins
) -> list[Violation]:
    """The violations with the file and line of the record each is about; one that no record of the load stands
    for, like an edge that was there before, stays without."""
    wanted: dict[str, set[str]] = {}
    for violation in violations:
        if violation.row_id is not None and violation.rule != "card":
            wanted.setdefault(violation.table_key, set()).add(violation.row_id)
    tasks = [(file, frozenset(wanted[key])) for key in wanted for file in ground.files.get(key, ())]
    found: dict[_Key, list[_Place]] = {}
    for (file, _), places in zip(tasks, runner.run("finding records", partial(_find, ground), tasks), strict=True):
        for row_id, place in places:
            found.setdefault((file.table_key, row_id), []).append(place)
    chosen = {key: _chosen(places) for key, places in found.items()}
    lines = origins.noted() | _lines(runner, ground, chosen, origins)
    return [_placed(violation, lines) for violation in violations]


def _placed(violation: Violation, lines: dict[_Key, tuple[str, int]]) -> Violation:
    place = lines.get((violation.table_key, violation.row_id or ""))
    if place is None or violation.rule == "card":
        return violation
    return replace(violation, source=place[0], line=place[1])


def _chosen(places: Sequence[_Place]) -> _Place:
    """Of a repeated record the second, which is the first that is too much."""
    return places[min(1, len(places) - 1)]


def _find(ground: Ground, task: tuple[StagedFile, frozenset[str]]) -> Done:
    """The rows of a file that have one of some ids."""
    file, wanted = task
    ids = read_file(ground.targets[file.table_key], file.name, ["id"])
    at = ids.append_column("index", pa.array(np.arange(file.rows) + file.first))
    kept = kept_rows(at, file, ground.drops)
    mine = kept.filter(pc.is_in(kept["id"], value_set=pa.array(sorted(wanted))))
    left_out = ground.left_out.get((file.slice, file.table_key), ())
    indexes = record_indexes(mine["index"].to_pylist(), left_out)
    places = zip(mine["id"].to_pylist(), indexes, strict=True)
    return Done([(row_id, _Place(file.slice, index)) for row_id, index in places])


def _lines(
    runner: Runner, ground: Ground, places: dict[_Key, _Place], origins: Origins
) -> dict[_Key, tuple[str, int]]:
    """The file and line of each place; slices are read again for that, as far as anything stands in them."""
    by_slice: dict[int, dict[_Key, int]] = {}
    for key, place in places.items():
        by_slice.setdefault(place.slice, {})[key] = place.index
    tasks = [(part, by_slice[part.number]) for part in origins.slices if part.number in by_slice]
    before = origins.before
    lines: dict[_Key, tuple[str, int]] = {}
    for (part, _), found in zip(
        tasks, runner.run("finding lines", partial(_line_numbers, ground), tasks), strict=True
    ):
        lines |= {key: (part.file.name, line + before[part.number]) for key, line in found.items()}
    return lines


def _line_numbers(ground: Ground, task: tuple[Slice, dict[_Key, int]]) -> Done:
    part, wanted = task
    by_table = lines_of(part, ground.graph.catalog, {table_key for table_key, _ in wanted})
    return Done({(key, row_id): int(by_table[key][index]) for (key, row_id), index in wanted.items()})
