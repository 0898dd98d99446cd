"""`ensure_indices`: build the indexes that a branch's tables lack, as one commit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from lance import LanceDataset

from omnigraph.errors import StagedFilesRemoved
from omnigraph.lang.schema.catalog import EntityType
from omnigraph.maintenance.index_plan import DEFAULT_LAG, DeferredIndex, IndexLag, TablePlan, plan_table
from omnigraph.maintenance.indexed import IndexedTable
from omnigraph.maintenance.owners import owner
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit
from omnigraph.storage.stage.indexes import (
    BuiltSegment,
    IndexKind,
    SegmentBuild,
    build_segments,
    discard_segments,
    existing_indexes,
    fragment_rows,
    stage_segments,
)
from omnigraph.storage.tables import TableRef, Tables
from omnigraph.write.base import Base
from omnigraph.write.protocol import (
    OPTIMISTIC_ATTEMPTS,
    Prepared,
    Stage,
    StagedTable,
    WriteRequest,
    commit_write,
)

__all__ = ["BuiltIndex", "DeferredIndex", "IndexReport", "ensure_indices"]

WRITER: Final = "ensure_indices"
MOST_LOST: Final = 3
"""How often a step is done again because a cleanup with a short grace period removed its files."""
MEANWHILE: Final = "other writers changed it meanwhile; try again"


@dataclass(frozen=True, slots=True)
class BuiltIndex:
    """An index that was built, or that now answers for rows it lacked."""

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
    """Build what the indexes of a branch's own tables lack, each table's in one version, all as one commit.

    If a table moves meanwhile, what was built for it is committed on top of that; the rows that are new wait. What
    a cleanup removed is built again.
    """
    for lost in range(MOST_LOST + 1):
        builder = IndexBuilder(Builds(repository.tables), DEFAULT_LAG)
        try:
            written = commit_write(repository, WriteRequest(WRITER, branch, actor), builder.prepare)
            break
        except StagedFilesRemoved:
            if lost == MOST_LOST:
                raise
    plans = written.result
    return IndexReport(written.commit, tuple(built_indexes(plans)), tuple(deferred_indexes(plans)))


def built_indexes(plans: Mapping[str, TablePlan]) -> Iterator[BuiltIndex]:
    """The indexes that plans build, each once."""
    for key, plan in plans.items():
        specs = {build.spec.name: build.spec for build in plan.build}
        for spec in specs.values():
            yield BuiltIndex(key, spec.column, spec.kind, spec.name)


def deferred_indexes(plans: Mapping[str, TablePlan]) -> Iterator[DeferredIndex]:
    """The indexes that plans defer."""
    for plan in plans.values():
        yield from plan.deferred


@dataclass(frozen=True, slots=True)
class _Built:
    """The segments that were written for one table, and the segments that its indexes had then."""

    plan: TablePlan
    segments: tuple[BuiltSegment, ...]
    known: Mapping[str, frozenset[str]]

    def fits(self, handle: LanceDataset) -> bool:
        """Can the segments be committed on top of a later version of the table?

        It must have the same fragments, and its indexes the same segments; rows may be new or deleted.
        """
        fragments = fragment_rows(handle).keys()
        if not all(fragments >= set(build.fragments) for build in self.plan.build):
            return False
        now = _segment_ids(handle)
        return all(now.get(name, frozenset()) == ids for name, ids in self.known.items())


class Builds:
    """Builds segments in the calling thread."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def own(self, ref: TableRef) -> LanceDataset:
        """A handle that readers do not share: Lance lets no other thread use one while it builds through it."""
        own = self._tables.dataset(ref.location, ref.branch, ref.version)
        if own is None:
            raise self._tables.missing(ref)
        return own

    def index(self, ref: TableRef, builds: Sequence[SegmentBuild]) -> list[BuiltSegment]:
        """Build segments of indexes, of fragments whose files are what they were when they were written."""
        self._tables.verify_fragments(ref, {number for build in builds for number in build.fragments})
        return build_segments(self.own(ref), builds)


