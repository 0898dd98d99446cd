"""Rules that involve several rows, checked on the key columns of staged files by tasks on workers.

A check reads the few columns it needs, from the staged files and from the pinned tables. `known` confirms quickly
that keys and ends are right; everything else, and all that is wrong, is found by the evaluator of every other
write. Checks whose keys exceed the memory of a task are left to `joins`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.bulk.load.checking.known import KnownIds, SharedIds
from omnigraph.bulk.load.options import Mode
from omnigraph.bulk.load.topology import EndsFile, KeptEnds
from omnigraph.bulk.masks import ExcludedRows
from omnigraph.bulk.runner import TaskResult
from omnigraph.errors import ErrorGroup, Violation
from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.external.sources import BlobSources
from omnigraph.storage.files.datafiles import Destination, StagedFile, read_file
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import (
    check_cardinality,
    check_kept_edges,
    check_unique,
    missing_ends,
    note_dangling,
)
from omnigraph.write.rules import SHOWN, Violations, check_rows

_COMMITTED_KEY_BYTES: Final = 32
"""About how much memory the key of a committed row takes."""


@dataclass(frozen=True, slots=True)
class StagedLoad:
    """The staged files of a load, and the snapshot that they are to change.

    ``excluded`` are staged rows that are not loaded. ``skipped`` has, by slice and table, the positions of records
    that were not staged. ``invalid`` names the slices and tables with staged rows that break a rule by themselves.
    A load that ``is_partial`` was not read to its end, so only rules of single rows can be checked. Of each kind
    of error the first ``error_limit`` are listed. Checks keep the positions of edge ends under the prefix that
    ``ends`` has for a table. Records whose ``blobs`` may not be copied were unreadable.
    """

    snapshot: Snapshot
    branch: Branch
    mode: Mode
    targets: Mapping[str, Destination]
    files: Mapping[str, tuple[StagedFile, ...]]
    excluded: ExcludedRows = field(default_factory=ExcludedRows)
    skipped: Mapping[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    invalid: frozenset[tuple[int, str]] = frozenset()
    is_partial: bool = False
    error_limit: int = SHOWN
    ends: Mapping[str, str] = field(default_factory=dict)
    blobs: BlobSources = field(default_factory=BlobSources)

    @property
    def replaces(self) -> bool:
        """Do the staged rows of a table replace all committed ones?"""
        return self.mode is Mode.OVERWRITE

    def base(self) -> Base:
        """The snapshot as the evaluator reads it."""
        repository = Repository.at(self.snapshot.address, read_only=True)
        return Base(repository, self.branch, self.snapshot)

    def has_explicit_ids(self, table_key: str) -> bool:
        """Do any staged rows of a table bring their own ids?"""
        return any(file.explicit_ids for file in self.files.get(table_key, ()))

    def keys(self, table_key: str, columns: Sequence[str], files: Iterable[StagedFile] | None = None) -> pa.Table:
        """Some columns of the staged rows that are loaded, of all files of a table or of some."""
        target = self.targets[table_key]
        chosen = self.files.get(table_key, ()) if files is None else files
        tables = [self.excluded.filter(read_file(target, file.name, columns), file) for file in chosen]
        if not tables:
            return pa.schema([target.schema.field(name) for name in columns]).empty_table()
        return pa.concat_tables(tables)

    def change(
        self, table_key: str, columns: Sequence[str], files: Iterable[StagedFile] | None = None
    ) -> TableDelta:
        """The change of a table, reduced to some columns."""
        explicit = self.has_explicit_ids(table_key)
        return TableDelta(
            table_key,
            self.keys(table_key, columns, files),
            replaces=self.mode is Mode.OVERWRITE,
            strict=self.mode is Mode.APPEND and explicit,
            fresh=self.mode is not Mode.OVERWRITE and not explicit,
        )

    def key_bytes(self, table_key: str) -> int:
        """About how much memory the keys of a table take once the load is applied."""
        staged = sum(file.key_bytes for file in self.files.get(table_key, ()))
        return staged if self.mode is Mode.OVERWRITE else staged + self.committed_key_bytes(table_key)

    def committed_key_bytes(self, table_key: str) -> int:
        """About how much memory the keys of the committed rows of a table take."""
        return self.snapshot.rows(table_key) * _COMMITTED_KEY_BYTES


class Rule(StrEnum):
    """What a check is about."""

    IDS = "ids"
    ROWS = "rows"
    UNIQUE = "unique"
    ENDS = "ends"
    KEPT = "kept"
    CARD = "card"


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of one table. A unique rule has its columns; a check of edge ends has the side and some files."""

    rule: Rule
    table_key: str
    columns: tuple[str, ...] = ()
    files: tuple[StagedFile, ...] = ()

    @property
    def ungrouped(self) -> Check:
        """The same check for all files of the table."""
        return replace(self, files=())

    def known(self, load: StagedLoad) -> str:
        """The table whose ids the check needs: that of the nodes at one end of edges, else its own."""
        entity = load.snapshot.entity(self.table_key)
        if self.rule is not Rule.ENDS or not isinstance(entity, EdgeType):
            return self.table_key
        return f"node:{entity.source if self.columns == ('src',) else entity.target}"

    def memory(self, load: StagedLoad) -> int:
        """About how many bytes of keys the check holds at once."""
        if self.rule is Rule.ROWS:
            return 0
        size = load.key_bytes(self.table_key)
        entity = load.snapshot.entity(self.table_key)
        if self.rule is Rule.ENDS and isinstance(entity, EdgeType):
            return sum(file.key_bytes for file in self.files) + load.key_bytes(self.known(load))
        if self.rule is Rule.KEPT and isinstance(entity, NodeType):
            edges = load.snapshot.catalog.incident[entity.name]
            return size + sum(load.committed_key_bytes(edge.table_key) for edge in edges)
        return size


