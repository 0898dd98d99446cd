"""Preparing the commit of a load: its staged files, checked against one state of the branch after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph.bulk.load.checking.bad_records import BadRecords, RejectedRow
from omnigraph.bulk.load.checking.checks import StagedLoad
from omnigraph.bulk.load.checking.joins import KeyJoins
from omnigraph.bulk.load.checking.origins import Origins
from omnigraph.bulk.load.checking.validation import validate_load
from omnigraph.bulk.load.options import LoadOptions, Mode
from omnigraph.bulk.load.sources.slices import Slice
from omnigraph.bulk.load.staging.merge import Matches, replaced_rows, superseded_rows
from omnigraph.bulk.load.staging.stager import SliceReport, StagePlan
from omnigraph.bulk.load.staging.transactions import table_stages
from omnigraph.bulk.load.staging.unreadable import later
from omnigraph.bulk.load.topology import EndsFile, kept_ends, save_topologies
from omnigraph.bulk.masks import ExcludedRows, excluded_records, record_positions
from omnigraph.bulk.runner import Runner
from omnigraph.errors import DataError, RecordError, RecordProblem, SchemaChanged
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage.external.sources import require_room
from omnigraph.storage.files.datafiles import StagedFile
from omnigraph.write.base import Base
from omnigraph.write.evaluator import read_set
from omnigraph.write.protocol import Prepared
from omnigraph.write.tally import Tally


@dataclass(frozen=True, slots=True)
class StagedInput:
    """What the first step of a load staged: files and numbers of records by table, in the order of the input.

    ``anonymous`` are the numbers of staged rows whose ids are made up for them.
    A table whose records were all skipped has an empty tuple of files if the load overwrites it, else no entry.
    """

    origins: Origins
    files: dict[str, tuple[StagedFile, ...]]
    counts: dict[str, int]
    anonymous: dict[str, int]
    unembedded: frozenset[str]

    @classmethod
    def of(
        cls, reports: Sequence[SliceReport], sources: Sequence[str], slices: Sequence[Slice], mode: Mode
    ) -> StagedInput:
        """The sum of all reports."""
        files: dict[str, list[StagedFile]] = {}
        counts: dict[str, int] = {}
        anonymous: dict[str, int] = {}
        for report in reports:
            for key, number in report.records.items():
                counts[key] = counts.get(key, 0) + number
            for key, number in report.anonymous.items():
                anonymous[key] = anonymous.get(key, 0) + number
            for file in report.files:
                files.setdefault(file.table_key, []).append(file)
        changed = {key: tuple(files.get(key, ())) for key in counts if mode is Mode.OVERWRITE or key in files}
        unembedded = frozenset(name for report in reports for name in report.unembedded)
        return cls(Origins(slices, sources, reports), changed, counts, anonymous, unembedded)

    @property
    def reports(self) -> Sequence[SliceReport]:
        return self.origins.reports


class LoadPreparer:
    """Prepares the commit of a load. The staged files are checked once for each state of the branch."""

    def __init__(
        self, runner: Runner, joins: KeyJoins, plan: StagePlan, staged: StagedInput, options: LoadOptions
    ) -> None:
        self.runner = runner
        self.joins = joins
        self.plan = plan
        self.staged = staged
        self.options = options
        self.bad = BadRecords(options.bad_records, options.skip_bad, staged.origins)
        self._checked: tuple[object, StagedLoad, Matches] | None = None
        self._ends: list[EndsFile] = []

    def require_readable(self, repository: Repository) -> None:
        """Raise a RecordError if records are unreadable, unless bad records are skipped, and a ResourceLimit if
        all tasks together have copied too many bytes."""
        origins = self.staged.origins
        require_room(self.plan.blobs.settings, sum(report.copied_bytes for report in origins.reports))
        total = sum(report.unreadable_total for report in origins.reports)
        if self.options.skip_bad or not total:
            return
        self.write_bad(repository)
        problems = [
            RecordProblem(source, bad.line + before, bad.column, bad.reason)
            for report, source, before in zip(origins.reports, origins.sources, origins.lines_before, strict=True)
            for bad in report.unreadable
        ]
        tally = Tally()
        for report, before in zip(origins.reports, origins.lines_before, strict=True):
            for group in report.unreadable_groups.groups():
                tally.add(later(group, before))
        raise RecordError(problems[: self.plan.error_limit], total, tally.summary())

    def check(self, base: Base) -> tuple[StagedLoad, Matches]:
        """Check the staged rows on top of a state of the branch; raise what is wrong with them."""
        tables = base.snapshot.tables
        pins = {key: (pin.location, pin.table_branch, pin.table_version) for key, pin in tables.items()}
        if base.snapshot.schema_digest != self.plan.schema_digest:
            raise SchemaChanged(base.branch.name)
        if self._checked is not None and self._checked[0] == pins:
            return self._checked[1], self._checked[2]
        runner, joins, settings = self.runner, self.joins, self.options.settings
        load = self._staged_load(base)
        load = replace(load, excluded=superseded_rows(runner, joins, load, settings))
        if self.options.skip_bad:
            load = replace(load, excluded=self._without_rejected(load))
        load = replace(load, ends=kept_ends(load, self.plan.job, settings.topology_from))
        try:
            self._ends = validate_load(runner, joins, load, self.staged.origins, settings.key_budget)
        except DataError:
            if self.bad.path is not None and not self.options.skip_bad and not load.is_partial:
                self._find_rejected(load)
            self.write_bad(base.repository)
            raise
        matches = replaced_rows(runner, joins, load, settings)
        self._checked = (pins, load, matches)
        return load, matches

    def _staged_load(self, base: Base) -> StagedLoad:
        reports = self.staged.reports
        skip = self.options.skip_bad
        return StagedLoad(
            base.snapshot,
            base.branch,
            self.options.mode,
            self.plan.targets,
            self.staged.files,
            skipped=self._invalid() if skip else {},
            invalid=frozenset((r.slice, key) for r in reports for key in r.invalid_tables if not skip),
            is_partial=any(report.is_partial for report in reports),
            error_limit=self.plan.error_limit,
            blobs=self.plan.blobs,
        )

    def _invalid(self) -> dict[tuple[int, str], tuple[int, ...]]:
        return {(r.slice, key): tuple(found) for r in self.staged.reports for key, found in r.invalid.items()}

    def _without_rejected(self, load: StagedLoad) -> ExcludedRows:
        """The excluded rows, with those that are rejected, which are set as the bad records of this state."""
        excluded, rows = self.joins.rejected(load)
        self.bad.set_rejected({number: _as_records(load, number, found) for number, found in rows.items()})
        return excluded

    def _find_rejected(self, load: StagedLoad) -> None:
        """Find the records that would be rejected if bad ones were skipped, so that they can be written down."""
        files = [file for found in load.files.values() for file in found]
        excluded = load.excluded.merged(excluded_records(files, self._invalid()))
        self._without_rejected(replace(load, excluded=excluded))

    def write_bad(self, repository: Repository) -> None:
        """Write the bad records to the caller's file, if there is one."""
        self.bad.write(self.runner, repository.address, self.plan)

    def save_topologies(self, repository: Repository, branch: Branch) -> None:
        """Save the topologies of edges whose ends the checks have found; the load is committed to the branch."""
        if self._checked is not None:
            save_topologies(self.runner, self._checked[1], self._ends, lambda: repository.snapshot(branch))

    def __call__(self, base: Base) -> Prepared[Mapping[str, int]]:
        """The change that the staged rows make; its result is the number of skipped records, by table.

        If bad records are skipped, they are written down before the commit.
        """
        load, matches = self.check(base)
        if self.options.skip_bad:
            self.write_bad(base.repository)
        return Prepared(
            {},
            self.bad.readable_counts() if self.options.skip_bad else {},
            repeatable=self.options.mode is not Mode.OVERWRITE,
            stages=table_stages(self.runner, load, matches),
            reads=_reads(load),
            message=self.bad.commit_message(self.options.message),
        )


def _as_records(load: StagedLoad, number: int, rows: Sequence[RejectedRow]) -> list[RejectedRow]:
    """Rejected rows of a slice by their positions among its records, from those among its staged rows."""
    found: list[RejectedRow] = []
    for key in dict.fromkeys(row.table_key for row in rows):
        of_table = [row for row in rows if row.table_key == key]
        skipped = load.skipped.get((number, key), ())
        positions = record_positions([row.position for row in of_table], skipped)
        found += [replace(row, position=position) for row, position in zip(of_table, positions, strict=True)]
    return found


def _reads(load: StagedLoad) -> frozenset[str]:
    """The tables whose rows decided whether the load may be committed."""
    catalog = load.snapshot.catalog
    read = read_set({key: load.change(key, ["id"], ()) for key in load.files}, catalog)
    for key in load.files:
        kind, _, name = key.partition(":")
        if kind == "edge":
            edge = catalog.edges[name]
            read |= {f"node:{edge.source}", f"node:{edge.target}"}
    return frozenset(read)
