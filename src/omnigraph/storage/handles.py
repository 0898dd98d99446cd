"""Open handles of table versions, up to a limit."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import field
from typing import Any, Final

from lance import LanceDataset

from omnigraph.records import dataclass


@dataclass(frozen=True, slots=True)
class HandleLimits:
    """How many handles stay open, and how many fragments their tables may have together.

    A handle takes about half a kilobyte for each fragment.
    """

    handles: int = 1024
    fragments: int = 32_768


DEFAULT_LIMITS: Final = HandleLimits()


@dataclass(frozen=True, slots=True)
class TableRef:
    """One version of one table. ``branch`` is the native branch that holds it, None for the trunk.

    ``checksum`` is that of the file that makes the version, where it is known; it does not name the version.
    """

    location: str
    branch: str | None
    version: int
    checksum: str | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class _Open:
    handle: LanceDataset
    fragments: int


class Handles:
    """The handles of one session. The least recently used ones are closed when there are too many."""

    def __init__(self, session: Any, limits: HandleLimits = DEFAULT_LIMITS) -> None:
        self._session = session
        self._limits = limits
        self._open: OrderedDict[TableRef, _Open] = OrderedDict()
        self._fragments = 0
        self._lock = threading.Lock()

    def find(self, ref: TableRef) -> LanceDataset | None:
        """The handle of a version, if it is open."""
        with self._lock:
            found = self._open.get(ref)
            if found is None:
                return None
            self._open.move_to_end(ref)
            return found.handle

    def keep(self, ref: TableRef, handle: LanceDataset) -> None:
        """Keep a handle open, unless it has a session of its own.

        Lance gives one to a table that it creates or restores by address. Every version committed through such a
        handle would be cached in that session, whose caches are not limited.
        """
        if not self._session.is_same_as(handle.session()):
            return
        fragments = len(handle.fragment_ids())
        with self._lock:
            self._close(ref)
            self._open[ref] = _Open(handle, fragments)
            self._fragments += fragments
            while self._exceeds_limits():
                self._close(next(iter(self._open)))

    def _exceeds_limits(self) -> bool:
        """Are too many handles open? One whose table has too many fragments stays open alone."""
        several = len(self._open) > 1
        return len(self._open) > self._limits.handles or (several and self._fragments > self._limits.fragments)

    def forget(self, location: str, branch: str | None) -> None:
        """Close the handles of a deleted branch."""
        with self._lock:
            for ref in [r for r in self._open if (r.location, r.branch) == (location, branch)]:
                self._close(ref)

    def clear(self) -> None:
        """Let go of all handles."""
        with self._lock:
            self._open.clear()
            self._fragments = 0

    def _close(self, ref: TableRef) -> None:
        closed = self._open.pop(ref, None)
        if closed is not None:
            self._fragments -= closed.fragments
