"""One memory budget for everything the read side keeps: columns, topology, text indexes, vectors.

What is kept is immutable and known by the physical identity of what it was made from, so it is never wrong; it is
only let go, the least recently used first, when there is too much of it.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast

SETTING: Final = "OMNIGRAPH_CACHE_BYTES"
_REMEMBERED: Final = 10_000


class Sized(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def nbytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Sized)


@dataclass(slots=True)
class _Entry:
    value: Any
    nbytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds."""

    limit: int
    used: int
    entries: int
    hits: int
    misses: int


class Cache:
    """Least recently used goes first. Two threads that want the same thing wait for one to make it."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()
        self._used = self._hits = self._misses = 0
        self._asked: dict[Hashable, int] = {}

    def find(self, key: Hashable) -> Any | None:
        """What is kept under a key, if anything is."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return None
            self._entries.move_to_end(key)
            self._hits += 1
            return entry.value

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """What is kept under a key, made first if need be."""
        found = self.find(key)
        if found is not None:
            return cast(Kept, found)
        with self._lock:
            turn = self._making.setdefault(key, threading.Lock())
        with turn:
            found = self.find(key)
            if found is not None:
                return cast(Kept, found)
            try:
                made = make()
                self._keep(key, made)
            finally:
                with self._lock:
                    self._making.pop(key, None)
        return made

    def _keep(self, key: Hashable, value: Sized) -> None:
        with self._lock:
            self._misses += 1
            size = int(value.nbytes)
            if size > self.limit:
                return
            self._entries[key] = _Entry(value, size)
            self._used += size
            while self._used > self.limit:
                _, gone = self._entries.popitem(last=False)
                self._used -= gone.nbytes

    def has(self, key: Hashable) -> bool:
        """Is it kept? Asking is no use."""
        with self._lock:
            return key in self._entries

    def ask(self, key: Hashable) -> None:
        """Note that something was done without what could have been kept."""
        with self._lock:
            if len(self._asked) >= _REMEMBERED:
                self._asked.clear()
            self._asked[key] = self._asked.get(key, 0) + 1

    def asked(self, key: Hashable) -> int:
        """How often that was noted."""
        with self._lock:
            return self._asked.get(key, 0)

    def clear(self) -> None:
        """Let go of everything."""
        with self._lock:
            self._entries.clear()
            self._used = 0

    def usage(self) -> Usage:
        with self._lock:
            return Usage(self.limit, self._used, len(self._entries), self._hits, self._misses)


def default_limit() -> int:
    """A quarter of the machine's memory, unless the setting says otherwise."""
    wanted = os.environ.get(SETTING, "").strip()
    if wanted:
        return int(wanted)
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) // 4
