"""What a load staged, against one state of the branch after another: what may be committed, and how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from omnigraph.bulk.load.asking import raise_objections
from omnigraph.bulk.load.badrecords import BadRecords, BadRow
from omnigraph.bulk.load.checks import Ground
from omnigraph.bulk.load.committing import staged_tables
from omnigraph.bulk.load.joins import KeyJoins
from omnigraph.bulk.load.merging import Matches, losers, replaced_rows
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.load.origins import Origins
from omnigraph.bulk.load.sources import Slice
from omnigraph.bulk.load.staging import SliceReport, StagePlan
from omnigraph.bulk.runner import Runner
from omnigraph.bulk.scratch import Drops, broken_rows_of, record_indexes
from omnigraph.errors import DataError, RecordError, RecordProblem
from omnigraph.manifest.repository import Repository
from omnigraph.storage.files.datafiles import StagedFile
from omnigraph.write.base import Base
from omnigraph.write.evaluator import read_set
from omnigraph.write.protocol import Prepared


@dataclass(slots=True)
class Staged:
    """What the first pass found and left, in the order of the input."""

    reports: list[SliceReport]
    sources: list[str]
    files: dict[str, tuple[StagedFile, ...]] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    unembedded: set[str] = field(default_factory=set)

    def origins(self, slices: Sequence[Slice] = ()) -> Origins:
        """Where the records stand; the first reports are of slices of files, if there are such."""
        return Origins(slices, self.sources, self.reports)

    def count(self, mode: Mode) -> None:
        """Sum up what the reports say. A table of which nothing was staged changes if it is to be replaced."""
        files: dict[str, list[StagedFile]] = {}
        for report in self.reports:
            for key, number in report.records.items():
                self.counts[key] = self.counts.get(key, 0) + number
            for file in report.files:
                files.setdefault(file.table_key, []).append(file)
            self.unembedded |= report.unembedded
        replaced = mode is Mode.OVERWRITE
        self.files = {key: tuple(files.get(key, ())) for key in self.counts if replaced or key in files}

    @property
    def has_unreadable(self) -> bool:
        return any(report.unreadable_total for report in self.reports)


class Preparation:
    """The staged files against one state of the branch after another: asked once per state."""

    def __init__(
        self,
        runner: Runner,
        joins: KeyJoins,
        plan: StagePlan,
        staged: Staged,
        options: LoadOptions,
        slices: Sequence[Slice] = (),
        cores: int = 1,
    ) -> None:
        self.runner = runner
        self.joins = joins
        self.plan = plan
        self.staged = staged
        self.options = options
        self.cores = cores
        self.origins = staged.origins(slices)
        self.bad = BadRecords(options.bad_records, options.skip_bad, self.origins)
        self._checked: tuple[object, Ground, Matches] | None = None

    def require_readable(self, repository: Repository) -> None:
        """Raise what cannot be read, unless the load goes on without it."""
        if self.options.skip_bad or not self.staged.has_unreadable:
            return
        self.write_bad(repository)
        located = zip(self.origins.reports, self.origins.sources, self.origins.before, strict=True)
        problems = [
            RecordProblem(source, bad.line + before, bad.column, bad.reason)
            for report, source, before in located
            for bad in report.unreadable
        ]
        total = sum(report.unreadable_total for report in self.origins.reports)
        raise RecordError(problems[: self.plan.most], total)

    def check(self, base: Base) -> tuple[Ground, Matches]:
        """Ask everything there is to ask about the staged rows on top of a state; raises what objects."""
        tables = base.snapshot.tables
        pins = {key: (pin.location, pin.table_branch, pin.table_version) for key, pin in tables.items()}
        if self._checked is not None and self._checked[0] == pins:
            return self._checked[1], self._checked[2]
        ground = self._ground(base)
        ground = replace(ground, drops=losers(self.runner, self.joins, ground))
        if self.options.skip_bad:
            ground = replace(ground, drops=self._without_bad(ground))
        try:
            raise_objections(self.runner, self.joins, ground, self.cores, self.origins)
        except DataError:
            if self.bad.path is not None and not self.options.skip_bad and not ground.is_partial:
                self._note_what_would_be_left_out(ground)
            self.write_bad(base.repository)
            raise
        matches = replaced_rows(self.runner, self.joins, ground)
        self._checked = (pins, ground, matches)
        return ground, matches

    def _ground(self, base: Base) -> Ground:
        reports = self.staged.reports
        skips = self.options.skip_bad
        return Ground(
            base.snapshot,
            base.branch,
            self.options.mode,
            self.plan.targets,
            self.staged.files,
            left_out=self._broken() if skips else {},
            broken=frozenset((r.slice, key) for r in reports for key in r.breaking if not skips),
            is_partial=any(report.is_partial for report in reports),
            most=self.plan.most,
        )

    def _broken(self) -> dict[tuple[int, str], tuple[int, ...]]:
        return {(r.slice, key): tuple(places) for r in self.staged.reports for key, places in r.broken.items()}

    def _without_bad(self, ground: Ground) -> Drops:
        """What is not to be loaded if records that are wrong beside others are left out too; they are noted."""
        drops, rows = self.joins.bad_rows(ground)
        self.bad.note_beside({number: _as_records(ground, number, found) for number, found in rows.items()})
        return drops

    def _note_what_would_be_left_out(self, ground: Ground) -> None:
        files = [file for found in ground.files.values() for file in found]
        drops = ground.drops.with_more(broken_rows_of(files, self._broken()))
        self._without_bad(replace(ground, drops=drops))

    def write_bad(self, repository: Repository) -> None:
        """Write down the wrong records, where that was asked for."""
        self.bad.write(self.runner, repository.address, self.plan)

    def __call__(self, base: Base) -> Prepared[Mapping[str, int]]:
        """The change that the staged rows make; its result is how many records are left out, by table.

        The bad records of a load that goes on without them are written down before it is committed.
        """
        ground, matches = self.check(base)
        if self.options.skip_bad:
            self.write_bad(base.repository)
        return Prepared(
            {},
            self.bad.left_out() if self.options.skip_bad else {},
            repeatable=self.options.mode is not Mode.OVERWRITE,
            lineage_only=self.options.batch is None,
            stages=staged_tables(self.runner, ground, matches),
            reads=_reads(ground),
            message=self.bad.message(self.options.message),
        )


def _as_records(ground: Ground, number: int, rows: Sequence[BadRow]) -> list[BadRow]:
    """Rows of a slice by their places among its records, where they come by their places among what was staged."""
    found: list[BadRow] = []
    for key in dict.fromkeys(row.table_key for row in rows):
        mine = [row for row in rows if row.table_key == key]
        indexes = record_indexes([row.index for row in mine], ground.left_out.get((number, key), ()))
        found += [replace(row, index=index) for row, index in zip(mine, indexes, strict=True)]
    return found


def _reads(ground: Ground) -> frozenset[str]:
    """The tables whose rows decided whether the load is allowed."""
    empty = {key: ground.change(key, ["id"], ()) for key in ground.files}
    read = read_set(empty, ground.graph.catalog)
    for key in ground.files:
        kind, _, name = key.partition(":")
        if kind == "edge":
            edge = ground.graph.catalog.edges[name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
    return frozenset(read)
