"""Removing garbage, in batches under the lock that keeps writers out.

Before each batch the cleanup looks up what was published, branched and tagged since the last one: whatever that
needs is not removed. A writer that prepares a change meanwhile looks for its files before it commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final, TypeVar

from omnigraph.errors import RecoveryBlocked
from omnigraph.failpoints import hit
from omnigraph.maintenance.cleanup.garbage import Garbage
from omnigraph.maintenance.cleanup.states import Needed, follow
from omnigraph.manifest.repository import Repository
from omnigraph.manifest.retained import write_retained
from omnigraph.recovery.heal import heal
from omnigraph.recovery.sidecar import list_sidecars
from omnigraph.storage import layout
from omnigraph.storage.control.contents import Entry
from omnigraph.storage.control.sealed import seal
from omnigraph.storage.locks import CommitLock

BATCH: Final = 1_000
"""How many files are removed while writers wait."""

_ATTEMPTS: Final = 5
"""How often interrupted writes are healed before a batch is given up."""

Item = TypeVar("Item")


class Sweeper:
    """Removes garbage of one graph. ``needed`` grows with what is published meanwhile."""

    def __init__(self, repository: Repository, needed: Needed) -> None:
        self._repository = repository
        self._objects = repository.objects
        self.needed = needed
        self._kept = set(repository.manifest.kept.keys())

    @contextmanager
    def locked(self) -> Iterator[CommitLock]:
        """Hold the whole graph, with no write in flight, and with ``needed`` up to date."""
        for _ in range(_ATTEMPTS):
            with self._repository.locks.control() as lock:
                if not list_sidecars(self._objects):
                    follow(self._repository, self.needed)
                    self._keep_older_states(lock)
                    yield lock
                    return
            heal(self._repository)
        raise RecoveryBlocked("cleanup", "writers die faster than their writes are healed")

    def _keep_older_states(self, lock: CommitLock) -> None:
        """Make objects of the states that stay though versions around them go, and note what will be left."""
        manifest, changed = self._repository.manifest, False
        for native, states in self.needed.states.items():
            for version in sorted(states.older):
                key = layout.kept_state(native, version)
                if key not in self._kept:
                    lock.verify()
                    manifest.kept.put(native, version, manifest.rows_at(native, version))
                    self._kept.add(key)
                    changed = True
        if changed:
            write_retained(self._objects, self.needed.retained)

    def begin(self) -> None:
        """Note what will be left of each branch, and where its newest state is, before the first version goes."""
        with self.locked() as lock:
            lock.verify()
            write_retained(self._objects, self.needed.retained)
            for native, states in self.needed.states.items():
                self._objects.put(layout.head_hint(native), seal({"version": states.newest}))
        hit("cleanup.after_states")

    def sweep(self, garbage: Garbage, batch: int = BATCH) -> tuple[int, int, int]:
        """Remove what may go of one table, the versions first; how many versions, files and bytes went."""
        versions = files = size = 0
        for some in _slices(garbage.versions, batch):
            gone = self._remove(garbage, partial(_versions_still_unneeded, garbage, some))
            versions, size = versions + len(gone), size + sum(entry.size for entry in gone)
            hit("cleanup.after_versions")
        for few in _slices(garbage.files, BATCH):
            gone = self._remove(garbage, partial(_files_still_unneeded, garbage, few))
            files, size = files + len(gone), size + sum(entry.size for entry in gone)
            hit("cleanup.after_files")
        if garbage.folders:
            with self.locked():
                self._objects.prune(dict.fromkeys(garbage.folders))
        if garbage.location == layout.MANIFEST:
            self._repository.manifest.forget_states()
        for native in garbage.kept:
            self._repository.tables.forget(garbage.location, native)
        return versions, versions + files, size

    def _remove(self, garbage: Garbage, still_unneeded: Callable[[], list[Entry]]) -> list[Entry]:
        """Remove those of some files that nothing needs even now."""
        with self.locked() as lock:
            self._follow_table(garbage)
            gone = still_unneeded()
            lock.verify()
            self._objects.delete_all([entry.key for entry in gone])
        return gone

    def _follow_table(self, garbage: Garbage) -> None:
        """Keep what the states need of a table that were published since its garbage was looked for."""
        repository, location = self._repository, garbage.location
        if location == layout.MANIFEST:
            for native, states in self.needed.states.items():
                garbage.keep(repository, native, range(states.oldest, states.newest + 1), is_needed=True)
        elif location in (layout.COMMITS, layout.RECOVERIES):
            newest = repository.tables.newest(location) or 0
            known = max(garbage.kept.get(None, ()), default=newest)
            garbage.keep(repository, None, range(known + 1, newest + 1), is_needed=True)
        else:
            for native, versions in self.needed.pins.get(location, {}).items():
                garbage.keep(repository, native, versions, is_needed=False)

    def sweep_objects(self, find: Callable[[], list[str]]) -> int:
        """Remove control objects that nothing needs any more; how many."""
        with self.locked() as lock:
            keys = find()
            for key in keys:
                lock.verify()
                self._objects.retire(key)
        return len(keys)


def _versions_still_unneeded(garbage: Garbage, some: Sequence[tuple[str | None, int, Entry]]) -> list[Entry]:
    return [entry for native, version, entry in some if version not in garbage.kept.get(native, ())]


def _files_still_unneeded(garbage: Garbage, some: Sequence[tuple[str, Entry]]) -> list[Entry]:
    return [entry for owner, entry in some if owner not in garbage.referenced]


def _slices(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
