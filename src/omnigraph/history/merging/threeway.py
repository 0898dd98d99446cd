"""Three-way merging of one table: what two sides have made of a common base, put together property by property."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Conflict, ConflictKind
from omnigraph.history.diff import Op, TableDiff, differs
from omnigraph.read.result.cells import python_values
from omnigraph.write.delta import TableDelta, one_chunk

Mask = npt.NDArray[np.bool_]
Choices = Mapping[tuple[str, str], str]
"""Which side decides about an entity, `ours` or `theirs`, by table key and id."""
IMAGES: Final = 1_000
"""Of so many conflicts of a table, the first ones by id, the rows are shown; of all others only kind and id."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What the target's table has to become, and the entities about which the sides disagree; all by id."""

    delta: TableDelta | None
    conflicts: tuple[Conflict, ...] = ()
    decided: frozenset[tuple[str, str]] = frozenset()
    """The entities of ``choices`` that were in conflict."""


@dataclass(frozen=True, slots=True)
class _Both:
    """The entities that both sides have changed, each side's rows in the same order."""

    theirs: TableDiff
    ours: TableDiff
    apart: Mapping[str, Mask]
    """Where the two sides' rows differ, by column."""

    @property
    def ids(self) -> pa.Array:
        return self.theirs.ids

    def where(self, ours: Op, theirs: Op) -> Mask:
        """The entities to which both sides did something."""
        return _is_op(self.ours, ours) & _is_op(self.theirs, theirs)


@dataclass(frozen=True, slots=True)
class _Disagreement:
    """Which entities the sides have left different, and in which columns their changes cannot both be kept."""

    unlike: Mask
    clashing: Mask
    columns: Mapping[str, Mask]


def merge_table(
    theirs: TableDiff,
    ours: TableDiff | None,
    choices: Choices,
    resolve: str | None,
    *,
    strict: bool,
    images: int = IMAGES,
) -> Merged:
    """Put the changes of the source (theirs) on top of the target's (ours); both are relative to the base.

    Where only the source has changed an entity, its change is taken. Where both have, changes of different
    properties are put together, unless the merge is ``strict``; equal changes are no conflict.
    """
    if ours is None or not len(ours.ids):
        return Merged(_unless_empty(_taken(theirs, np.ones(len(theirs.ids), bool))))
    at = pc.index_in(theirs.ids, value_set=ours.ids)
    shared = _numpy(pc.is_valid(at))
    alone = _taken(theirs, ~shared)
    if not shared.any():
        return Merged(_unless_empty(alone))
    both = _both(_subset(theirs, pa.array(np.flatnonzero(shared))), _subset(ours, at.drop_null()))
    found = _disagreement(both, strict=strict)
    chosen = _chosen(theirs.table_key, both.ids, choices)
    for_theirs = found.clashing & (chosen["theirs"] | (~chosen["ours"] & (resolve == "theirs")))
    is_open = found.clashing & ~chosen["theirs"] & ~chosen["ours"] & (resolve is None)
    gone = _is_op(both.theirs, Op.DELETE)
    rows = _rows(both, (found.unlike & ~found.clashing) | (for_theirs & ~gone), for_theirs)
    deletes = pa.concat_arrays([alone.deletes, both.ids.filter(pa.array(for_theirs & gone))])
    upserts = pa.concat_tables([alone.upserts, rows])
    delta = TableDelta(
        theirs.table_key,
        upserts.take(pc.sort_indices(upserts["id"])) if rows.num_rows else alone.upserts,
        deletes.take(pc.sort_indices(deletes)),
    )
    conflicts = tuple(_conflicts(both, found.columns, np.flatnonzero(is_open), images))
    by_choice = both.ids.filter(pa.array(found.clashing & (chosen["theirs"] | chosen["ours"]))).to_pylist()
    decided = frozenset((theirs.table_key, entity_id) for entity_id in by_choice)
    return Merged(_unless_empty(delta), conflicts, decided)


def _unless_empty(delta: TableDelta) -> TableDelta | None:
    return None if delta.is_empty else delta


def _taken(side: TableDiff, mask: Mask) -> TableDelta:
    """The changes of one side at some places, as they are."""
    gone = _is_op(side, Op.DELETE)
    return TableDelta(
        side.table_key,
        side.after.filter(pa.array(mask & ~gone)),
        side.ids.filter(pa.array(mask & gone)),
    )


def _subset(side: TableDiff, rows: pa.Array) -> TableDiff:
    return TableDiff(
        side.table_key,
        side.ids.take(rows),
        side.ops.take(rows),
        side.before.take(rows),
        side.after.take(rows),
        {name: mask.take(rows) for name, mask in side.changed.items()},
    )


def _both(theirs: TableDiff, ours: TableDiff) -> _Both:
    names = [name for name in theirs.after.column_names if name != "id"]
    apart = {name: _numpy(differs(one_chunk(theirs.after[name]), one_chunk(ours.after[name]))) for name in names}
    return _Both(theirs, ours, apart)