@dataclass(slots=True)
class CheckResult:
    """What a check found: violations, ids that several records have, ids that exist already; the first of each,
    and how many there are. ``groups`` counts the violations by reason. A check of ends may have kept their
    positions."""

    table_key: str
    violations: list[Violation] = field(default_factory=list)
    total: int = 0
    groups: tuple[ErrorGroup, ...] = ()
    repeated: list[tuple[str, int]] = field(default_factory=list)
    repeated_total: int = 0
    existing: list[str] = field(default_factory=list)
    existing_total: int = 0
    ends: tuple[EndsFile, ...] = ()


def checks_of(load: StagedLoad, groups: int) -> list[Check]:
    """All checks that a load must pass, in the order of the evaluator. Edges are checked in groups of files."""
    rows = [
        Check(Rule.ROWS, file.table_key, files=(file,))
        for files in load.files.values()
        for file in files
        if (file.slice, file.table_key) in load.invalid
    ]
    if load.is_partial:
        return rows
    ids = [
        Check(Rule.IDS, table_key)
        for table_key in load.files
        if load.has_explicit_ids(table_key) and load.mode is not Mode.MERGE
    ]
    uniques = [
        Check(Rule.UNIQUE, table_key, tuple(group))
        for table_key in load.files
        for group in load.snapshot.entity(table_key).uniques
    ]
    return [*ids, *rows, *uniques, *_edge_checks(load, groups)]


def _edge_checks(load: StagedLoad, groups: int) -> Iterator[Check]:
    for table_key, files in load.files.items():
        entity = load.snapshot.entity(table_key)
        if isinstance(entity, EdgeType):
            for side in ("src", "dst"):
                for group in _grouped(files, groups):
                    yield Check(Rule.ENDS, table_key, (side,), group)
            if entity.minimum or entity.maximum is not None:
                yield Check(Rule.CARD, table_key)
        elif load.mode is Mode.OVERWRITE and load.snapshot.rows(table_key):
            yield Check(Rule.KEPT, table_key)


