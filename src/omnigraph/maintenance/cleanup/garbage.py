"""What may go: the versions that no state needs, and the files that no version needs that stays."""

from __future__ import annotations

import datetime as dt
import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from omnigraph.errors import ObjectDamaged
from omnigraph.maintenance.cleanup.files import TableFiles, TreeFiles
from omnigraph.maintenance.cleanup.states import Needed, Pins
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.jobs import JobRecord
from omnigraph.storage import layout
from omnigraph.storage.control.contents import Entry
from omnigraph.storage.files.versionfiles import VersionReader

_WHOLE: Final = b"LANC"
_CLOCKS: Final = dt.timedelta(days=1)
"""How far the clock of a job's machine may be from the store's."""


@dataclass(slots=True)
class Garbage:
    """What of one table may go, in the order in which it has to: versions, then files. ``referenced`` is what the
    versions that stay refer to, and ``kept`` those versions by native branch."""

    location: str
    versions: list[tuple[str | None, int, Entry]] = field(default_factory=list)
    files: list[tuple[str, Entry]] = field(default_factory=list)
    """Each with the key by which a version would refer to it."""
    kept: Pins = field(default_factory=dict)
    referenced: set[str] = field(default_factory=set)
    folders: list[str] = field(default_factory=list)
    """Folders that are empty when everything in them is gone."""
    _readers: dict[str | None, VersionReader] = field(default_factory=dict)

    def keep(
        self, repository: Repository, native: str | None, versions: Iterable[int], *, is_needed: bool
    ) -> None:
        """Keep versions with all that they refer to. A torn one, or one that is gone, refers to nothing, unless it
        is needed: then it is ObjectDamaged."""
        kept = self.kept.setdefault(native, set())
        for version in versions:
            if version in kept:
                continue
            kept.add(version)
            key = layout.version_file(self.location, native, version)
            found = repository.objects.get(key)
            if found is not None and found.content.endswith(_WHOLE):
                self._refer(native, key, found.content)
            elif is_needed:
                raise ObjectDamaged(key, "it is missing" if found is None else "its end is missing")

    def _refer(self, native: str | None, key: str, content: bytes) -> None:
        """Note what a version refers to; ObjectDamaged if that cannot be read."""
        tree = layout.native_prefix(self.location, native)
        reader = self._readers.setdefault(native, VersionReader(self.location, tree))
        try:
            self.referenced.update(reference.key.rstrip("/") for reference in reader.references(content))
        except (ValueError, KeyError, struct.error) as error:
            remedy = "nothing was removed; a newer release may understand it"
            raise ObjectDamaged(key, f"what it refers to cannot be read ({error})", remedy) from error

    @property
    def size(self) -> int:
        """How many bytes that is."""
        versions = sum(entry.size for _, _, entry in self.versions)
        return versions + sum(entry.size for _, entry in self.files)

    def __len__(self) -> int:
        return len(self.versions) + len(self.files)


@dataclass(frozen=True, slots=True)
class Rules:
    """What is known when garbage is looked for: what states need, which files are too young to be garbage, and
    the jobs that may be running."""

    needed: Needed
    young: dt.datetime
    """Files that were written after that stay, whether a version refers to them or not."""
    jobs: Collection[JobRecord]
    natives: frozenset[str]
    """The native branches of live branches, and those that running jobs write to."""

    @classmethod
    def of(cls, needed: Needed, young: dt.datetime, jobs: Collection[JobRecord]) -> Rules:
        """The rules that follow from the states and the jobs there are."""
        natives = {*needed.states, *(job.native for job in jobs)}
        return cls(needed, young, jobs, frozenset(native for native in natives if native is not None))

    def is_staged(self, location: str, native: str | None, entry: Entry) -> bool:
        """May a file be one that a running job has staged?"""
        return any(
            job.native == native and location in job.locations and entry.modified >= job.started_at - _CLOCKS
            for job in self.jobs
        )


def manifest_garbage(repository: Repository, table: TableFiles, rules: Rules) -> Garbage:
    """What of the manifest may go. Of each branch the newest versions stay without a gap, so the versions that
    branches were forked at do not; where states need them, they are kept as objects."""
    found = Garbage(table.location)
    for native, states in rules.needed.states.items():
        found.keep(repository, native, range(states.oldest, states.newest + 1), is_needed=True)
    _add_garbage(table, rules, found)
    return found


