"""Cleaning a graph: a preview, or the real thing."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from omnigraph.errors import RequestError, StorageError
from omnigraph.failpoints import hit
from omnigraph.maintenance.cleanup.files import TableFiles, table_files, tables_below
from omnigraph.maintenance.cleanup.garbage import (
    Garbage,
    Rules,
    log_garbage,
    manifest_garbage,
    pinned_files,
    table_garbage,
)
from omnigraph.maintenance.cleanup.report import CleanedBranch, CleanedTable, CleanupReport
from omnigraph.maintenance.cleanup.retention import LONGEST, Retention
from omnigraph.maintenance.cleanup.states import Needed, survey
from omnigraph.maintenance.cleanup.sweep import BATCH, Sweeper
from omnigraph.manifest.cleanups import newest_mark
from omnigraph.manifest.publisher import TRUSTED
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.heal import heal
from omnigraph.recovery.jobs import left_jobs, reclaim, records
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.control.contents import Entry
from omnigraph.storage.control.sealed import seal

LOGS: Final = (layout.COMMITS, layout.RECOVERIES)
_LOCK: Final = "cleanup"
_ATTEMPTS: Final = 5
"""How often the states are looked at without the lock that would keep branches from being deleted."""


def preview(repository: Repository, policy: Retention) -> CleanupReport:
    """What a cleanup would remove now. Nothing is written, and no lock is taken."""
    _require_files(repository)
    found = _looked_up(repository, policy, dt.datetime.now(dt.UTC))
    jobs = [job for job in left_jobs(repository) if not job.is_running]
    tables = [_counted(found, garbage) for garbage in chain([found.manifest], found.logs, found.tables())]
    return found.report(tables, confirmed=False, jobs=len(jobs), objects=len(found.unneeded_objects()))


def unneeded(repository: Repository) -> Iterator[Garbage]:
    """What of each data table no state of the whole history needs. Nothing is written, and no lock is taken."""
    _require_files(repository)
    yield from _Cleanup(repository, Retention(None, LONGEST), dt.datetime.now(dt.UTC)).tables()


def cleanup(repository: Repository, policy: Retention) -> CleanupReport:
    """Remove what the policy gives up. One cleanup at a time; writers and readers go on meanwhile.

    Nothing is removed if a branch, a tag, a state or an interrupted write cannot be read. A cleanup that is
    interrupted leaves a graph that has everything it should keep, and the next one goes on.
    """
    _require_files(repository)
    repository.require_writable()
    with repository.locks.job(_LOCK):
        heal(repository)
        jobs = reclaim(repository)
        mark = _begin(repository)
        found = _looked_up(repository, policy, mark.modified)
        sweeper = Sweeper(repository, found.needed)
        sweeper.begin()
        # A crash between the versions of one request leaves a gap. Processes that have seen a version beyond it do
        # not look for the newest one there once they have been idle for longer than they trust what they saw.
        singly = repository.address.scheme is not Scheme.LOCAL and policy.grace.total_seconds() < TRUSTED
        tables = [found.counted(found.manifest, *sweeper.sweep(found.manifest, 1 if singly else BATCH))]
        hit("cleanup.after_manifest")
        rest = chain(found.logs, found.tables())
        tables += [found.counted(garbage, *sweeper.sweep(garbage)) for garbage in rest]
        objects = sweeper.sweep_objects(found.unneeded_objects)
        hit("cleanup.before_end")
        _end(repository, mark)
    return found.report(tables, confirmed=True, jobs=len(jobs), objects=objects)


@dataclass(slots=True)
class _Cleanup:
    """One cleanup: what the states need, and what may go of the manifest and the logs. Everything that stays has
    been read when this is made, so that whatever cannot be read is known before anything is removed."""

    repository: Repository
    policy: Retention
    now: dt.datetime
    needed: Needed = field(init=False)
    manifest: Garbage = field(init=False)
    logs: list[Garbage] = field(init=False)
    pinned: dict[str, Garbage] = field(init=False)

    def __post_init__(self) -> None:
        repository = self.repository
        natives = [branch.native for branch in repository.branches.all() if branch.native is not None]
        manifest = self._listed(layout.MANIFEST, natives)
        versions = {native: tree.versions for native, tree in manifest.trees.items()}
        self.needed = survey(repository, self.policy, self.now, versions)
        rules = self._rules()
        self.manifest = manifest_garbage(repository, manifest, rules)
        self.logs = [log_garbage(repository, self._listed(log, []), rules) for log in LOGS]
        self.pinned = {
            location: pinned_files(repository, self.needed, location) for location in sorted(self.needed.pins)
        }

    def _listed(self, location: str, natives: list[str]) -> TableFiles:
        return table_files(location, self.repository.objects.entries(location), natives)

    def _rules(self) -> Rules:
        """The rules as of now. Jobs are looked up after the files that they may have staged."""
        return Rules.of(self.needed, self.now - self.policy.grace, records(self.repository))

    def tables(self) -> Iterator[Garbage]:
        """What may go of each data table. Each is listed when its turn comes."""
        natives = [native for native in self.needed.states if native is not None]
        for folder in (layout.NODES, layout.EDGES):
            for table in tables_below(self.repository.objects, folder, natives):
                yield table_garbage(self.repository, table, self._rules(), self.pinned.pop(table.location, None))

    def unneeded_objects(self) -> list[str]:
        """Schemas of no state, hints of branches that are gone, kept states that nothing needs any more, and saved
        topologies and words of tables that no newest state has."""
        objects, young = self.repository.objects, self.now - self.policy.grace
        needed = {
            *(layout.schema_object(digest) for digest in self.needed.schemas),
            *(layout.head_hint(native) for native in self.needed.states),
            *(layout.kept_state(n, v) for n, states in self.needed.states.items() for v in states.older),
        }
        folders = (layout.SCHEMAS, layout.HEAD_HINTS, layout.KEPT_STATES)
        old = {entry.key for folder in folders for entry in objects.entries(folder) if entry.modified <= young}
        present = {key for folder in folders for key in objects.list(folder)}
        return sorted((old & present - needed) | self._unneeded_derived(young))

    def _unneeded_derived(self, young: dt.datetime) -> set[str]:
        current = [(place, native) for place, pins in self.needed.current.items() for native in pins]
        needed = {layout.topology_folder(*each) for each in current}
        needed |= {layout.postings_folder(*each) for each in current}
        objects = self.repository.objects
        entries = [entry for folder in (layout.TOPOLOGIES, layout.POSTINGS) for entry in objects.entries(folder)]
        return {e.key for e in entries if e.modified <= young and e.key.rpartition("/")[0] not in needed}

    def counted(self, garbage: Garbage, versions: int, files: int, size: int) -> CleanedTable:
        """What went of a table."""
        key = self.needed.table_keys.get(garbage.location, garbage.location)
        kept = sum(map(len, garbage.kept.values()))
        return CleanedTable(key, garbage.location, versions, kept, files, size)

    def report(self, tables: list[CleanedTable], *, confirmed: bool, jobs: int, objects: int) -> CleanupReport:
        """What goes of branches and tables."""
        removed = dict.fromkeys(self.needed.states, 0)
        for native, version, _ in self.manifest.versions:
            if native in removed and version not in self.needed.states[native].older:
                removed[native] += 1
        branches = tuple(
            CleanedBranch(
                states.branch.name,
                removed[native],
                states.oldest,
                states.oldest_commit,
                len(states.older),
            )
            for native, states in self.needed.states.items()
        )
        changed = tuple(table for table in tables if table.files_removed)
        return CleanupReport(self.policy, confirmed, branches, changed, jobs, objects)


def _looked_up(repository: Repository, policy: Retention, now: dt.datetime) -> _Cleanup:
    """Find out what may go; once more, a few times, if a branch is deleted while it is looked at."""
    for _ in range(_ATTEMPTS):
        before = _natives(repository)
        try:
            return _Cleanup(repository, policy, now)
        except (RequestError, StorageError):
            if before <= _natives(repository):
                raise
    if repository.read_only:
        return _Cleanup(repository, policy, now)
    with repository.locks.control():
        return _Cleanup(repository, policy, now)


def _natives(repository: Repository) -> set[str | None]:
    return {branch.native for branch in repository.branches.all()}


def _counted(found: _Cleanup, garbage: Garbage) -> CleanedTable:
    """What would go of a table."""
    return found.counted(garbage, len(garbage.versions), len(garbage), garbage.size)


def _require_files(repository: Repository) -> None:
    """Raise RequestError for a graph in memory, whose tables have no files that could be listed."""
    if repository.address.scheme is Scheme.MEMORY:
        raise RequestError(f"{repository.address} lives in the memory of one process, which has no files to clean")


def _begin(repository: Repository) -> Entry:
    """Leave the mark by which writers learn that files are removed; its time is the store's own now."""
    objects = repository.objects
    before = objects.list(layout.SIDECARS)
    number = newest_mark(before) // 2 * 2 + 1
    if layout.cleanup_mark(number) in before:
        number += 2
    key = layout.cleanup_mark(number)
    objects.put(key, seal({"cleaning": True}))
    hit("cleanup.after_mark")
    for old in before:
        if old.endswith(".cleanup"):
            objects.delete(old)
    return next(entry for entry in objects.entries(layout.SIDECARS) if entry.key == key)


def _end(repository: Repository, mark: Entry) -> None:
    """Replace the mark by one which says that no more files are removed."""
    number = newest_mark([mark.key]) + 1
    repository.objects.put(layout.cleanup_mark(number), seal({"cleaning": False}))
    hit("cleanup.after_end")
    repository.objects.delete(mark.key)
