"""What a change of the schema takes: its steps, and the work on each table."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.errors import PreconditionFailed
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.identity import SchemaIR, idle_hints
from omnigraph.lang.schema.migration import plan_migration, steps_between
from omnigraph.lang.schema.resolve import CompiledSchema
from omnigraph.lang.schema.steps import MigrationPlan, Step
from omnigraph.manifest.refs.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage.locks import Held
from omnigraph.storage.stage.columns import ComputedColumn
from omnigraph.write.base import Base
from omnigraph.write.evolution.columns import ChangeColumns, change_in_process
from omnigraph.write.evolution.fills import Fill, Target, require_used, shown
from omnigraph.write.evolution.rules import has_new_rules
from omnigraph.write.evolution.tables import Tables, compare_tables
from omnigraph.write.rules import SHOWN


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
    adopted: SchemaIR | None = None
    """The schema with its identities, if another branch has accepted it already; ``desired`` is its text."""
    change_columns: ChangeColumns = change_in_process
    job_lock: Held | None = None
    """Held by a job that changes columns by tasks."""
    graph_commit_id: str | None = None


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


def plan_schema(repository: Repository, request: SchemaRequest) -> SchemaPlan:
    """What accepting a schema would take. Nothing is written, and no rows are read."""
    snapshot = repository.snapshot(request.branch)
    if request.if_commit is not None and request.if_commit != snapshot.graph_commit_id:
        raise PreconditionFailed(request.branch.name, request.if_commit, snapshot.graph_commit_id)
    return planned(Base(repository, request.branch, snapshot), request)[0]


def planned(base: Base, request: SchemaRequest) -> tuple[SchemaPlan, Tables | None]:
    """The plan, and what happens to tables; None if a step is not possible."""
    accepted = _counting_apart(base.catalog.ir, base.branch)
    if request.adopted is not None:
        steps = MigrationPlan(steps_between(accepted, request.adopted), request.adopted)
    else:
        steps = plan_migration(
            accepted, request.desired, allow_data_loss=request.allow_data_loss, fills=shown(request.fills)
        )
    notes = tuple(f"line {note.line}: {note.message}" for note in idle_hints(request.desired, accepted))
    notes += tuple(map(_remark, (step for step in steps.steps if step.kind == "change_embedding")))
    if not steps.supported:
        return SchemaPlan(request.branch.name, base.snapshot.graph_commit_id, steps, (), notes), None
    tables = compare_tables(base.catalog, Catalog(steps.target), request.fills)
    require_used(request.fills, set(tables.filled))
    plan = SchemaPlan(request.branch.name, base.snapshot.graph_commit_id, steps, _work(base, tables), notes)
    return plan, tables


def _counting_apart(accepted: SchemaIR, branch: Branch) -> SchemaIR:
    """The accepted schema with numbers for new things that no other branch gives to other things.

    Each change on a branch leaves out less than 2**32 numbers. A million of them stay below 2**53, up to which
    readers of JSON in any language tell integers apart; OmniGraph itself can count on.
    """
    if branch.incarnation is None:
        return accepted
    apart = int.from_bytes(hashlib.sha256(branch.incarnation.encode()).digest()[:4])
    return replace(accepted, next_identity_id=accepted.next_identity_id + apart)


def _remark(step: Step) -> str:
    """What is left to do after the way of computing vectors has changed."""
    name, prop = step.fields["type_name"], step.fields["property_name"]
    return (
        f"{name}.{prop} keeps the vectors it has; `omnigraph embed --type {name} --reembed-all` computes them anew"
    )


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
