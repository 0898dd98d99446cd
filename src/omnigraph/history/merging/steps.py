"""Several changes of one target, one after the other, as one: each is worked out on top of those before it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Conflict
from omnigraph.history.diff import Op, TableDiff, compare_rows
from omnigraph.history.merging.sides import Combined, Decisions, Three, checked, merge_sides, require_used
from omnigraph.history.tables import RowChanges, RowDeltas, followed
from omnigraph.write.base import Base
from omnigraph.write.delta import TableDelta


def combine_steps(base: Base, steps: Sequence[Three], decisions: Decisions) -> Combined:
    """Combine the sides of each step with what the steps before have made of the target, in memory.

    An entity in conflict stays as it is for the steps that follow, and is reported once.
    """
    touched = RowDeltas(base.repository.tables)
    ahead: dict[str, RowChanges] = {}
    conflicts: dict[tuple[str, str | None], Conflict] = {}
    decided: set[tuple[str, str]] = set()
    reads: set[str] = set()
    for sides in steps:
        found = merge_sides(base, sides, decisions, touched, ahead)
        reads.update(found.theirs)
        decided |= found.decided
        for conflict in found.conflicts:
            conflicts.setdefault((conflict.table_key, conflict.id), conflict)
        for key, merged in found.merged.items():
            if merged.delta is not None:
                change = _on_target(merged.delta, found.theirs[key], found.ours.get(key))
                ahead[key] = followed(ahead[key], change) if key in ahead else change
    require_used(decisions.choices, decided)
    changed = {key: compare_rows(base.snapshot.entity(key), rows) for key, rows in ahead.items()}
    delta = {key: _as_delta(table) for key, table in changed.items() if len(table.ids)}
    counts = {key: changed[key].counts() for key in delta}
    return checked(base, delta, counts, frozenset(reads), list(conflicts.values()))


def _on_target(delta: TableDelta, theirs: TableDiff, ours: TableDiff | None) -> RowChanges:
    """A change of the target with the rows that it replaces.

    A row that the target has not changed since the base is there as in the base.
    """
    ids = pa.concat_arrays([delta.ids, delta.deletes])
    known = theirs.before.filter(_among(theirs, ids, Op.INSERT))
    if ours is not None:
        known = known.filter(pc.invert(pc.is_in(known["id"], value_set=ours.ids)))
        known = pa.concat_tables([known, ours.after.filter(_among(ours, ids, Op.DELETE))])
    return RowChanges(known, delta.upserts.cast(known.schema))


def _among(side: TableDiff, ids: pa.Array, absent: Op) -> pa.Array:
    """Which entities of a side are among some ids, and there: not before an insert, not after a delete."""
    return pc.and_(pc.is_in(side.ids, value_set=ids), pc.not_equal(side.ops, absent.value))


def _as_delta(table: TableDiff) -> TableDelta:
    gone = pc.equal(table.ops, Op.DELETE.value)
    return TableDelta(table.table_key, table.after.filter(pc.invert(gone)), table.ids.filter(gone))
