"""Jobs that stage files for longer than a moment: who they are, whether they live, and what dead ones left.

A job writes down its name before its first file and removes it after its last. Its files carry that name, and
it holds a lock of its own while it runs; so a file whose job's lock is free, and which nothing refers
to, is garbage. It commits only while it holds the lock, and its files are removed only under that lock and the
branch's: a job that was taken for dead finds out before its tables refer to files that are gone.
"""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from omnigraph.errors import LockTimeout, ObjectDamaged, OmniError
from omnigraph.failpoints import hit
from omnigraph.manifest.repository import Repository
from omnigraph.storage import layout
from omnigraph.storage.control.sealed import damaged, optional_text, seal, text, texts, unseal
from omnigraph.storage.files.datafiles import remove_file
from omnigraph.storage.locks import CommitLock
from omnigraph.storage.objects import ObjectStore

_SLACK: Final = dt.timedelta(days=1)
"""How far the clocks of two machines may be apart before a job's own commit would be taken for an older one."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """A job as it is written down: what it does, to which branch, in which trees of tables it stages."""

    job: str
    kind: str
    branch: str
    native: str | None
    locations: tuple[str, ...]
    actor: str | None
    started_at: dt.datetime

    @property
    def key(self) -> str:
        return layout.job_record(self.job)

    @property
    def trees(self) -> list[str]:
        """The folders whose data files may be the job's."""
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
        }


@dataclass(frozen=True, slots=True)
class LeftJob:
    """A job that was perhaps left behind, the files it staged, and whether it still runs."""

    record: JobRecord
    files: tuple[str, ...]
    is_running: bool

    def as_json(self) -> dict[str, Any]:
        return {**self.record.as_json(), "files": list(self.files), "is_running": self.is_running}


class RunningJob:
    """A job at work, and the lock that says so. ``committed`` names the files that its commit refers to, once
    there is one."""

    def __init__(self, repository: Repository, record: JobRecord, lock: CommitLock) -> None:
        self.repository = repository
        self.record = record
        self.lock = lock
        self.committed: Set[str] | None = None
        self.removed: tuple[str, ...] = ()

    def forget(self) -> None:
        """Remove the files that nothing refers to, and the job's name with them."""
        self.removed = _remove(self.repository, self.record, self._unused)

    def _unused(self) -> list[str]:
        if self.committed is None:
            return unreferenced(self.repository, self.record)
        return [key for key in staged_by(self.repository, self.record) if _name(key) not in self.committed]


def announce(objects: ObjectStore, record: JobRecord) -> None:
    """Write a job down, so that what it stages can be told from the work of others."""
    objects.put(record.key, seal(record.as_json()))


@contextmanager
def running(repository: Repository, record: JobRecord) -> Iterator[RunningJob]:
    """Be a job: known by its record, alive by its lock.

    What it staged and nothing refers to is removed at the end, however it ends; if that cannot be done now, the
    record stays for `reclaim`.
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
    """Remove what a job staged in vain, then its name, then what was staged meanwhile; all those files.

    A task that comes even later finds the name gone when it has written a file, and removes the file itself.
    """
    removed = _remove_files(repository, record, unused())
    repository.objects.delete(record.key)
    return (*removed, *_remove_files(repository, record, unused()))


def _remove_files(repository: Repository, record: JobRecord, files: list[str]) -> list[str]:
    for key in files:
        remove_file(repository.objects, key, has_blobs=not _is_named(key, record))
    repository.objects.delete_prefix(f"{layout.JOBS}/{record.job}")
    return files


def _name(key: str) -> str:
    return key.rpartition("/")[2]


def _is_named(key: str, record: JobRecord) -> bool:
    """Does a data file carry the job's name? One with blobs has a name that Lance chose."""
    return _name(key).startswith(f"{record.job}-")


def staged_by(repository: Repository, record: JobRecord) -> list[str]:
    """All data files that carry the job's name or are noted under it, used or not."""
    note = layout.job_note(record.job, "")
    noted = {key.removeprefix(note) for key in repository.objects.list(note.rstrip("/"))}
    keys = (key for tree in record.trees for key in repository.objects.list(tree))
    return [key for key in keys if key in noted or _is_named(key, record)]


def unreferenced(repository: Repository, record: JobRecord) -> list[str]:
    """The job's files that no version of a table refers to."""
    staged = staged_by(repository, record)
    if not staged:
        return []
    used: set[str] = set()
    for location in record.locations:
        folder = f"{layout.native_prefix(location, record.native)}/data"
        names = {_name(key) for key in staged if key.startswith(f"{folder}/")}
        if names:
            since = record.started_at - _SLACK
            found = repository.tables.data_files(location, record.native, since)
            used |= {f"{folder}/{name}" for name in names & found}
    return [key for key in staged if key not in used]


def left_jobs(repository: Repository) -> list[LeftJob]:
    """Every job that is written down, running or not, with the files it staged that nothing refers to."""
    return [
        LeftJob(record, tuple(unreferenced(repository, record)), repository.locks.is_alive(record.job))
        for record in _records(repository)
    ]


def reclaim(repository: Repository) -> list[LeftJob]:
    """Remove what dead jobs left; the jobs that were dead. One that runs keeps its lock, and is let alone."""
    repository.require_writable()
    gone: list[LeftJob] = []
    for record in _records(repository):
        with ExitStack() as stack:
            try:
                stack.enter_context(repository.locks.abandoned(record.job))
            except LockTimeout:
                continue
            stack.enter_context(repository.locks.commit(record.branch))
            files = _remove(repository, record, partial(unreferenced, repository, record))
            gone.append(LeftJob(record, files, False))
    _remove_leftovers(repository)
    return gone


def _remove_leftovers(repository: Repository) -> None:
    """Remove what last tasks of jobs that are over have kept beside records that are gone."""
    kept = [key.removeprefix(f"{layout.JOBS}/").split("/") for key in repository.objects.list(layout.JOBS)]
    known = {record.job for record in _records(repository)}
    for job in {parts[0] for parts in kept if len(parts) > 1} - known:
        repository.objects.delete_prefix(f"{layout.JOBS}/{job}")


def _records(repository: Repository) -> list[JobRecord]:
    records: list[JobRecord] = []
    for key in repository.objects.list(layout.JOBS):
        if key.count("/") != 1 or not key.endswith(".json"):
            continue
        found = repository.objects.get(key)
        if found is not None:
            records.append(_decoded(key, found.content))
    return records


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
        )
    except (ObjectDamaged, ValueError, KeyError) as error:
        found = error if isinstance(error, ObjectDamaged) else damaged(key, error)
        reason = f"the record of a job cannot be read: {found.reason}"
        raise ObjectDamaged(
            key, reason, "remove it; what the job staged stays, and nothing refers to it"
        ) from error