def log_garbage(repository: Repository, table: TableFiles, rules: Rules) -> Garbage:
    """What of a log may go: all but its newest version, and those that were the newest not long ago."""
    found = Garbage(table.location)
    for native, tree in table.trees.items():
        ordered = sorted(tree.versions)
        recent = [v for v, following in pairwise(ordered) if tree.versions[following].modified > rules.young]
        found.keep(repository, native, recent, is_needed=False)
        found.keep(repository, native, ordered[-1:], is_needed=True)
    _add_garbage(table, rules, found)
    return found


def pinned_files(repository: Repository, needed: Needed, location: str) -> Garbage:
    """What the versions of a data table refer to that states need; nothing may go yet.

    ObjectDamaged if a version of a newest state cannot be read. One of an older state may be gone already.
    """
    found = Garbage(location)
    for native, versions in needed.pins[location].items():
        current = needed.current.get(location, {}).get(native, set())
        found.keep(repository, native, sorted(versions - current), is_needed=False)
        found.keep(repository, native, sorted(current), is_needed=True)
    return found


def table_garbage(repository: Repository, table: TableFiles, rules: Rules, found: Garbage | None) -> Garbage:
    """What of a data table may go, given what the states need of it; all of it, if that is nothing."""
    if found is None:
        return _abandoned(table, rules)
    for native, tree in table.trees.items():
        found.keep(repository, native, _unpublished(native, tree, rules, found.kept.get(native)), is_needed=False)
    for native, point in repository.tables.fork_points(table.location).items():
        if found.kept.get(native):
            found.keep(repository, point.branch, [point.version], is_needed=False)
            found.keep(repository, native, [point.version], is_needed=False)
    _add_garbage(table, rules, found)
    return found


def _abandoned(table: TableFiles, rules: Rules) -> Garbage:
    """A table of no state at all. One that was just made may be part of a state soon, and stays."""
    found = Garbage(table.location)
    if table.last_written > rules.young or any(table.location in job.locations for job in rules.jobs):
        return found
    for native, tree in table.trees.items():
        found.versions += [(native, version, entry) for version, entry in sorted(tree.versions.items())]
        found.files += tree.owned()
        found.files += [] if tree.hint is None else [(tree.hint.key, tree.hint)]
    found.files += [(entry.key, entry) for entry in (*table.listed.values(), *table.others)]
    found.folders = [table.location]
    return found


def _unpublished(native: str | None, tree: TreeFiles, rules: Rules, pinned: Collection[int] | None) -> list[int]:
    """Versions of a tree that no state needs and that stay: what lies above the published ones may be a write in
    flight, and a tree without a published version was forked for one. A trunk keeps its newest version."""
    if pinned:
        return sorted(version for version in tree.versions if version > max(pinned))
    if native is None:
        return sorted(tree.versions)[-1:]
    return sorted(tree.versions) if native in rules.natives else []


def _add_garbage(table: TableFiles, rules: Rules, found: Garbage) -> None:
    """Note the versions and files that may go."""
    for native, tree in table.trees.items():
        kept = found.kept.get(native, set())
        is_gone = native is not None and native not in rules.natives and not kept
        if is_gone and tree.last_written > rules.young:
            continue
        found.versions += [(native, v, entry) for v, entry in sorted(tree.versions.items()) if v not in kept]
        for owner, entry in tree.owned():
            is_young = entry.modified > rules.young or rules.is_staged(table.location, native, entry)
            if owner not in found.referenced and (is_gone or not is_young):
                found.files.append((owner, entry))
                if owner != entry.key:
                    found.folders.append(entry.key.rpartition("/")[0])
        if is_gone:
            found.files += [] if tree.hint is None else [(tree.hint.key, tree.hint)]
            found.folders.append(layout.native_prefix(table.location, native))
    for native, entry in table.listed.items():
        if native not in rules.natives and not found.kept.get(native) and entry.modified <= rules.young:
            found.files.append((entry.key, entry))
