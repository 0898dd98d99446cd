"""What the tasks of a large merge have staged, table by table, and the rules that involve several of its rows.

Rules are checked by the evaluator of every other write, on the key columns of the staged files. Each check is one
task, which holds the keys that its rule is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from omnigraph.bulk.merge.tasks import DeletedIds, MergedFile, read_deleted
from omnigraph.bulk.runner import Runner, TaskResult
from omnigraph.errors import Violation
from omnigraph.history.merging.sides import LISTED
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.files.datafiles import Destination, read_file
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import (
    Delta,
    check_cardinality,
    check_endpoints,
    check_kept_edges,
    check_unique,
)
from omnigraph.write.rules import Violations


@dataclass(frozen=True, slots=True)
class StagedChange:
    """The change of one table: staged files, and deleted ids."""

    target: Destination
    files: tuple[MergedFile, ...]
    deleted: tuple[DeletedIds, ...]

    @property
    def replaced(self) -> int:
        """How many rows of the target are replaced or deleted."""
        return sum(file.replacing for file in self.files) + self.deletes

    @property
    def deletes(self) -> int:
        return sum(part.rows for part in self.deleted)

    @property
    def rows(self) -> int:
        """How many rows are staged."""
        return sum(file.staged.rows for file in self.files)

    def change(self, columns: Sequence[str], files: Sequence[MergedFile] | None = None) -> TableDelta:
        """The change of all files or of some, reduced to some columns, by id; `id` is one of them."""
        chosen = self.files if files is None else files
        parts = [read_file(self.target, file.staged.name, list(columns)).select(list(columns)) for file in chosen]
        empty = pa.schema([self.target.schema.field(name) for name in columns]).empty_table()
        rows = pa.concat_tables([empty, *parts]).sort_by("id")
        deletes = read_deleted(self.target.address, self.deleted)
        return TableDelta(self.target.table_key, rows, deletes)


@dataclass(frozen=True, slots=True)
class StagedMerge:
    """The change that a merge makes to a snapshot of the target."""

    snapshot: Snapshot
    branch: Branch
    tables: Mapping[str, StagedChange]

    def base(self) -> Base:
        """The target as the evaluator reads it."""
        return Base(Repository.at(self.snapshot.address, read_only=True), self.branch, self.snapshot)

    def ids(self, *table_keys: str) -> Delta:
        """The changes of some tables, ids only; tables that do not change are left out."""
        return {key: self.tables[key].change(["id"]) for key in table_keys if key in self.tables}

    def reads(self) -> frozenset[str]:
        """The tables whose rows the rules are about, beside those that change."""
        catalog, found = self.snapshot.catalog, set(self.tables)
        for key, table in self.tables.items():
            entity = self.snapshot.entity(key)
            if isinstance(entity, EdgeType):
                found |= {f"node:{entity.source}", f"node:{entity.target}"} if table.files else set()
            elif table.deleted:
                found |= {edge.table_key for edge in catalog.incident[entity.name]}
        return frozenset(found)


Check = Callable[[StagedMerge, Base, Violations], None]


@dataclass(frozen=True, slots=True)
class Broken:
    """Rules that a merge would break: the first of them, and how many there are."""

    listed: tuple[Violation, ...]
    total: int


def check_rules(runner: Runner, merge: StagedMerge, rows: int) -> list[Broken]:
    """Check all rules that involve several rows. The ends of edges are looked up ``rows`` at a time."""
    checks = list(_checks(merge, rows))
    return runner.run("checking rules", partial(_run_check, merge), checks)


def _run_check(merge: StagedMerge, check: Check) -> TaskResult[Broken]:
    found = Violations(LISTED)
    check(merge, merge.base(), found)
    return TaskResult(Broken(tuple(found.listed), found.total))


def _checks(merge: StagedMerge, rows: int) -> Iterator[Check]:
    """The rules of all tables that change."""
    for key, table in merge.tables.items():
        entity = merge.snapshot.entity(key)
        for group in entity.uniques:
            yield partial(_unique, key, tuple(group))
        if isinstance(entity, EdgeType):
            for files in _grouped(table.files, rows):
                yield partial(_ends, key, files)
            if entity.minimum or entity.maximum is not None:
                yield partial(_cardinality, key)
        elif table.deleted:
            yield partial(_kept_edges, key)


def _grouped(files: Sequence[MergedFile], rows: int) -> Iterator[tuple[MergedFile, ...]]:
    """The files in groups of about so many rows."""
    group: list[MergedFile] = []
    for file in files:
        if group and sum(one.staged.rows for one in group) + file.staged.rows > rows:
            yield tuple(group)
            group = []
        group.append(file)
    if group:
        yield tuple(group)


def _unique(key: str, group: tuple[str, ...], merge: StagedMerge, base: Base, found: Violations) -> None:
    check_unique(merge.tables[key].change([*group, "id"]), group, base, found)


def _ends(key: str, files: tuple[MergedFile, ...], merge: StagedMerge, base: Base, found: Violations) -> None:
    edge = merge.snapshot.entity(key)
    assert isinstance(edge, EdgeType)  # noqa: S101  only edges have ends
    nodes = merge.ids(*{f"node:{edge.source}", f"node:{edge.target}"})
    check_endpoints(edge, merge.tables[key].change(["id", "src", "dst"], files), nodes, base, found)


def _cardinality(key: str, merge: StagedMerge, base: Base, found: Violations) -> None:
    edge = merge.snapshot.entity(key)
    assert isinstance(edge, EdgeType)  # noqa: S101  only edges have a cardinality
    change = merge.tables[key].change(["id", "src"])
    check_cardinality(edge, change, merge.ids(f"node:{edge.source}"), base, found)


def _kept_edges(key: str, merge: StagedMerge, base: Base, found: Violations) -> None:
    node = merge.snapshot.entity(key)
    assert not isinstance(node, EdgeType)  # noqa: S101  only nodes have edges
    edges = (edge.table_key for edge in merge.snapshot.catalog.incident[node.name])
    delta = merge.ids(key, *edges)
    check_kept_edges(node, delta[key], delta, base, found)