def _grouped(files: Sequence[StagedFile], groups: int) -> list[tuple[StagedFile, ...]]:
    """The files in up to so many groups of about the same number of rows, with a task for each.

    A file belongs to the group in whose share of all rows its middle row lies.
    """
    total = sum(file.rows for file in files)
    grouped: list[list[StagedFile]] = [[] for _ in range(groups)]
    before = 0
    for file in files:
        grouped[min(groups - 1, (2 * before + file.rows) * groups // (2 * total or 1))].append(file)
        before += file.rows
    return [tuple(group) for group in grouped if group]


def tasks_of(load: StagedLoad, checks: Sequence[Check]) -> list[tuple[Check, ...]]:
    """The checks by task: both ends of the same files of edges are checked by one, and the ids of their nodes by
    the first that needs them; every other check is a task of its own."""
    ids = {check.table_key: check for check in checks if check.rule is Rule.IDS}
    groups: dict[Check, list[Check]] = {}
    for check in checks:
        if check.rule is Rule.ENDS:
            group = groups.setdefault(replace(check, columns=()), [])
            if check.known(load) in ids:
                group.append(ids.pop(check.known(load)))
            group.append(check)
    together = {check for group in groups.values() for check in group}
    return [*map(tuple, groups.values()), *((check,) for check in checks if check not in together)]


def run_checks(shared: SharedIds, checks: Sequence[Check]) -> TaskResult[list[CheckResult]]:
    """Run the checks of a task in the memory of this process."""
    known = KnownIds(shared)
    return TaskResult([_run_check(shared.load, check, known) for check in checks])


def _run_check(load: StagedLoad, check: Check, known: KnownIds) -> CheckResult:
    result = CheckResult(check.table_key)
    found = Violations(load.error_limit)
    entity = load.snapshot.entity(check.table_key)
    match check.rule:
        case Rule.IDS:
            _check_ids(load, known, result)
        case Rule.ROWS:
            for file in check.files:
                staged = read_file(load.targets[file.table_key], file.name)
                check_rows(entity, load.excluded.filter(staged, file), found)
        case Rule.UNIQUE:
            change = load.change(check.table_key, [*check.columns, "id"])
            check_unique(change, check.columns, load.base(), found)
        case Rule.ENDS:
            assert isinstance(entity, EdgeType)  # noqa: S101  only edges have ends
            result.ends = _check_ends(load, entity, check, known, found)
        case Rule.CARD:
            assert isinstance(entity, EdgeType)  # noqa: S101  only edges have a cardinality
            change = load.change(check.table_key, _cardinality_columns(load, check.table_key))
            check_cardinality(entity, change, {check.table_key: change}, load.base(), found)
        case Rule.KEPT:
            assert isinstance(entity, NodeType)  # noqa: S101  only nodes have edges
            incident = {edge.table_key for edge in load.snapshot.catalog.incident[entity.name]}
            concerned = [key for key in load.files if key == check.table_key or key in incident]
            delta = {key: load.change(key, ["id"]) for key in concerned}
            check_kept_edges(entity, delta[check.table_key], delta, load.base(), found)
    result.violations, result.total, result.groups = found.listed, found.total, found.tally.groups()
    return result


def _cardinality_columns(load: StagedLoad, table_key: str) -> list[str]:
    replaces_some = load.mode is Mode.MERGE and load.has_explicit_ids(table_key)
    return ["src", "id"] if replaces_some else ["src"]


def _check_ids(load: StagedLoad, known: KnownIds, result: CheckResult) -> None:
    """No two staged rows have one id; in an append no row has one that exists already."""
    if known.are_new(result.table_key):
        return
    ids = load.keys(result.table_key, ["id"])["id"].combine_chunks()
    if pc.count_distinct(ids).as_py() < len(ids):
        counts = Counter(ids.to_pylist())
        repeated = [(row_id, count) for row_id, count in counts.items() if count > 1]
        result.repeated, result.repeated_total = repeated[: load.error_limit], len(repeated)
    if load.mode is Mode.APPEND and load.snapshot.rows(result.table_key):
        existing = load.base().existing(result.table_key, ids)
        result.existing, result.existing_total = existing.slice(0, load.error_limit).to_pylist(), len(existing)


def _check_ends(
    load: StagedLoad, edge: EdgeType, check: Check, known: KnownIds, found: Violations
) -> tuple[EndsFile, ...]:
    """Every end on one side of the edges is a node. Only if one may not be, all ends are read at once."""
    ends = _known_ends(load, check, known)
    if ends is not None:
        return ends
    (side,), node_key = check.columns, check.known(load)
    delta = {node_key: load.change(node_key, ["id"])} if node_key in load.files else {}
    staged = load.keys(edge.table_key, [side], check.files)[side]
    missing = missing_ends(edge, side, staged, delta, load.base())
    if len(missing):
        rows = load.keys(edge.table_key, ["id", side], check.files)
        note_dangling(edge, side, rows, missing, found)
    return ()


def _known_ends(load: StagedLoad, check: Check, known: KnownIds) -> tuple[EndsFile, ...] | None:
    """Look the ends up file by file, and keep their positions; None if one may be missing."""
    (side,) = check.columns
    lookup, kept = known.lookup(check.known(load)), KeptEnds(load, check.table_key, side)
    for file in check.files:
        places = lookup.places(load.keys(check.table_key, [side], [file])[side].combine_chunks())
        if places is None:
            return None
        kept.add(file.name, places, is_whole=not lookup.is_waiting)
    return None if lookup.is_waiting else kept.finish()
