"""Bulk jobs, which stage files for longer than a moment: their records, and the files that dead jobs left.

A job writes its record before its first file and removes it after its last. Its files carry the job's id, and the
job holds a lock of its own while it runs; so a file that no table refers to is garbage once the lock of its job is
free. The files are removed only under that lock and the branch's, and a job commits only while it holds its lock,
so that one which was taken for dead fails before its tables refer to files that are gone.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omnigraph.errors import LockTimeout, ObjectDamaged, OmniError
from omnigraph.failpoints import hit
from omnigraph.manifest.repository import Repository
from omnigraph.recovery.forks import discard_branch
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, optional_text, seal, text, texts, unseal
from omnigraph.storage.files.datafiles import remove_file
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.objects import ObjectStore

_SLACK: Final = dt.timedelta(days=1)
"""How far the clocks of two machines may differ: versions so much older than a job may be its own."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """The record of a job: what it does, to which branch, and the tables for which it stages files.

    ``versions`` are those that the tables of the branch had when it began, by location; they refer to none of its
    files. The branch of a job that ``forks`` is its own: it is made by the job, if at all.
    """

    job: str
    kind: str
    branch: str
    native: str | None
    locations: tuple[str, ...]
    actor: str | None
    started_at: dt.datetime
    versions: Mapping[str, int] | None = None
    forks: bool = False

    @property
    def key(self) -> str:
        return layout.job_record(self.job)

    @property
    def trees(self) -> list[str]:
        """The folders in which the job stages data files."""
        return [f"{layout.native_prefix(location, self.native)}/data" for location in self.locations]

    def as_json(self) -> dict[str, Any]:
        return {
            "job": self.job,
            "kind": self.kind,
            "branch": self.branch,
            "native": self.native,
            "locations": list(self.locations),
            "actor": self.actor,
            "started_at": self.started_at.isoformat(timespec="microseconds").replace("+00:00", "Z"),
            "versions": None if self.versions is None else dict(self.versions),
            "forks": self.forks,
        }


@dataclass(frozen=True, slots=True)
class LeftJob:
    """A job that has a record, the files it staged that no table refers to, and whether it still runs."""

    record: JobRecord
    files: tuple[str, ...]
    is_running: bool

    def as_json(self) -> dict[str, Any]:
        return {**self.record.as_json(), "files": list(self.files), "is_running": self.is_running}


class RunningJob:
    """A job that runs, and its lock. ``committed`` names the files that its commit refers to, if it has one."""

    def __init__(self, repository: Repository, record: JobRecord, lock: CommitLock) -> None:
        self.repository = repository
        self.record = record
        self.lock = lock
        self.committed: Set[str] | None = None
        self.removed: tuple[str, ...] = ()

    def forget(self) -> None:
        """Remove the files that no table refers to, and then the job's record."""
        self.removed = _remove(self.repository, self.record, self._unused)

    def _unused(self) -> list[str]:
        if self.committed is None:
            return unreferenced(self.repository, self.record)
        return [key for key in staged_by(self.repository, self.record) if _name(key) not in self.committed]


def announce(objects: ObjectStore, record: JobRecord) -> None:
    """Write a job's record, by which its files can be found if it dies."""
    objects.put(record.key, seal(record.as_json()))


@contextmanager
def running(repository: Repository, record: JobRecord) -> Iterator[RunningJob]:
    """Run the block as a job, with its record and its lock.

    Files that it staged and no table refers to are removed at the end, however it ends; if that fails, the record
    stays for `reclaim`.
    """
    with repository.locks.job(record.job) as lock:
        job = RunningJob(repository, record, lock)
        announce(repository.objects, record)
        hit("job.after_record")
        try:
            yield job
        finally:
            try:
                job.forget()
            except OmniError as error:
                warnings.warn(
                    f"what job {record.job} staged could not be removed ({error}); `omnigraph jobs --clean` will",
                    RuntimeWarning,
                    stacklevel=3,
                )


def _remove(repository: Repository, record: JobRecord, unused: Callable[[], list[str]]) -> tuple[str, ...]:
    """Remove a job's unused files, then its record, then files that were staged meanwhile; the files removed.

    A task that writes a file even later finds that the record is gone, and removes the file itself.
    """
    removed = _remove_files(repository, record, unused())
    repository.objects.delete(record.key)
    return (*removed, *_remove_files(repository, record, unused()))


def _remove_files(repository: Repository, record: JobRecord, files: list[str]) -> list[str]:
    for key in files:
        remove_file(repository.objects, key, has_blobs=not _is_named(key, record))
    repository.objects.delete_prefix(layout.job_folder(record.job))
    return files


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _is_named(key: str, record: JobRecord) -> bool:
    """Does a data file carry the job's id in its name? Lance chooses the names of files with blobs."""
    return _name(key).startswith(f"{record.job}-")


