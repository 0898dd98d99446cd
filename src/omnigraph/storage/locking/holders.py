"""Who holds a lock: what a look at the locks of a graph gives."""

from __future__ import annotations

from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class HeldLock:
    """A lock that is held. ``holder`` is None if its lease cannot be read; ``is_alive`` is None if it is not known
    whether the holder lives."""

    name: str
    file: str
    holder: str | None
    is_alive: bool | None = None
