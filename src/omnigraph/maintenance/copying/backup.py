"""`backup` and `restore`: one place with the files of all backups, and a small object for each of them.

Files are only added, and those that are there are not copied again. A backup exists when its object does, which is
written last and says which versions belong to it; so one that is interrupted changes nothing of the others. Files
that no backup needs any more are removed together with old backups.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ulid import ULID

from omnigraph.errors import BackupNotFound, CopyRefused, GraphExists, ObjectDamaged
from omnigraph.failpoints import hit
from omnigraph.maintenance.copying.clone import (
    CopyReport,
    copy_files,
    copy_to_graph,
    is_taken,
    require_ancestor,
    require_apart,
    with_retries,
)
from omnigraph.maintenance.copying.extent import Extent, Wanted
from omnigraph.maintenance.copying.plan import make_plan
from omnigraph.maintenance.copying.transfer import Listener
from omnigraph.manifest.repository import Repository
from omnigraph.storage import layout
from omnigraph.storage.address import Address
from omnigraph.storage.control.place import Place, PlaceState, read_place, root_of, write_place
from omnigraph.storage.control.sealed import damaged, seal, text, unseal
from omnigraph.storage.files.transfers import FileStore, open_files
from omnigraph.storage.locks import CommitLock, Locks
from omnigraph.storage.objects import ObjectStore, open_objects


@dataclass(frozen=True, slots=True)
class Backup:
    """One backup: when it was made, of which graph, and the head commit of each branch."""

    id: str
    created_at: dt.datetime
    source: str
    branches: Mapping[str, str | None]
    tags: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "created_at": self.created_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "source": self.source,
            "branches": dict(self.branches),
            "tags": list(self.tags),
        }


@dataclass(frozen=True, slots=True)
class BackupReport:
    """A backup that was made: what was copied for it, and which older ones were removed."""

    backup: Backup
    files: int
    bytes: int
    files_kept: int
    removed: tuple[str, ...] = ()
    files_removed: int = 0

    def as_json(self) -> dict[str, Any]:
        return {
            **self.backup.as_json(),
            "files": self.files,
            "bytes": self.bytes,
            "files_kept": self.files_kept,
            "removed": list(self.removed),
            "files_removed": self.files_removed,
        }


@dataclass(frozen=True, slots=True)
class _Entry:
    """The object that makes a backup."""

    id: str
    created_at: dt.datetime
    extent: Extent

    @property
    def backup(self) -> Backup:
        extent = self.extent
        return Backup(
            self.id, self.created_at, extent.source, extent.commits, tuple(tag.name for tag in extent.tags)
        )

    def encode(self) -> bytes:
        return seal({"created_at": self.created_at.isoformat(), "extent": self.extent.as_json()})

    @classmethod
    def decode(cls, backup: str, content: bytes) -> _Entry:
        key = layout.backup_entry(backup)
        stored = unseal(key, content)
        try:
            created_at = dt.datetime.fromisoformat(text(stored["created_at"]))
            return cls(backup, created_at, Extent.from_json(stored["extent"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(key, error) from error


def back_up(
    repository: Repository, target: Address, keep: int | None = None, listener: Listener | None = None
) -> BackupReport:
    """Add a backup of a graph, with all its branches and history, to those at a target. With ``keep`` only so many
    are left there, the newest ones."""
    require_apart(repository.address, target)
    source, files, objects = open_files(repository.address), open_files(target), open_objects(target)
    made: list[_Entry] = []
    with Locks(target, objects).control() as lock:

        def attempt(extent: Extent, sizes: Mapping[str, int]) -> CopyReport:
            _require_backups(repository, objects, target, extent)
            write_place(objects, Place(extent.graph_id, root_of(target), PlaceState.BACKUP))
            hit("copy.after_claim")
            report = copy_files(extent, source, sizes, files, str(target), None, lock, listener)
            entry = _Entry(str(ULID()), dt.datetime.now(dt.UTC), extent)
            lock.verify()
            hit("copy.before_end")
            objects.put(layout.backup_entry(entry.id), entry.encode())
            made.append(entry)
            return report

        report = with_retries(repository, Wanted(), source, attempt)
        removed, count = ((), 0) if keep is None else _remove_old(objects, files, keep, lock)
    return BackupReport(made[-1].backup, report.files, report.bytes, report.files_kept, removed, count)


def backups(address: Address) -> list[Backup]:
    """The backups at an address, oldest first; BackupNotFound if there is none."""
    objects = open_objects(address)
    found = _entries(objects)
    if not found:
        raise BackupNotFound(str(address), None)
    return [_read(objects, backup).backup for backup in found]


def restore(
    address: Address, target: Address, backup: str | None = None, listener: Listener | None = None
) -> CopyReport:
    """Make a graph from a backup, the newest one unless another is named, at a place where nothing is."""
    require_apart(address, target)
    objects = open_objects(address)
    found = _entries(objects)
    if not found:
        raise BackupNotFound(str(address), None)
    chosen = found[-1] if backup is None else backup.strip()
    if chosen not in found:
        raise BackupNotFound(str(address), chosen)
    extent = replace(_read(objects, chosen).extent, source=str(address))
    source = open_files(address)

    def check(place: Place) -> None:
        if place.state is not PlaceState.COPYING:
            raise GraphExists(str(target))
        if place.copied.get("heads") != extent.ends:
            raise CopyRefused(str(target), "there is a part of another copy", "remove it, or choose another place")

    return copy_to_graph(extent, source, source.sizes(), target, check, listener)


def _entries(objects: ObjectStore) -> list[str]:
    """The ids of all backups, oldest first."""
    keys = (key for key in objects.list(layout.BACKUPS) if key.endswith(".json"))
    return sorted(key.removeprefix(f"{layout.BACKUPS}/").removesuffix(".json") for key in keys)


def _read(objects: ObjectStore, backup: str) -> _Entry:
    key = layout.backup_entry(backup)
    found = objects.get(key)
    if found is None:
        raise ObjectDamaged(key, "it is missing")
    return _Entry.decode(backup, found.content)


def _require_backups(repository: Repository, objects: ObjectStore, target: Address, extent: Extent) -> None:
    """Raise CopyRefused unless there is nothing, or backups of the same graph that its history goes on from."""
    place = read_place(objects)
    if place is None:
        if is_taken(target, objects):
            raise CopyRefused(str(target), "it has files that are no backups", "choose another place")
        return
    if place.state is not PlaceState.BACKUP or place.graph_id != extent.graph_id:
        raise CopyRefused(str(target), "it holds no backups of this graph", "choose another place")
    found = _entries(objects)
    if found:
        require_ancestor(repository, extent, _read(objects, found[-1]).extent.ends, str(target))


def _remove_old(
    objects: ObjectStore, files: FileStore, keep: int, lock: CommitLock
) -> tuple[tuple[str, ...], int]:
    """Remove all backups but the newest ones, and then the files that the others do not need."""
    found = _entries(objects)
    old, kept = found[:-keep], [_read(objects, backup).extent for backup in found[-keep:]]
    gone = [_read(objects, backup).extent for backup in old]
    for backup in old:
        lock.verify()
        objects.delete(layout.backup_entry(backup))
    hit("backup.before_removal")
    if not _shrinks(gone, kept):
        return tuple(old), 0
    sizes = files.sizes()
    needed: set[str] = {layout.PLACE}
    for extent in kept:
        needed |= make_plan(extent, files, sizes, {}, None).keys
    own = (f"{layout.BACKUPS}/", f"{layout.LOCKS}/")
    unneeded = [key for key in sizes if key not in needed and not key.startswith(own)]
    lock.verify()
    for key in sorted(unneeded, key=lambda key: layout.version_place(key) is None):
        files.delete(key)
    return tuple(old), len(unneeded)


def _shrinks(gone: Sequence[Extent], kept: Sequence[Extent]) -> bool:
    """Had removed backups versions that no kept one has?"""
    left = {(*place, version) for extent in kept for place, found in extent.versions.items() for version in found}
    return any(
        (*place, version) not in left
        for extent in gone
        for place, found in extent.versions.items()
        for version in found
    )
