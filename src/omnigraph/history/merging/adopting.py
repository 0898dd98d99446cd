"""What a merge comes to if the target has to adopt the source's schema: checked whole before anything is written.

The rows are put together and checked as if the target had the schema already. A property that the source requires
gets, in the target's rows, the values that the merge gives them; rows that are left without one are conflicts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.errors import Conflict, ConflictKind, ConstraintViolation, KeyConflict
from omnigraph.history.merging.adoption import Adoption, adoption
from omnigraph.history.merging.comparison import (
    MergeRequest,
    common_base,
    compared,
    outcome_of,
    plan_of,
    three_sides,
)
from omnigraph.history.merging.plans import MergePlan
from omnigraph.history.merging.sides import LISTED, as_conflicts, merge_sides, require_used
from omnigraph.history.tables import RowDeltas
from omnigraph.lang.schema.catalog import Catalog, EntityType
from omnigraph.lang.schema.identity import SchemaIR
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import TablePin
from omnigraph.write.base import Base, with_blobs
from omnigraph.write.delta import TableDelta
from omnigraph.write.evaluator import validate
from omnigraph.write.evolution.accepted import accepted
from omnigraph.write.evolution.apply import SchemaChange
from omnigraph.write.evolution.fills import Fill, Target
from omnigraph.write.evolution.plan import SchemaRequest
from omnigraph.write.evolution.tables import compare_tables


@dataclass(frozen=True, slots=True)
class Previewed:
    """What a merge would come to: its plan, of whose ``total`` conflicts the first are listed, and the change by
    which the target adopts a schema first; None if it need not, or cannot."""

    plan: MergePlan
    total: int
    schema: SchemaRequest | None = None


def preview(request: MergeRequest, source: Snapshot, base: Base) -> Previewed:
    """What a merge of branches with different schemas would do now; nothing is written."""
    repository, target = base.repository, base.snapshot
    ancestor = common_base(repository, request, source, target)
    base_id = ancestor.commit.graph_commit_id
    origin = repository.snapshot_at(request.target, base_id)
    wanted = adoption(repository, origin, source, target)
    if base_id == source.graph_commit_id or wanted is None:
        plan, found = compared(request, source, base)
        return Previewed(plan, found.total)
    named = (outcome_of(base_id, target), request, source, target, base_id)
    if isinstance(wanted, tuple):
        return Previewed(plan_of(*named, {}, wanted), len(wanted))
    virtual = replace(target, catalog=Catalog(wanted.ir), schema_digest="", tables=_renamed(target, wanted.ir))
    sides = three_sides(repository, request, ancestor, source, virtual)
    merged = merge_sides(base, sides, request.decisions, RowDeltas(repository.tables), {})
    counts = {key: table.counts() for key, table in merged.theirs.items()}
    delta = {key: table.delta for key, table in merged.merged.items() if table.delta is not None}
    conflicts, total = tuple(merged.conflicts), len(merged.conflicts)
    schema = _schema_request(request, base, wanted, delta)
    if not conflicts:
        require_used(request.decisions.choices, merged.decided)
        conflicts, total = _broken_rules(base, schema, delta)
    steps = tuple(str(step) for step in wanted.steps)
    plan = replace(plan_of(*named, counts, conflicts), schema=steps)
    return Previewed(plan, total, schema)


def _renamed(target: Snapshot, ir: SchemaIR) -> dict[str, TablePin]:
    """The tables of a state by the keys that they have under another schema."""
    after = Catalog(ir)
    return {
        after.by_id[entity.id].table_key: target.tables[entity.table_key]
        for entity in target.catalog.by_id.values()
        if entity.id in after.by_id
    }


def _schema_request(
    request: MergeRequest, base: Base, wanted: Adoption, delta: Mapping[str, TableDelta]
) -> SchemaRequest:
    """The change of the target's schema, with values for the rows that the merge gives values to."""
    fills: dict[Target, Fill] = {}
    for change in compare_tables(base.catalog, Catalog(wanted.ir), {}).kept:
        rows = delta.get(change.after.table_key)
        if rows is None or base.is_empty(change.before.table_key):
            continue
        for name in _newly_required(change.before, change.after):
            values = pa.table({"id": rows.upserts["id"], "value": rows.upserts[name]})
            fills[change.after.name, name] = Fill(by_id=values)
    return SchemaRequest(
        request.target,
        wanted.desired,
        fills,
        actor=request.actor,
        message=f"schema of '{request.source.name}', to merge it",
        if_commit=request.if_commit,
        error_limit=LISTED,
        adopted=wanted.ir,
    )


def _newly_required(before: EntityType, after: EntityType) -> Iterator[str]:
    """The properties that must have a value from now on."""
    known = {prop.id: prop for prop in before.properties.values()}
    for prop in after.properties.values():
        old = known.get(prop.id)
        if not prop.type.nullable and not prop.type.is_blob and (old is None or old.type.nullable):
            yield prop.name


def _broken_rules(
    base: Base, schema: SchemaRequest, delta: Mapping[str, TableDelta]
) -> tuple[tuple[Conflict, ...], int]:
    """The conflicts of a merge that breaks rules: the target's own rows those of the schema that it adopts, and
    the merged rows any."""
    assert schema.adopted is not None  # noqa: S101  the caller has made it so
    catalog = Catalog(schema.adopted)
    found: list[Conflict] = []
    total = 0
    try:
        SchemaChange(base.repository, schema).check(base)
    except ConstraintViolation as error:
        found, total = [_in_the_way(each) for each in as_conflicts(error)[0]], error.total
    after = accepted(base, catalog, compare_tables(base.catalog, catalog, schema.fills))
    whole = {
        key: replace(rows, upserts=with_blobs(catalog.entity(key), rows.upserts)) for key, rows in delta.items()
    }
    try:
        validate(whole, after, LISTED)
    except (ConstraintViolation, KeyConflict) as error:
        known = {(each.table_key, each.id) for each in found}
        broken, count = as_conflicts(error)
        more = [each for each in broken if (each.table_key, each.id) not in known]
        found, total = [*found, *more], total + count - (len(broken) - len(more))
    return tuple(found), total


def _in_the_way(broken: Conflict) -> Conflict:
    """A row of the target that keeps it from adopting the schema."""
    message = (
        f"the target cannot adopt the source's schema: {broken.message}; mend the row, or apply the schema to the "
        "target first, with a fill for what is missing"
    )
    return Conflict(ConflictKind.SCHEMA_CONFLICT, broken.table_key, broken.id, message)
