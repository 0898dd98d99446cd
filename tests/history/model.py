"""What a merge must make of three states, worked out row by row in plain Python."""

from __future__ import annotations

import datetime as dt
from typing import Any, Literal

Row = dict[str, Any]
State = dict[str, dict[str, Row]]
"""The rows of each table, by id."""


def merged_state(
    base: State, ours: State, theirs: State, resolve: Literal["ours", "theirs"] | None = None
) -> tuple[State, set[str]]:
    """The merged state, and the kinds of conflicts that stand in its way unless one side decides about them."""
    after: State = {}
    kinds: set[str] = set()
    for table in base:
        after[table] = {}
        for entity in sorted({*base[table], *ours[table], *theirs[table]}):
            rows = [side[table].get(entity) for side in (base, ours, theirs)]
            row, kind = _merged_row(*rows)
            if kind is not None and resolve is None:
                kinds.add(kind)
            if kind is not None and resolve == "theirs":
                row = rows[2]
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


def same_states(one: State, other: State) -> bool:
    """Have both the same rows?"""
    return _same(_in_order(one), _in_order(other))


def _in_order(state: State) -> object:
    return sorted((table, sorted(rows.items())) for table, rows in state.items())


def _same(one: object, other: object) -> bool:
    """Bit for bit: zero and minus zero differ."""
    return _shown(one) == _shown(other)


def _shown(value: object) -> str:
    match value:
        case dict():
            return repr({name: _shown(each) for name, each in value.items()})
        case list() | tuple():
            return repr([_shown(each) for each in value])
        case dt.datetime():
            return value.astimezone(dt.UTC).isoformat()
    return repr(value)


def _has_orphans(state: State) -> bool:
    nodes = {entity for table, rows in state.items() if table.startswith("node:") for entity in rows}
    edges = [row for table, rows in state.items() if table.startswith("edge:") for row in rows.values()]
    return any(row[end] not in nodes for row in edges for end in ("src", "dst"))