def staged_by(repository: Repository, record: JobRecord) -> list[str]:
    """All data files that carry the job's id or are noted under it, whether a table refers to them or not."""
    note = layout.job_note(record.job, "")
    noted = {key.removeprefix(note) for key in repository.objects.list(note.rstrip("/"))}
    keys = (key for tree in record.trees for key in repository.objects.list(tree))
    return [key for key in keys if key in noted or _is_named(key, record)]


def unreferenced(repository: Repository, record: JobRecord) -> list[str]:
    """The job's data files that no version of a table refers to."""
    staged = staged_by(repository, record)
    if not staged:
        return []
    used: set[str] = set()
    for location in record.locations:
        folder = f"{layout.native_prefix(location, record.native)}/data"
        names = {_name(key) for key in staged if key.startswith(f"{folder}/")}
        if names:
            found = _used_since(repository, record, location)
            used |= {f"{folder}/{name}" for name in names & found}
    return [key for key in staged if key not in used]


def _used_since(repository: Repository, record: JobRecord, location: str) -> set[str]:
    """The names of the data files in all versions of a table that may refer to those of a job."""
    if record.versions is not None:
        after = record.versions.get(location, 0)
        return repository.tables.data_files_after(location, record.native, after)
    return repository.tables.data_files(location, record.native, record.started_at - _SLACK)


def left_jobs(repository: Repository) -> list[LeftJob]:
    """Every job that has a record, running or not, with its files that no table refers to."""
    return [
        LeftJob(record, tuple(unreferenced(repository, record)), repository.locks.is_alive(record.job))
        for record in records(repository)
    ]


def reclaim(repository: Repository) -> list[LeftJob]:
    """Remove the files and records of dead jobs; returns those jobs. A job that holds its lock is left alone."""
    repository.require_writable()
    gone: list[LeftJob] = []
    for record in records(repository):
        with ExitStack() as stack:
            try:
                stack.enter_context(repository.locks.abandoned(record.job))
            except LockTimeout:
                continue
            _discard_fork(repository, record)
            stack.enter_context(repository.locks.commit(record.branch))
            files = _remove(repository, record, partial(unreferenced, repository, record))
            gone.append(LeftJob(record, files, False))
    _remove_leftovers(repository)
    return gone


def _discard_fork(repository: Repository, record: JobRecord) -> None:
    """Delete the branch that a dead job has made for itself and not committed to."""
    if record.forks and record.branch in repository.branches.names():
        branch = repository.branches.find(record.branch)
        if branch.native == record.native:
            discard_branch(repository, branch)


def _remove_leftovers(repository: Repository) -> None:
    """Remove the notes that late tasks wrote after the record of their job was gone."""
    kept = [key.removeprefix(f"{layout.JOBS}/").split("/") for key in repository.objects.list(layout.JOBS)]
    known = {record.job for record in records(repository)}
    for job in {parts[0] for parts in kept if len(parts) > 1} - known:
        repository.objects.delete_prefix(layout.job_folder(job))


def records(repository: Repository) -> list[JobRecord]:
    """The records of all jobs, running or not; ObjectDamaged if one cannot be read."""
    found, unreadable = listed_records(repository)
    if unreadable:
        raise unreadable[0]
    return found


def listed_records(repository: Repository) -> tuple[list[JobRecord], list[ObjectDamaged]]:
    """The records that can be read, and an error for each that cannot."""
    found, unreadable = list[JobRecord](), list[ObjectDamaged]()
    for key in repository.objects.list(layout.JOBS):
        if key.count("/") != 1 or not key.endswith(".json"):
            continue
        stored = repository.objects.get(key)
        try:
            found += [] if stored is None else [_decoded(key, stored.content)]
        except ObjectDamaged as error:
            unreadable.append(error)
    return found, unreadable


def _decoded(key: str, content: bytes) -> JobRecord:
    try:
        stored = unseal(key, content)
        return JobRecord(
            text(stored["job"]),
            text(stored["kind"]),
            text(stored["branch"]),
            optional_text(stored["native"]),
            texts(stored["locations"]),
            optional_text(stored["actor"]),
            dt.datetime.fromisoformat(text(stored["started_at"])),
            _versions(stored.get("versions")),
            stored.get("forks") is True,
        )
    except (ObjectDamaged, ValueError, KeyError) as error:
        found = error if isinstance(error, ObjectDamaged) else damaged(key, error)
        reason = f"the record of a job cannot be read: {found.reason}"
        raise ObjectDamaged(
            key, reason, "remove it; what the job staged stays, and nothing refers to it"
        ) from error


def _versions(stored: object) -> dict[str, int] | None:
    """The versions in a record; those of earlier releases have none."""
    if not isinstance(stored, dict):
        return None
    return {text(location): int(version) for location, version in stored.items()}
