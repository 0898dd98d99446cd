"""Live graphs as they are: whether one is there, and which schema its main has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from omnigraph.errors import GraphNotFound, NotAGraph, OmniError, StorageUnavailable
from omnigraph.opening import open as open_graph
from omnigraph.storage import layout
from omnigraph.storage.address import parse_address
from omnigraph.storage.objects import open_objects


class Presence(StrEnum):
    """What lies where a graph is to be."""

    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    """A creation that was interrupted; it can be repeated."""
    GRAPH = "graph"
    OTHER = "other"
    """Files that are no graph, such as the rest of one that was being removed."""
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Live:
    """What was seen of a graph."""

    presence: Presence
    schema_digest: str | None = None
    manifest_version: int | None = None
    reason: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "presence": self.presence.value,
            "schema_digest": self.schema_digest,
            "manifest_version": self.manifest_version,
        }


def look(uri: str) -> Live:
    """Look at a graph without writing; a store that does not answer is an error."""
    try:
        with open_graph(uri, read_only=True) as graph:
            found = graph.snapshot()
            return Live(Presence.GRAPH, found.catalog.hash, found.manifest_version)
    except GraphNotFound:
        return Live(Presence.ABSENT)
    except NotAGraph as error:
        is_begun = open_objects(parse_address(uri)).has(layout.INIT_CLAIM)
        return Live(Presence.INCOMPLETE if is_begun else Presence.OTHER, reason=str(error))
    except StorageUnavailable:
        raise
    except OmniError as error:
        return Live(Presence.UNREADABLE, reason=str(error))
