"""What a merge must make of three states, worked out row by row in plain Python."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]
State = dict[str, dict[str, Row]]
"""The rows of each table, by id."""


def merged_state(base: State, ours: State, theirs: State) -> tuple[State, set[str]]:
    """The merged state, and the kinds of conflicts that stand in its way."""
    after: State = {}
    kinds: set[str] = set()
    for table in base:
        after[table] = {}
        for entity in sorted({*base[table], *ours[table], *theirs[table]}):
            rows = [side[table].get(entity) for side in (base, ours, theirs)]
            row, kind = _merged_row(*rows)
            if kind is not None:
                kinds.add(kind)
            if row is not None:
                after[table][entity] = row
    if not kinds and _has_orphans(after):
        kinds.add("orphan_edge")
    return after, kinds


def _merged_row(base: Row | None, ours: Row | None, theirs: Row | None) -> tuple[Row | None, str | None]:
    if _same(theirs, base) or _same(ours, theirs):
        return ours, None
    if _same(ours, base):
        return theirs, None
    if base is None:
        return ours, "divergent_insert"
    if ours is None or theirs is None:
        return ours, "delete_vs_update"
    row = {}
    for name in base:
        before, mine, other = base[name], ours[name], theirs[name]
        if not (_same(other, before) or _same(mine, before) or _same(mine, other)):
            return ours, "divergent_update"
        row[name] = mine if _same(other, before) else other
    return row, None


def _same(one: object, other: object) -> bool:
    """Bit for bit: zero and minus zero differ."""
    return repr(one) == repr(other)


def _has_orphans(state: State) -> bool:
    nodes = state["node:Person"]
    return any(row[end] not in nodes for row in state["edge:Knows"].values() for end in ("src", "dst"))
