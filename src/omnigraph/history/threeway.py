"""Three-way merging of one table: what two sides have made of a common base, put together property by property."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Conflict, ConflictKind
from omnigraph.history.diff import Op, TableDiff, differs
from omnigraph.read.result.cells import python_values
from omnigraph.write.delta import TableDelta

Mask = npt.NDArray[np.bool_]
Choices = Mapping[tuple[str, str], str]
"""Which side decides about an entity, `ours` or `theirs`, by table key and id."""


@dataclass(frozen=True, slots=True)
class Merged:
    """What the target's table has to become, and the entities about which the sides disagree."""

    delta: TableDelta | None
    conflicts: tuple[Conflict, ...] = ()
    decided: frozenset[tuple[str, str]] = frozenset()
    """The conflicts that a choice has decided."""


@dataclass(frozen=True, slots=True)
class _Both:
    """The entities that both sides have changed, each side's rows in the same order."""

    ids: list[str]
    theirs: TableDiff
    ours: TableDiff


def merge_table(
    theirs: TableDiff, ours: TableDiff | None, choices: Choices, resolve: str | None, *, strict: bool
) -> Merged:
    """Put the changes of the source (theirs) on top of the target's (ours); both are relative to the base.

    Where only the source has changed an entity, its change is taken. Where both have, changes of different
    properties are put together, unless the merge is ``strict``; equal changes are no conflict.
    """
    key = theirs.table_key
    if ours is None or not len(ours.ids):
        return Merged(_taken(theirs, np.ones(len(theirs.ids), bool)))
    shared = pc.is_in(theirs.ids, value_set=ours.ids).to_numpy(zero_copy_only=False)
    if not shared.any():
        return Merged(_taken(theirs, ~shared))
    rows = pc.index_in(theirs.ids.filter(pa.array(shared)), value_set=ours.ids)
    both = _Both(
        theirs.ids.filter(pa.array(shared)).to_pylist(),
        _subset(theirs, pa.array(np.flatnonzero(shared))),
        _subset(ours, rows),
    )
    upserts, deletes, conflicts, decided = _decide(key, both, choices, resolve, strict=strict)
    alone = _taken(theirs, ~shared)
    written = pa.concat_tables([alone.upserts, *upserts]) if upserts else alone.upserts
    removed = pa.concat_arrays([alone.deletes, pa.array(deletes, pa.string())])
    delta = TableDelta(key, written, removed)
    return Merged(None if delta.is_empty else delta, tuple(conflicts), frozenset(decided))


def _taken(side: TableDiff, mask: Mask) -> TableDelta:
    """The changes of one side at some places, as they are."""
    gone = pc.equal(side.ops, Op.DELETE.value).to_numpy(zero_copy_only=False)
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


def _decide(
    key: str, both: _Both, choices: Choices, resolve: str | None, *, strict: bool
) -> tuple[list[pa.Table], list[str], list[Conflict], list[tuple[str, str]]]:
    """Decide about each entity that both sides have changed."""
    upserts: list[pa.Table] = []
    deletes: list[str] = []
    conflicts: list[Conflict] = []
    decided: list[tuple[str, str]] = []
    names = both.theirs.after.column_names
    apart = {name: _apart(both, name) for name in names if name != "id"}
    their_ops, our_ops = both.theirs.ops.to_pylist(), both.ours.ops.to_pylist()
    theirs_changed = {name: mask.to_pylist() for name, mask in both.theirs.changed.items()}
    ours_changed = {name: mask.to_pylist() for name, mask in both.ours.changed.items()}
    for index, entity_id in enumerate(both.ids):
        pair = (their_ops[index], our_ops[index])
        differing = [name for name, mask in apart.items() if mask[index]]
        if pair == (Op.DELETE, Op.DELETE) or (Op.DELETE not in pair and not differing):
            continue
        clashing = _clashing(pair, differing, theirs_changed, ours_changed, index, strict=strict)
        if not clashing:
            upserts.append(_put_together(both, names, theirs_changed, index))
            continue
        choice = choices.get((key, entity_id), resolve)
        if choice is None:
            conflicts.append(_conflict(key, entity_id, pair, tuple(clashing), both, index))
            continue
        decided.append((key, entity_id))
        if choice == "theirs":
            if pair[0] == Op.DELETE:
                deletes.append(entity_id)
            else:
                upserts.append(both.theirs.after.slice(index, 1))
    return upserts, deletes, conflicts, decided


def _clashing(
    pair: tuple[str, str],
    differing: list[str],
    theirs: Mapping[str, list[bool]],
    ours: Mapping[str, list[bool]],
    index: int,
    *,
    strict: bool,
) -> list[str]:
    """The properties about which the two sides disagree; all that differ, where they cannot be put together."""
    if pair != (Op.UPDATE, Op.UPDATE) or strict:
        return differing or ["id"]
    return [name for name in differing if theirs.get(name, [])[index] and ours.get(name, [])[index]]


def _apart(both: _Both, name: str) -> list[bool]:
    """Where the two sides' rows differ in a column."""
    found: list[bool] = differs(
        both.theirs.after[name].combine_chunks(), both.ours.after[name].combine_chunks()
    ).to_pylist()
    return found


def _put_together(both: _Both, names: list[str], theirs: Mapping[str, list[bool]], index: int) -> pa.Table:
    """The target's row with the properties that the source has changed."""
    columns = [
        (both.theirs if theirs.get(name, [False] * (index + 1))[index] else both.ours).after[name].slice(index, 1)
        for name in names
    ]
    return pa.Table.from_arrays(columns, schema=both.ours.after.schema)


def _conflict(
    key: str, entity_id: str, pair: tuple[str, str], names: tuple[str, ...], both: _Both, index: int
) -> Conflict:
    if pair == (Op.INSERT, Op.INSERT):
        kind, message = ConflictKind.DIVERGENT_INSERT, f"both branches inserted '{entity_id}', differently"
    elif Op.DELETE in pair:
        kind, message = ConflictKind.DELETE_VS_UPDATE, f"one branch deleted '{entity_id}', the other changed it"
    else:
        listed = ", ".join(names)
        kind, message = ConflictKind.DIVERGENT_UPDATE, f"both branches changed {listed} of '{entity_id}'"
    return Conflict(
        kind,
        key,
        entity_id,
        message,
        _image(both.theirs.before, index, present=pair[0] != Op.INSERT),
        _image(both.ours.after, index, present=pair[1] != Op.DELETE),
        _image(both.theirs.after, index, present=pair[0] != Op.DELETE),
        names if kind is ConflictKind.DIVERGENT_UPDATE else (),
    )


def _image(rows: pa.Table, index: int, *, present: bool) -> dict[str, Any] | None:
    if not present:
        return None
    return {name: python_values(rows[name].slice(index, 1))[0] for name in rows.column_names}
