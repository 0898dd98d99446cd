"""`ensure_indices`: build the indexes that a branch's tables lack, as one commit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from lance import LanceDataset

from omnigraph.lang.schema.catalog import EntityType
from omnigraph.maintenance.index_plan import DeferredIndex, TableFacts, TablePlan, plan_table
from omnigraph.maintenance.owners import owner
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.storage.indexing import IndexKind, IndexSpec, existing_indexes, stage_create_index
from omnigraph.storage.staging import Staged
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.storage.unavailable import translated
from omnigraph.write.base import Base
from omnigraph.write.protocol import Prepared, Stage, StagedTable, WriteRequest, commit_write

__all__ = ["BuiltIndex", "DeferredIndex", "IndexReport", "ensure_indices"]

WRITER = "ensure_indices"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built or rebuilt."""

    table_key: str
    column: str
    kind: IndexKind
    name: str

    def as_json(self) -> dict[str, Any]:
        return {"table_key": self.table_key, "column": self.column, "kind": self.kind, "name": self.name}


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The indexes that were built and those that were deferred. ``commit`` is None if none was built."""

    commit: Commit | None
    built: tuple[BuiltIndex, ...]
    deferred: tuple[DeferredIndex, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "commit": None if self.commit is None else self.commit.as_json(),
            "built": [index.as_json() for index in self.built],
            "deferred": [index.as_json() for index in self.deferred],
        }


def ensure_indices(repository: Repository, branch: Branch, actor: str | None = None) -> IndexReport:
    """Build the indexes that a branch's own tables lack, each table's in one version, all as one commit.

    If a table moves meanwhile, the commit is retried: that table is planned and indexed again, and what was built
    for the others is used as it is.
    """
    builder = _Builder(repository.tables)

    def prepare(base: Base) -> Prepared[dict[str, TablePlan]]:
        plans = _plans(base)
        stages: dict[str, Stage] = {
            key: partial(builder.stage, plan.build, base.pin(key).row_count)
            for key, plan in plans.items()
            if plan.build
        }
        return Prepared({}, plans, repeatable=True, stages=stages)

    written = commit_write(repository, WriteRequest(WRITER, branch, actor), prepare)
    plans = written.result
    return IndexReport(
        written.commit,
        tuple(BuiltIndex(key, s.column, s.kind, s.name) for key, plan in plans.items() for s in plan.build),
        tuple(deferred for plan in plans.values() for deferred in plan.deferred),
    )


class _Builder:
    """Builds indexes, and keeps them for a retry, which finds most tables at the same version."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._staged: dict[TableRef, Staged] = {}

    def stage(self, specs: Sequence[IndexSpec], rows: int, ref: TableRef, operation_id: str) -> StagedTable:
        """Stage the indexes of one table, unless they are staged for this version already."""
        if ref not in self._staged:
            self._tables.verified(ref)
            own = self._tables.dataset(ref.location, ref.branch, ref.version)  # not a handle that readers share
            if own is None:
                raise self._tables.missing(ref)
            self._staged[ref] = stage_create_index(own, ref.location, ref.branch, specs, operation_id)
        return StagedTable(self._staged[ref], rows)


def _plans(base: Base) -> dict[str, TablePlan]:
    """The plan of every table, by table key."""
    entities: Iterable[EntityType] = [*base.catalog.nodes.values(), *base.catalog.edges.values()]
    known = [entity for entity in entities if entity.table_key in base.snapshot.tables]
    return {entity.table_key: plan_table(entity, _facts(base, entity.table_key)) for entity in known}


def _facts(base: Base, table_key: str) -> TableFacts:
    pin, handle = base.pin(table_key), base.open(table_key)
    shown = base.repository.tables.shown(pin.location)
    with translated(shown):
        rows = handle.count_rows()
    shared = pin.table_branch != base.branch.native
    return TableFacts(
        rows,
        tuple(existing_indexes(handle)),
        partial(_filled, handle, shown),
        owner(base.repository, pin.table_branch) if shared else None,
    )


def _filled(handle: LanceDataset, shown: str, column: str) -> int:
    """How many rows have a value in a column."""
    with translated(shown):
        return int(handle.count_rows(f"`{column}` is not null"))
