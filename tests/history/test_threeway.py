"""Merging one table: what masks over columns decide is what a loop over entities, written here, decides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sampling import examples

from omnigraph.history.diff import TableDiff, compare_rows
from omnigraph.history.merging.threeway import Merged, merge_table
from omnigraph.history.tables import RowChanges
from omnigraph.lang.schema.catalog import load_catalog

SCHEMA = "node Item { count: I32?  raw: Blob?  size: F64?  spot: Vector(2)?  tags: [String]? }"
ITEM = load_catalog(SCHEMA).nodes["Item"]
COLUMNS = pa.schema(
    {
        "id": pa.string(),
        "count": pa.int32(),
        "raw": pa.large_binary(),
        "size": pa.float64(),
        "spot": pa.list_(pa.float32(), 2),
        "tags": pa.list_(pa.string()),
    }
)
PROPERTIES = COLUMNS.names[1:]

Row = dict[str, Any]
State = dict[str, Row]


@st.composite
def states(draw: st.DrawFn) -> State:
    ids = draw(st.sets(st.sampled_from(["a", "b", "c", "d"])))
    values = st.fixed_dictionaries(
        {
            "count": st.sampled_from([None, 0, 1]),
            "raw": st.sampled_from([None, b"", b"x"]),
            "size": st.sampled_from([None, 0.0, 1.5]),
            "spot": st.sampled_from([None, [0.0, 1.0], [1.0, 0.0]]),
            "tags": st.sampled_from([None, [], ["x"], ["x", "y"]]),
        }
    )
    return {entity_id: {"id": entity_id, **draw(values)} for entity_id in ids}


def changes(before: State, after: State) -> TableDiff:
    def table(state: State) -> pa.Table:
        return pa.Table.from_pylist(list(state.values()), COLUMNS)

    return compare_rows(ITEM, RowChanges(table(before), table(after)))


@dataclass
class Expected:
    """The state that a merge makes of the target, and the conflicts: id, kind, properties."""

    state: State
    conflicts: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)


def expected(base: State, theirs: State, ours: State, decide: dict[str, str | None], *, strict: bool) -> Expected:
    """The merge of three states, one entity after the other."""
    result = Expected(dict(ours))
    for entity_id in sorted({*base, *theirs, *ours}):
        was, other, mine = (state.get(entity_id) for state in (base, theirs, ours))
        if other in (was, mine):
            continue
        if mine == was:
            taken = other
        else:
            taken, clash = one_entity(was, other, mine, strict=strict)
            if clash is not None:
                side = decide[entity_id]
                if side is None:
                    result.conflicts.append((entity_id, *clash))
                taken = other if side == "theirs" else mine
        result.state.pop(entity_id, None)
        if taken is not None:
            result.state[entity_id] = taken
    return result


def one_entity(
    was: Row | None, other: Row | None, mine: Row | None, *, strict: bool
) -> tuple[Row | None, tuple[str, tuple[str, ...]] | None]:
    """The merged row of an entity that both sides have changed, differently; and the conflict, if it is one."""
    if other is None or mine is None:
        return mine, ("delete_vs_update", ())
    if was is None:
        return mine, ("divergent_insert", ())
    apart = [name for name in PROPERTIES if other[name] != mine[name]]
    both = [name for name in apart if strict or was[name] not in (other[name], mine[name])]
    if both:
        return mine, ("divergent_update", tuple(both))
    return {name: other[name] if other[name] != was[name] else mine[name] for name in mine}, None


def applied(target: State, merged: Merged) -> State:
    state = dict(target)
    if merged.delta is not None:
        for entity_id in merged.delta.deletes.to_pylist():
            del state[entity_id]
        state.update({row["id"]: row for row in merged.delta.upserts.to_pylist()})
    return state


SIDES = st.sampled_from([None, "ours", "theirs"])


@given(states(), states(), states(), st.booleans(), SIDES, st.dictionaries(st.sampled_from("abcd"), SIDES))
@settings(max_examples=examples(50, of=1_000), deadline=None)
def test_masks_decide_what_a_loop_over_entities_decides(
    base: State, theirs: State, ours: State, strict: bool, resolve: str | None, given_sides: dict[str, str | None]
) -> None:
    choices = {("node:Item", entity_id): side for entity_id, side in given_sides.items() if side is not None}
    decide = {entity_id: choices.get(("node:Item", entity_id), resolve) for entity_id in "abcd"}
    merged = merge_table(changes(base, theirs), changes(base, ours), choices, resolve, strict=strict)
    model = expected(base, theirs, ours, decide, strict=strict)
    assert applied(ours, merged) == model.state
    assert [(found.id, found.kind.value, found.properties) for found in merged.conflicts] == model.conflicts
    for found in merged.conflicts:
        assert found.id is not None
        images = (found.base, found.ours, found.theirs)
        assert images == tuple(state.get(found.id) for state in (base, ours, theirs))
    undecided = expected(base, theirs, ours, dict.fromkeys("abcd"), strict=strict)
    assert merged.decided == {("node:Item", found) for found, *_ in undecided.conflicts} & choices.keys()


def test_all_conflicts_are_reported_but_only_the_first_with_their_rows() -> None:
    empty = dict.fromkeys(PROPERTIES)
    base, theirs, ours = (
        {entity_id: {"id": entity_id, **empty, "count": count} for entity_id in "abc"} for count in range(3)
    )
    merged = merge_table(changes(base, theirs), changes(base, ours), {}, None, strict=False, images=2)
    assert [(found.id, found.properties) for found in merged.conflicts] == [(each, ("count",)) for each in "abc"]
    assert [found.ours is None for found in merged.conflicts] == [False, False, True]
    assert merged.conflicts[1].theirs == theirs["b"]
