"""Where a graph lies and how it came there: one control object of each graph.

Native branches of Lance tables name folders by absolute addresses, so a graph that was moved or copied by hand has
to be recognised: it lies somewhere else than this object says. A copy that is being made, and a backup, are
recognised by it too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any

from omnigraph.errors import ObjectDamaged
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.control.sealed import damaged, seal, text, texts, unseal
from omnigraph.storage.objects import ObjectStore


class PlaceState(StrEnum):
    """What lies at an address."""

    WHOLE = "whole"
    """A graph."""
    COPYING = "copying"
    """A part of a copy, which is no graph before all of it is there."""
    UPDATING = "updating"
    """A copy that is brought up to date: it can be read, and not be written to."""
    MOVING = "moving"
    """A graph that was moved, and whose branches are given their new addresses."""
    BACKUP = "backup"
    """Backups, from which graphs can be restored."""


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a graph. ``graph_id`` is the same for a graph and all its copies.

    ``root`` is the address by which the versions of its branches name folders, as Lance spells it; ``origins`` are
    the roots that it, or the graph it was copied from, had before. ``copied`` has the source of a copy and the
    heads of its branches.
    """

    graph_id: str
    root: str
    state: PlaceState = PlaceState.WHOLE
    origins: tuple[str, ...] = ()
    copied: Mapping[str, Any] = field(default_factory=dict)

    def moved_to(self, root: str) -> Place:
        """The place of the same graph at another root, before its branches have been given their addresses."""
        origins = dict.fromkeys((*self.origins, self.root))
        return replace(self, root=root, origins=tuple(o for o in origins if o != root), state=PlaceState.MOVING)


def root_of(address: Address) -> str:
    """The address of a graph as the versions of its branches spell it."""
    return address.lance_root


def read_place(objects: ObjectStore) -> Place | None:
    """The place that a graph says it lies at; None for a graph of an older release."""
    found = objects.get(layout.PLACE)
    if found is None:
        return None
    try:
        stored = unseal(layout.PLACE, found.content)
        return Place(
            text(stored["graph_id"]),
            text(stored["root"]),
            PlaceState(text(stored["state"])),
            texts(stored["origins"]),
            dict(stored["copied"]),
        )
    except (ValueError, KeyError, TypeError, ObjectDamaged) as error:
        reason = error.reason if isinstance(error, ObjectDamaged) else damaged(layout.PLACE, error).reason
        remedy = "unless a copy was being made there, remove it: opening the graph for writing writes it again"
        raise ObjectDamaged(layout.PLACE, reason, remedy) from error


def write_place(objects: ObjectStore, place: Place) -> None:
    """Say where a graph lies, and in which state it is."""
    stored = {
        "graph_id": place.graph_id,
        "root": place.root,
        "state": place.state.value,
        "origins": list(place.origins),
        "copied": dict(place.copied),
    }
    objects.put(layout.PLACE, seal(stored))
