"""Accepting another schema: planned against a branch, checked against its rows, and made visible as one commit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from ulid import ULID

from omnigraph.errors import OmniError, Outcome, PreconditionFailed
from omnigraph.failpoints import hit
from omnigraph.formats.columns import table_schema
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.identity import idle_hints
from omnigraph.lang.schema.migration import plan_migration
from omnigraph.lang.schema.resolve import CompiledSchema
from omnigraph.lang.schema.steps import MigrationPlan
from omnigraph.manifest.branches import Branch
from omnigraph.manifest.drafts import SchemaMove
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.state import Commit, TablePin
from omnigraph.storage import layout
from omnigraph.storage.evolution import Column, ComputedColumn, stage_columns
from omnigraph.storage.tables import TableRef
from omnigraph.write.base import Base
from omnigraph.write.evolution.fills import Fill, Target, require_used, shown
from omnigraph.write.evolution.rules import check_table, has_new_rules, require_kept
from omnigraph.write.evolution.tables import Tables, compare_tables
from omnigraph.write.protocol import Prepared, Stage, StagedTable, WriteRequest, commit_write
from omnigraph.write.rules import SHOWN, Violations

WRITER = "schema_apply"


@dataclass(frozen=True, slots=True)
class SchemaRequest:
    """Which schema a branch is to have, and on which conditions.

    ``fills`` are values for rows that have none in a property that needs one. ``allow_data_loss`` lets drops purge
    what they drop, older states included. ``if_commit`` names the commit that the branch must be at.
    """

    branch: Branch
    desired: CompiledSchema
    fills: Mapping[Target, Fill] = field(default_factory=dict)
    allow_data_loss: bool = False
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    error_limit: int = SHOWN


@dataclass(frozen=True, slots=True)
class TableWork:
    """What a change of the schema does to one table: its rows, whether they are read, and columns to compute."""

    table_key: str
    action: str
    rows: int
    reads_rows: bool = False
    computed: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "table_key": self.table_key,
            "action": self.action,
            "rows": self.rows,
            "reads_rows": self.reads_rows,
            "computed": list(self.computed),
        }


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """What a change of the schema takes: its steps, the work on each table that is touched, and remarks.

    It was made for the state of a branch at one commit, ``commit_id``.
    """

    branch: str
    commit_id: str | None
    steps: MigrationPlan
    work: tuple[TableWork, ...]
    notes: tuple[str, ...] = ()

    @property
    def supported(self) -> bool:
        """Can every step be done?"""
        return self.steps.supported

    def as_json(self) -> dict[str, Any]:
        return {
            "branch": self.branch,
            "graph_commit_id": self.commit_id,
            **self.steps.as_json(),
            "tables": [work.as_json() for work in self.work],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class SchemaResult:
    """What was done. ``commit`` is None if the branch had the schema already."""

    plan: SchemaPlan
    commit: Commit | None

    def as_json(self) -> dict[str, Any]:
        return {**self.plan.as_json(), "commit": None if self.commit is None else self.commit.as_json()}


def plan_schema(repository: Repository, request: SchemaRequest) -> SchemaPlan:
    """What accepting a schema would take. Nothing is written, and no rows are read."""
    snapshot = repository.snapshot(request.branch)
    if request.if_commit is not None and request.if_commit != snapshot.graph_commit_id:
        raise PreconditionFailed(request.branch.name, request.if_commit, snapshot.graph_commit_id)
    return _planned(Base(repository, request.branch, snapshot), request)[0]


def apply_schema(repository: Repository, request: SchemaRequest) -> SchemaResult:
    """Accept a schema as one commit. Nothing is written if a step is not possible, which is a MigrationError, or
    if existing rows break a new rule, which is a ConstraintViolation."""
    work = _Work(repository, request)
    try:
        written = commit_write(
            repository,
            WriteRequest(WRITER, request.branch, request.actor, request.message, request.if_commit),
            work.prepare,
        )
    except OmniError as error:
        if error.outcome is Outcome.NOTHING_WRITTEN:
            work.discard(())
        raise
    work.discard(pin.location for pin in work.added)
    return SchemaResult(written.result, written.commit)


def _planned(base: Base, request: SchemaRequest) -> tuple[SchemaPlan, Tables | None]:
    """The plan, and what happens to tables; None if a step is not possible."""
    accepted = base.catalog.ir
    steps = plan_migration(
        accepted, request.desired, allow_data_loss=request.allow_data_loss, fills=shown(request.fills)
    )
    notes = tuple(f"line {note.line}: {note.message}" for note in idle_hints(request.desired, accepted))
    if not steps.supported:
        return SchemaPlan(request.branch.name, base.snapshot.graph_commit_id, steps, (), notes), None
    tables = compare_tables(base.catalog, Catalog(steps.target), request.fills)
    require_used(request.fills, set(tables.filled))
    plan = SchemaPlan(request.branch.name, base.snapshot.graph_commit_id, steps, _work(base, tables), notes)
    return plan, tables


def _work(base: Base, tables: Tables) -> tuple[TableWork, ...]:
    found = [TableWork(entity.table_key, "create", 0) for entity in tables.added]
    for change in tables.kept:
        rows = base.pin(change.before.table_key).row_count
        computed = [c.field.name for c in change.columns or () if isinstance(c, ComputedColumn)]
        reads = bool(rows) and (bool(computed) or has_new_rules(change))
        if change.columns is not None:
            action = "change columns"
        elif reads:
            action = "check rows"
        elif change.is_renamed:
            action = "rename"
        else:
            continue
        found.append(TableWork(change.after.table_key, action, rows, reads, tuple(computed)))
    found += [TableWork(one.table_key, "remove", base.pin(one.table_key).row_count) for one in tables.dropped]
    return tuple(sorted(found, key=lambda work: (work.table_key.startswith("edge:"), work.table_key)))


class _Work:
    """One change of the schema. It keeps the new tables that it makes, to remove those that are not published."""

    def __init__(self, repository: Repository, request: SchemaRequest) -> None:
        self._repository = repository
        self._request = request
        self._created: list[str] = []
        self.added: tuple[TablePin, ...] = ()

    def prepare(self, base: Base) -> Prepared[SchemaPlan]:
        """Plan and check the change against one state of the branch. Nothing names the new tables yet."""
        request = self._request
        plan, tables = _planned(base, request)
        plan.steps.require_supported()
        assert tables is not None  # noqa: S101  every step is possible
        if not plan.steps.steps:
            return Prepared({}, plan, repeatable=True)
        target = Catalog(plan.steps.target)
        self._check(base, target, tables)
        digest = self._repository.schemas.store(request.desired.source.text, plan.steps.target)
        hit("schema.after_store")
        added = [self._create(entity) for entity in tables.added]
        stages: dict[str, Stage] = {}
        renamed: dict[str, str] = {}
        removed = [base.pin(entity.table_key) for entity in tables.dropped]
        for change in tables.kept:
            key, pin = change.before.table_key, base.pin(change.before.table_key)
            if change.columns is not None:
                stages[key] = partial(self._stage, change.columns, pin.row_count)
                if change.is_renamed:
                    renamed[key] = change.after.table_key
            elif change.is_renamed:
                added.append(replace(pin, table_key=change.after.table_key))
                removed.append(pin)
        self.added = tuple(added)
        schema = SchemaMove(digest, self.added, tuple(removed), renamed)
        reads = frozenset(base.snapshot.tables)
        return Prepared({}, plan, repeatable=True, stages=stages, reads=reads, schema=schema)

    def _check(self, base: Base, target: Catalog, tables: Tables) -> None:
        pins = {change.after.table_key: base.pin(change.before.table_key) for change in tables.kept}
        after = Base(base.repository, base.branch, replace(base.snapshot, catalog=target, tables=pins))
        found = Violations(self._request.error_limit)
        for change in tables.kept:
            check_table(change, base, after, found)
        require_kept(found)

    def _create(self, entity: EntityType) -> TablePin:
        location = layout.table_location(entity.table_key, str(ULID()))
        self._created.append(location)
        ref = self._repository.tables.create(location, table_schema(entity))
        hit("schema.after_table")
        return TablePin(entity.table_key, location, ref.version, checksum=ref.checksum)

    def _stage(self, columns: tuple[Column, ...], rows: int, ref: TableRef, operation_id: str) -> StagedTable:
        handle = self._repository.tables.verified(ref)
        return StagedTable(stage_columns(handle, ref.location, ref.branch, columns, operation_id), rows)

    def discard(self, kept: Iterable[str]) -> None:
        """Remove the tables that were made and are not published."""
        for location in set(self._created) - set(kept):
            self._repository.objects.delete_prefix(location)
