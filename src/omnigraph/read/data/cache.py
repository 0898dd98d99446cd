"""One memory budget for everything that queries keep: columns, topology, text indexes, vectors.

Kept values are immutable and say what they were made from. A value that does not suit a query, because tables have
changed since, is what the next one is made from: only the change is read. Values are dropped, the least recently
used ones first, when they take more memory than the limit.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

from omnigraph.errors import OmniError, RequestError
from omnigraph.read.data.layout import Layouts
from omnigraph.read.limits import machine_memory
from omnigraph.records import dataclass

SETTING: Final = "OMNIGRAPH_CACHE_BYTES"
_REMEMBERED: Final = 10_000
_PATIENCE: Final = 0.05


class Sized(Protocol):
    """Something that knows how much memory it takes."""

    @property
    def nbytes(self) -> int: ...


Kept = TypeVar("Kept", bound=Sized)
Held = TypeVar("Held")


@dataclass(slots=True)
class _Entry:
    value: Any
    nbytes: int


@dataclass(slots=True)
class _Making:
    """A value that one thread makes and others may wait for; None if making it failed."""

    done: threading.Event = field(default_factory=threading.Event)
    value: Any = None


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds."""

    limit: int
    used: int
    entries: int
    hits: int
    misses: int


def _go_on() -> None:
    """The check of a caller that never stops waiting: nothing."""


def _any(value: object) -> bool:  # noqa: ARG001
    """What a caller says for whom every value suits."""
    return True


class Cache:
    """Keeps values up to a limit in bytes; the least recently used ones go first. Of several threads that need the
    same value, one makes it and the others wait."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = default_limit() if limit is None else limit
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}
        self._lock = threading.Lock()
        self._used = self._hits = self._misses = 0
        self._lookups: dict[Hashable, int] = {}
        self._beside: set[Hashable] = set()
        self.dropped = 0
        """How often a value was dropped."""
        self.layouts = Layouts()

    def find(self, key: Hashable) -> Any | None:
        """What is kept under a key, if anything is."""
        with self._lock:
            return self._found(key)

    def _found(self, key: Hashable) -> Any | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        self._hits += 1
        return entry.value

    def get(self, key: Hashable, make: Callable[[], Kept], check: Callable[[], None] = _go_on) -> Kept:
        """What is kept under a key, made first if need be. A thread that waits while another one makes it calls
        ``check`` again and again, which may raise."""
        return self.follow(key, lambda _: make(), _any, check)

    def follow(
        self,
        key: Hashable,
        make: Callable[[Kept | None], Kept],
        suits: Callable[[Kept], bool],
        check: Callable[[], None] = _go_on,
    ) -> Kept:
        """What is kept under a key if it suits; else what is made from it, which takes its place."""
        while True:
            with self._lock:
                entry = self._entries.get(key)
                known = None if entry is None else entry.value
                if known is not None and suits(known):
                    return cast(Kept, self._found(key))
                making = self._making.get(key)
                if making is None:
                    mine = self._making[key] = _Making()
            if making is None:
                return self._make(key, partial(make, known), mine)
            while not making.done.wait(_PATIENCE):
                check()
            if making.value is not None and suits(making.value):
                return cast(Kept, making.value)

    def _make(self, key: Hashable, make: Callable[[], Kept], making: _Making) -> Kept:
        try:
            made = make()
            self._keep(key, made)
            making.value = made
            return made
        finally:
            with self._lock:
                del self._making[key]
            making.done.set()

    def _keep(self, key: Hashable, value: Sized) -> None:
        with self._lock:
            self._misses += 1
            before = self._entries.pop(key, None)
            if before is not None:
                self._used -= before.nbytes
            entry = self._entries[key] = _Entry(value, 0)
            self._measure(key, entry)

    def relatives(self, family: Hashable) -> list[Any]:
        """The values whose keys are pairs that begin with the family, the most recently used first."""
        with self._lock:
            keys = [key for key in self._entries if isinstance(key, tuple) and key[0] == family]
            return [self._entries[key].value for key in reversed(keys)]

    def names(self, beginning: tuple[Hashable, ...]) -> set[str]:
        """The names under which there are values whose families are such a beginning and a name."""
        with self._lock:
            families = [key[0] for key in self._entries if isinstance(key, tuple) and isinstance(key[0], tuple)]
        return {str(family[-1]) for family in families if family[:-1] == beginning}

    def drop(self, part: object) -> None:
        """Drop everything whose key has this object in it."""
        with self._lock:
            self.dropped += 1
            for key in [key for key in self._entries if _is_in(part, key)]:
                self._used -= self._entries.pop(key).nbytes

    def measure(self, key: Hashable) -> None:
        """Measure a value again: what was derived from it on the way counts too."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None:
                self._measure(key, entry)

    def _measure(self, key: Hashable, entry: _Entry) -> None:
        """Measure an entry, and drop the least recently used ones while there is too much."""
        size = int(entry.value.nbytes)
        self._used += size - entry.nbytes
        entry.nbytes = size
        if size > self.limit:
            del self._entries[key]
            self._used -= size
            self.dropped += 1
        while self._used > self.limit:
            self.dropped += 1
            _, gone = self._entries.popitem(last=False)
            self._used -= gone.nbytes

    def has(self, key: Hashable) -> bool:
        """Is a value kept under a key? This does not count as use of it."""
        with self._lock:
            return key in self._entries

    def count_lookup(self, key: Hashable) -> None:
        """Count a look-up in a table that is not in memory."""
        with self._lock:
            if len(self._lookups) >= _REMEMBERED:
                self._lookups.clear()
            self._lookups[key] = self._lookups.get(key, 0) + 1

    def lookups(self, key: Hashable) -> int:
        """How many look-ups in a table were counted."""
        with self._lock:
            return self._lookups.get(key, 0)

    def beside(self, key: Hashable, work: Callable[[], object]) -> None:
        """Do some work in a thread of its own, unless work under that key is being done. If it fails, it is tried
        again when it is wanted again."""
        with self._lock:
            if key in self._beside:
                return
            self._beside.add(key)

        def run() -> None:
            try:
                with suppress(OmniError):
                    work()
            finally:
                with self._lock:
                    self._beside.discard(key)

        threading.Thread(target=run, name="omnigraph-beside", daemon=True).start()

    def clear(self) -> None:
        """Drop everything."""
        with self._lock:
            self._entries.clear()
            self._used = 0
            self.dropped += 1
            self.layouts = Layouts()

    def usage(self) -> Usage:
        with self._lock:
            return Usage(self.limit, self._used, len(self._entries), self._hits, self._misses)