def _disagreement(both: _Both, *, strict: bool) -> _Disagreement:
    """Compare what both sides made of each entity.

    Two updates clash in the properties that both changed, differently. All other pairs, and all of a ``strict``
    merge, clash in every column that differs.
    """
    differing = _any(both.apart.values(), len(both.ids))
    gone = _is_op(both.theirs, Op.DELETE) | _is_op(both.ours, Op.DELETE)
    unlike = (gone & ~both.where(Op.DELETE, Op.DELETE)) | (~gone & differing)
    by_property = both.where(Op.UPDATE, Op.UPDATE) & (not strict)
    columns = {
        name: unlike & mask & (~by_property | (_changed(both.theirs, name) & _changed(both.ours, name)))
        for name, mask in both.apart.items()
    }
    return _Disagreement(unlike, (unlike & ~by_property) | _any(columns.values(), len(both.ids)), columns)


def _chosen(key: str, ids: pa.Array, choices: Choices) -> dict[str, Mask]:
    """Which entities a choice gives to each side."""
    by_side: dict[str, list[str]] = {"ours": [], "theirs": []}
    for (table_key, entity_id), side in choices.items():
        if table_key == key:
            by_side[side].append(entity_id)
    return {
        side: _numpy(pc.is_in(ids, value_set=pa.array(wanted, pa.string()))) for side, wanted in by_side.items()
    }


def _rows(both: _Both, wanted: Mask, whole: Mask) -> pa.Table:
    """The target's rows with the properties that the source has changed; the source's ``whole`` rows at some."""
    at, count = np.flatnonzero(wanted), len(both.ids)
    columns = []
    for name in both.ours.after.column_names:
        from_theirs = whole | _changed(both.theirs, name)
        # Theirs and ours, one behind the other: `take` selects values of any type, `if_else` does not.
        values = [*both.theirs.after[name].chunks, *both.ours.after[name].chunks]
        places = np.where(from_theirs[at], at, at + count)
        columns.append(pa.chunked_array(values, both.ours.after.schema.field(name).type).take(pa.array(places)))
    return pa.Table.from_arrays(columns, schema=both.ours.after.schema)


def _conflicts(
    both: _Both, columns: Mapping[str, Mask], at: npt.NDArray[np.int64], images: int
) -> Iterator[Conflict]:
    """The conflicts at some places, as objects; the first ``images`` of them with the rows of all three sides."""
    rows = pa.array(at)
    pairs = zip(both.theirs.ops.take(rows).to_pylist(), both.ours.ops.take(rows).to_pylist(), strict=True)
    names = list(columns)
    clashing = np.stack([columns[name][at] for name in names], axis=1) if names else np.zeros((len(at), 0), bool)
    shown = pa.array(at[:images])
    rows_of = [_images(side.take(shown)) for side in (both.theirs.before, both.ours.after, both.theirs.after)]
    for index, (entity_id, pair) in enumerate(zip(both.ids.take(rows).to_pylist(), pairs, strict=True)):
        base, ours, theirs = (side[index] if index < images else None for side in rows_of)
        properties = tuple(name for name, clashes in zip(names, clashing[index], strict=True) if clashes)
        kind, message = _described(entity_id, pair, properties)
        yield Conflict(
            kind,
            both.theirs.table_key,
            entity_id,
            message,
            None if pair[0] == Op.INSERT else base,
            None if pair[1] == Op.DELETE else ours,
            None if pair[0] == Op.DELETE else theirs,
            properties if kind is ConflictKind.DIVERGENT_UPDATE else (),
        )


def _described(entity_id: str, pair: tuple[str, str], properties: tuple[str, ...]) -> tuple[ConflictKind, str]:
    """The kind of a conflict between two operations on an entity, and its message."""
    if pair == (Op.INSERT, Op.INSERT):
        return ConflictKind.DIVERGENT_INSERT, f"both branches inserted '{entity_id}', differently"
    if Op.DELETE in pair:
        return ConflictKind.DELETE_VS_UPDATE, f"one branch deleted '{entity_id}', the other changed it"
    listed = ", ".join(properties)
    return ConflictKind.DIVERGENT_UPDATE, f"both branches changed {listed} of '{entity_id}'"


def _images(rows: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python has them."""
    columns = [python_values(rows[name]) for name in rows.column_names]
    return [dict(zip(rows.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _changed(side: TableDiff, name: str) -> Mask:
    """The entities in which a side has changed a column."""
    mask = side.changed.get(name)
    return np.zeros(len(side.ids), bool) if mask is None else _numpy(mask)


def _is_op(side: TableDiff, op: Op) -> Mask:
    return _numpy(pc.equal(side.ops, op.value))


def _any(masks: Iterable[Mask], rows: int) -> Mask:
    return reduce(np.logical_or, masks, np.zeros(rows, bool))


def _numpy(mask: pa.Array) -> Mask:
    found: Mask = mask.to_numpy(zero_copy_only=False)
    return found
