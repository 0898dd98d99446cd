"""Asking everything a load must be asked, by whichever way fits, and saying where objections stand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConstraintViolation, Violation
from omnigraph.pipeline import checks
from omnigraph.pipeline.checks import Findings, Ground, answer, questions, raise_found
from omnigraph.pipeline.scratch import kept_rows
from omnigraph.pipeline.shuffled import ask_shuffled, distinct
from omnigraph.pipeline.sources import Slice
from omnigraph.pipeline.staging import lines_of
from omnigraph.pipeline.tasks import Done, Runner
from omnigraph.storage.datafiles import StagedFile, read_file
from omnigraph.write.engines import Format


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: the slice it was read in, and the how-many-th of its type it is there."""

    slice: int
    index: int


def raise_objections(
    runner: Runner, ground: Ground, cores: int, slices: Sequence[Slice], before: Sequence[int]
) -> None:
    """Ask every question; raise what any answer objects to, with the files and lines of the records."""
    asked = questions(ground, cores)
    small = [question for question in asked if question.memory(ground) <= checks.KEY_BUDGET]
    large = [question for question in asked if question not in small]
    answers: list[Findings] = runner.run("checking keys and ends", partial(answer, ground), small)
    answers += [ask_shuffled(runner, ground, question) for question in distinct(large)]
    try:
        raise_found(ground, answers)
    except ConstraintViolation as error:
        placed = with_places(runner, ground, error.violations, slices, before)
        raise ConstraintViolation(sorted(placed, key=_by_place), error.total) from None


def _by_place(violation: Violation) -> tuple[bool, str, int, str]:
    return violation.source is None, violation.source or "", violation.line or 0, violation.rule


def with_places(
    runner: Runner, ground: Ground, violations: Sequence[Violation], slices: Sequence[Slice], before: Sequence[int]
) -> list[Violation]:
    """The violations with the file and line of the record each is about; one that no record of the load stands
    for, like an edge that was there before, stays without."""
    wanted: dict[str, set[str]] = {}
    for violation in violations:
        if violation.row_id is not None and violation.rule != "card":
            wanted.setdefault(violation.table_key, set()).add(violation.row_id)
    tasks = [(file, frozenset(wanted[key])) for key in wanted for file in ground.files.get(key, ())]
    found: dict[tuple[str, str], list[Place]] = {}
    for (file, _), places in zip(tasks, runner.run("finding records", partial(_find, ground), tasks), strict=True):
        for row_id, place in places:
            found.setdefault((file.table_key, row_id), []).append(place)
    chosen = {key: _chosen(places) for key, places in found.items()}
    lines = _lines(runner, ground, chosen, slices, before)
    return [
        _placed(violation, lines.get((violation.table_key, violation.row_id or ""))) for violation in violations
    ]


def _placed(violation: Violation, line: tuple[str, int] | None) -> Violation:
    return violation if line is None else replace(violation, source=line[0], line=line[1])


def _chosen(places: Sequence[Place]) -> Place:
    """Of a repeated record the second, which is the first that is too much."""
    return places[min(1, len(places) - 1)]


def _find(ground: Ground, task: tuple[StagedFile, frozenset[str]]) -> Done:
    """The rows of a file that have one of some ids."""
    file, wanted = task
    ids = read_file(ground.targets[file.table_key], file.name, ["id"])
    at = ids.append_column("index", pa.array(np.arange(file.rows) + file.first))
    kept = kept_rows(at, file, ground.drops)
    mine = kept.filter(pc.is_in(kept["id"], value_set=pa.array(sorted(wanted))))
    places = zip(mine["id"].to_pylist(), mine["index"].to_pylist(), strict=True)
    return Done([(row_id, Place(file.slice, index)) for row_id, index in places])


def _lines(
    runner: Runner,
    ground: Ground,
    places: dict[tuple[str, str], Place],
    slices: Sequence[Slice],
    before: Sequence[int],
) -> dict[tuple[str, str], tuple[str, int]]:
    """The file and line of each place; slices are read again for that, as far as anything stands in them."""
    concerned = [part for part in slices if any(place.slice == part.number for place in places.values())]
    indexes = [
        {key: place.index for key, place in places.items() if place.slice == part.number} for part in concerned
    ]
    tasks = list(zip(concerned, indexes, strict=True))
    lines: dict[tuple[str, str], tuple[str, int]] = {}
    for (part, _), found in zip(
        tasks, runner.run("finding lines", partial(_line_numbers, ground), tasks), strict=True
    ):
        start = part.first_row if part.file.format is Format.PARQUET else before[part.number]
        lines |= {key: (part.file.name, line + start) for key, line in found.items()}
    return lines


def _line_numbers(ground: Ground, task: tuple[Slice, dict[tuple[str, str], int]]) -> Done:
    part, wanted = task
    by_table = lines_of(part, ground.graph.catalog, {table_key for table_key, _ in wanted})
    return Done({(key, row_id): int(by_table[key][index]) for (key, row_id), index in wanted.items()})