class QueryCache:
    """The cache as one query uses it: values stay with the query to its end, also if the cache has no room for
    them, and ``check`` is called while values are made or awaited, so that the query can be stopped."""

    def __init__(self, cache: Cache, check: Callable[[], None] = _go_on) -> None:
        self.check = check
        self._cache = cache
        self._held: dict[Hashable, Any] = {}

    def get(self, key: Hashable, make: Callable[[], Kept]) -> Kept:
        """See `Cache.get`."""
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = self._cache.get(key, make, self.check)
        return cast(Kept, found)

    def follow(
        self, key: Hashable, make: Callable[[Kept | None], Kept], suits: Callable[[Kept], bool] = _any
    ) -> Kept:
        """See `Cache.follow`. The tables of a query do not change, so what has suited it suits it to its end."""
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = self._cache.follow(key, make, suits, self.check)
        return cast(Kept, found)

    def once(self, key: Hashable, make: Callable[[], Held]) -> Held:
        """What the query needs more than once, but no other query after it."""
        found = self._held.get(key)
        if found is None:
            found = self._held[key] = make()
        return cast(Held, found)

    def relatives(self, family: Hashable) -> list[Any]:
        """See `Cache.relatives`."""
        return self._cache.relatives(family)

    def names(self, beginning: tuple[Hashable, ...]) -> set[str]:
        """See `Cache.names`."""
        return self._cache.names(beginning)

    def drop(self, part: object) -> None:
        """See `Cache.drop`."""
        self._cache.drop(part)

    def beside(self, key: Hashable, work: Callable[[QueryCache], object]) -> None:
        """See `Cache.beside`. The work uses the cache as a query of its own."""

        def run() -> None:
            own = QueryCache(self._cache)
            try:
                work(own)
            finally:
                own.release()

        self._cache.beside(key, run)

    @property
    def limit(self) -> int:
        """How many bytes the cache may hold."""
        return self._cache.limit

    @property
    def dropped(self) -> int:
        """How often the cache has dropped a value."""
        return self._cache.dropped

    @property
    def layouts(self) -> Layouts:
        """Where the rows of each table lie in memory."""
        return self._cache.layouts

    def find(self, key: Hashable) -> Any | None:
        """See `Cache.find`."""
        found = self._held.get(key)
        return self._cache.find(key) if found is None else found

    def has(self, key: Hashable) -> bool:
        """See `Cache.has`."""
        return key in self._held or self._cache.has(key)

    def count_lookup(self, key: Hashable) -> None:
        """See `Cache.count_lookup`."""
        self._cache.count_lookup(key)

    def lookups(self, key: Hashable) -> int:
        """See `Cache.lookups`."""
        return self._cache.lookups(key)

    def release(self) -> None:
        """Let the cache account for the sizes that values have grown to, and give them up."""
        for key in self._held:
            self._cache.measure(key)
        self._held.clear()


def _is_in(part: object, key: object) -> bool:
    return key is part or (isinstance(key, tuple) and any(_is_in(part, item) for item in key))


def default_limit() -> int:
    """A quarter of the machine's memory, unless the setting says otherwise."""
    wanted = os.environ.get(SETTING, "").strip()
    if not wanted:
        return machine_memory() // 4
    if not wanted.isascii() or not wanted.isdecimal():
        raise RequestError(f"{SETTING}={wanted} is not a number of bytes; give one, such as {1 << 30}, or none")
    return int(wanted)