class IndexBuilder:
    """Plans and builds the indexes of tables, and keeps what is built for a retry, which finds tables moved.

    At most about ``limit`` rows are indexed by one commit, but one table at least. The last attempt holds the
    lock, so it takes only what is built already.
    """

    def __init__(
        self,
        builds: Builds,
        lag: IndexLag,
        table_keys: Collection[str] | None = None,
        limit: int | None = None,
    ) -> None:
        self._builds = builds
        self._lag = lag
        self._table_keys = table_keys
        self._limit = limit
        self._attempts = 0
        self.is_complete = True
        """Was everything built? Otherwise there is more for another commit."""
        self._built: dict[tuple[str, str | None], _Built] = {}

    def prepare(self, base: Base) -> Prepared[dict[str, TablePlan]]:
        """Plan the tables of a branch, and build what they lack."""
        self._attempts += 1
        self.is_complete = True
        plans: dict[str, TablePlan] = {}
        stages: dict[str, Stage] = {}
        rows = 0
        entities: list[EntityType] = [*base.catalog.nodes.values(), *base.catalog.edges.values()]
        for entity in entities:
            key = entity.table_key
            if key not in base.snapshot.tables or (self._table_keys is not None and key not in self._table_keys):
                continue
            ref = base.ref(key)
            handle = self._builds.own(ref)
            plans[key] = self._plan(base, entity, handle)
            if not plans[key].build:
                continue
            if self._limit is not None and rows >= self._limit:
                plans[key], self.is_complete = TablePlan((), plans[key].deferred), False
                continue
            rows += sum(build.rows for build in plans[key].build)
            built = self._build(plans[key], ref, handle)
            stages[key] = partial(self._stage, built, handle, base.pin(key).row_count)
        return Prepared({}, plans, repeatable=True, stages=stages)

    def _plan(self, base: Base, entity: EntityType, handle: LanceDataset) -> TablePlan:
        pin = base.pin(entity.table_key)
        done = self._built.get((pin.location, pin.table_branch))
        if done is not None and done.fits(handle):
            return done.plan
        if done is not None:
            discard_segments(base.repository.objects, pin.ref, done.segments)
            del self._built[pin.location, pin.table_branch]
        is_shared = pin.table_branch != base.branch.native
        shared_with = owner(base.repository, pin.table_branch) if is_shared else None
        plan = plan_table(entity, IndexedTable(handle, shared_with), self._lag)
        if not plan.build or self._attempts <= OPTIMISTIC_ATTEMPTS:
            return plan
        specs = {build.spec.name: build.spec for build in plan.build}.values()
        waiting = (DeferredIndex(entity.table_key, spec.column, spec.kind, MEANWHILE) for spec in specs)
        return TablePlan((), (*plan.deferred, *waiting))

    def _build(self, plan: TablePlan, ref: TableRef, handle: LanceDataset) -> _Built:
        """Build the segments of a plan, unless that is done already."""
        place = (ref.location, ref.branch)
        done = self._built.get(place)
        if done is None or done.plan is not plan:
            segments = tuple(self._builds.index(ref, plan.build))
            ids = _segment_ids(handle)
            known = {build.spec.name: ids.get(build.spec.name, frozenset()) for build in plan.build}
            done = self._built[place] = _Built(plan, segments, known)
        return done

    def _stage(
        self, built: _Built, handle: LanceDataset, rows: int, ref: TableRef, operation_id: str
    ) -> StagedTable:
        return StagedTable(stage_segments(handle, ref.location, ref.branch, built.segments, operation_id), rows)


def _segment_ids(handle: LanceDataset) -> dict[str, frozenset[str]]:
    """The segments of each index."""
    return {
        index.name: frozenset(segment.segment_id for segment in index.segments)
        for index in existing_indexes(handle)
    }
