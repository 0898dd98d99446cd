"""The changes of one commit, in an order that never changes, cut into pieces of bounded size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.arguments import number_argument
from omnigraph.errors import CursorRejected, InvalidArgument
from omnigraph.formats.encoding import row_bytes
from omnigraph.history.diff import Change, ChangeFilter, TableDiff, moved_tables
from omnigraph.history.feed.windows import HeldWindows
from omnigraph.lang.schema.catalog import Catalog, EdgeType, EntityType
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.manifest.state import Commit
from omnigraph.read.result.cells import json_value
from omnigraph.settings import PAGE_BYTES, PAGE_CHANGES, WALKED_COMMITS
from omnigraph.storage.tables import Tables

_MOST_CHANGES: Final = 8_192
_MOST_BYTES: Final = 32 << 20
_MOST_COMMITS: Final = 512
_ENDS: Final = {"src": "from", "dst": "to"}


@dataclass(frozen=True, slots=True)
class ChangeBlock:
    """What a commit, the ``cause``, has changed against its first parent, or a piece of it.

    ``complete`` says that the commit's changes end here; otherwise the next page goes on with them.
    """

    cause: Commit
    changes: tuple[Change, ...]
    complete: bool
    type_ids: Mapping[str, int] = field(default_factory=dict, repr=False, compare=False)

    def as_json(self) -> dict[str, Any]:
        return {
            "cause": self.cause.as_json(),
            "changes": [_change_json(change, self.type_ids[change.table_key]) for change in self.changes],
            "complete": self.complete,
        }


def _change_json(change: Change, type_id: int) -> dict[str, Any]:
    kind, _, name = change.table_key.partition(":")
    shown = {"kind": kind, "type": {"id": type_id, "name": name}, "id": change.id, "op": change.op.value}
    images = {"before": change.before, "after": change.after}
    shown |= {when: _image_json(kind, image) for when, image in images.items() if image is not None}
    return shown | ({"changed": list(change.changed)} if change.changed else {})


def _image_json(kind: str, image: Mapping[str, Any]) -> dict[str, Any]:
    """An entity as JSON: its properties, and the ids of the two nodes that an edge connects."""
    ends = _ENDS if kind == "edge" else {}
    values = {name: json_value(value) for name, value in image.items() if name != "id" and name not in ends}
    endpoints = {spelled: image[name] for name, spelled in ends.items()}
    return {"properties": values} | ({"endpoints": endpoints} if endpoints else {})


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How much a page holds, and how many commits a poll walks through.

    Bytes are those of the rows before and after. A change that is larger than all of them is on a page of its own.
    """

    changes: int = PAGE_CHANGES
    bytes: int = PAGE_BYTES
    commits: int = WALKED_COMMITS

    def __post_init__(self) -> None:
        _require_within("limit", self.changes, _MOST_CHANGES)
        _require_within("limit_bytes", self.bytes, _MOST_BYTES)
        _require_within("limit_commits", self.commits, _MOST_COMMITS)


def _require_within(argument: str, value: object, most: int) -> None:
    if not 1 <= number_argument(argument, value) <= most:
        raise InvalidArgument(argument, f"it is from 1 to {most:,}, not {value}")


@dataclass(frozen=True, slots=True)
class Place:
    """A place inside a commit's changes: one among the changes of a type. Types that come before that type in the
    order of types lie before it wholly."""

    type_id: int
    offset: int


class Room:
    """What is left of a page's limits."""

    def __init__(self, limits: PageLimits) -> None:
        self.changes = limits.changes
        self._bytes = limits.bytes
        self._is_empty = True

    @property
    def is_full(self) -> bool:
        return self.changes <= 0 or self._bytes <= 0

    def fitting(self, sizes: npt.NDArray[np.int64]) -> int:
        """How many of the changes with these sizes fit, the first ones; they are taken off what is left."""
        ends = np.cumsum(sizes)
        count = min(self.changes, int(np.searchsorted(ends, self._bytes, "right")))
        if count == 0 and self._is_empty and len(sizes):
            count = 1
        if count:
            self.changes -= count
            self._bytes -= int(ends[count - 1])
            self._is_empty = False
        return count


def cut_changes(
    tables: Tables,
    held: HeldWindows,
    states: tuple[Snapshot, Snapshot],
    wanted: ChangeFilter,
    start: Place | None,
    room: Room,
) -> tuple[list[Change], Place | None]:
    """The changes between two states from a place on, as far as there is room, and the place where they go on.

    Nodes come before edges, types in the order of their numbers, the changes of a type in the order of ids.
    """
    changes: list[Change] = []
    for table_key, type_id in moved_types(*states, wanted).items():
        offset = 0
        if start is not None and type_id == start.type_id:
            offset, start = start.offset, None
        if start is not None:
            continue
        if room.is_full:
            return changes, Place(type_id, offset)
        found = held.of(tables, states, table_key, wanted)
        if offset > found.size:
            raise CursorRejected(f"{table_key} has fewer changes than it says")
        while offset < found.size:
            if room.is_full:
                return changes, Place(type_id, offset)
            window = found.at(offset)
            taken = room.fitting(_sizes(window.changes.slice(0, room.changes)))
            changes += window.changes.slice(0, taken).rows()
            if taken < len(window.places):
                return changes, Place(type_id, int(window.places[taken]))
            offset = window.end
    if start is not None:
        raise CursorRejected("it is for a type that the commit has not touched")
    held.drop()
    return changes, None


def moved_types(before: Snapshot, after: Snapshot, wanted: ChangeFilter) -> dict[str, int]:
    """The tables that a commit has touched, in the order of the feed, with the numbers of their types."""
    moved = set(moved_tables(before, after, wanted))
    return {key: number for key, number in ordered_types(after.catalog).items() if key in moved}


def ordered_types(catalog: Catalog) -> dict[str, int]:
    """The tables of all types in the order of the feed, with the types' numbers."""
    found: list[EntityType] = [*catalog.nodes.values(), *catalog.edges.values()]
    found.sort(key=lambda entity: (isinstance(entity, EdgeType), entity.id))
    return {entity.table_key: entity.id for entity in found}


def _sizes(found: TableDiff) -> npt.NDArray[np.int64]:
    """The bytes of each change: those of its rows before and after."""
    return _table_bytes(found.before) + _table_bytes(found.after)


def _table_bytes(rows: pa.Table) -> npt.NDArray[np.int64]:
    parts = [row_bytes(batch) for batch in rows.to_batches()]
    return np.concatenate([np.zeros(0, np.int64), *parts])
