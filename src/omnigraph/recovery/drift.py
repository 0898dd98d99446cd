"""Drift: versions of a table behind the published one, which no state of the graph names.

Each is known by its transaction. Those of OmniGraph's own writers carry the id of the operation: such a version
was never published, so its write was never acknowledged, and undoing it loses nothing. Any other version was made
with Lance directly.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from omnigraph.recovery.classify import at
from omnigraph.storage.tables import TableRef, Tables, VersionOrigin

MAINTENANCE: Final = frozenset({"Rewrite", "ReserveFragments"})
"""The operations of Lance that only rearrange rows."""

_OWN: Final = re.compile(r"(?:restore:|keep:)?([0-7][0-9A-HJKMNP-TV-Z]{25})")


@dataclass(frozen=True, slots=True)
class UnknownVersion:
    """A version that no state names, and what made it. ``operation_id`` is that of a writer of OmniGraph."""

    version: int
    origin: VersionOrigin

    @property
    def operation_id(self) -> str | None:
        own = _OWN.fullmatch(self.origin.owner or "")
        return None if own is None else own[1]

    @property
    def is_own(self) -> bool:
        """Did a writer of OmniGraph make it?"""
        return self.operation_id is not None

    @property
    def is_maintenance(self) -> bool:
        """Did it only rearrange rows?"""
        return self.origin.operation in MAINTENANCE


def unknown_versions(tables: Tables, published: TableRef) -> list[UnknownVersion]:
    """The versions after the published one, oldest first."""
    found: list[UnknownVersion] = []
    ref = published
    while tables.moved(ref):
        ref = at(ref, ref.version + 1)
        found.append(UnknownVersion(ref.version, tables.origin(ref)))
    return found
