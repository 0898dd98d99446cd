"""The files of every version that the newest states and the tags name: there, of the right size, and unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from omnigraph.errors import ObjectDamaged
from omnigraph.maintenance.doctor.examination import RESTORE, Examination, ExaminedTable
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.checksums import verify_data, verify_deletion, verify_index
from omnigraph.storage.files.versionfiles import Reference, VersionReader

_LISTED: Final = 20
"""So many files of a table are named; the others are counted."""

_TRANSACTIONS: Final = "/_transactions/"
"""Versions hold their transactions themselves, and cleanups remove these files."""

_INDICES: Final = "/_indices/"


def check_files(exam: Examination) -> Iterator[Finding]:
    """Look at each file once, however many versions refer to it. A quick examination looks at sizes only."""
    if exam.repository.address.scheme is Scheme.MEMORY:
        return
    store = _Store(exam)
    for table in exam.pinned("files"):
        yield from _of_table(exam, store, table)


def _of_table(exam: Examination, store: _Store, table: ExaminedTable) -> Iterator[Finding]:
    listed, more = 0, 0
    try:
        files = store.files(table)
    except ObjectDamaged as error:
        exam.unreadable.add(table.pin.ref)
        yield Finding(
            "version_damaged", Severity.ERROR, str(error), RESTORE, table.shown, table.table_key, error.key
        )
        return
    for file in files:
        problem = store.problem(table.pin.location, file)
        if problem is None:
            continue
        if _INDICES not in file.key:
            exam.unreadable.add(table.pin.ref)
        if listed < _LISTED:
            listed += 1
            yield _finding(table, file, problem)
        else:
            more += 1
    if more:
        yield Finding(
            "file_damaged",
            Severity.ERROR,
            f"{more} more files of {table.table_key} are damaged or missing",
            RESTORE,
            table.shown,
            table.table_key,
            count=more,
        )


def _finding(table: ExaminedTable, file: Reference, problem: _Problem) -> Finding:
    is_index = _INDICES in file.key
    remedy = f"remove it and run `omnigraph index --branch {table.shown}`" if is_index else RESTORE
    code = "index_damaged" if is_index and problem.code == "file_damaged" else problem.code
    message = f"{file.key} of {table.table_key}: {problem.reason}"
    return Finding(code, Severity.ERROR, message, remedy, table.shown, table.table_key, file.key)


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is wrong with a file."""

    code: str
    reason: str


class _Store:
    """The files that were looked at, and what is wrong with them."""

    def __init__(self, exam: Examination) -> None:
        self._exam = exam
        self._objects = exam.repository.objects
        self._address = exam.repository.address
        self._known: dict[str, _Problem | None] = {}
        self._listing: tuple[str, dict[str, int]] = ("", {})

    def files(self, table: ExaminedTable) -> list[Reference]:
        """The files that a version refers to, sorted; none if the version is gone, which other checks find."""
        pin = table.pin
        key = layout.version_file(pin.location, pin.table_branch, pin.table_version)
        version = self._objects.get(key)
        if version is None:
            return []
        reader = VersionReader(pin.location, layout.native_prefix(pin.location, pin.table_branch))
        try:
            found = [file for file in reader.references(version.content) if _TRANSACTIONS not in file.key]
        except (ValueError, KeyError) as error:
            raise ObjectDamaged(key, str(error)) from error
        return sorted(found, key=lambda file: file.key)

    def problem(self, location: str, file: Reference) -> _Problem | None:
        """What is wrong with a file; None if nothing is."""
        if file.key not in self._known:
            local = self._address.scheme is Scheme.LOCAL
            self._known[file.key] = self._on_disk(file) if local else self._in_bucket(location, file)
        return self._known[file.key]

    def _on_disk(self, file: Reference) -> _Problem | None:
        path = Path(self._address.root, file.key)
        if not path.exists():
            return _Problem("file_missing", "it is missing")
        wrong = None if file.is_folder else _wrong_size(file, path.stat().st_size)
        if wrong is not None or self._exam.quick:
            return wrong
        try:
            _verify(file, path)
        except ObjectDamaged as error:
            return _Problem("file_damaged", error.reason)
        return None

    def _in_bucket(self, location: str, file: Reference) -> _Problem | None:
        """Object stores check contents by themselves; what can happen is that an object is gone or replaced."""
        sizes = self._sizes(location)
        if file.is_folder:
            is_there = any(name.startswith(file.key) for name in sizes)
            return None if is_there else _Problem("file_missing", "it is missing")
        if file.key not in sizes:
            return _Problem("file_missing", "it is missing")
        return _wrong_size(file, sizes[file.key])

    def _sizes(self, location: str) -> dict[str, int]:
        """The sizes of a table's objects, by one listing."""
        if self._listing[0] != location:
            self._listing = location, {entry.key: entry.size for entry in self._objects.entries(location)}
        return self._listing[1]


def _verify(file: Reference, path: Path) -> None:
    """Compare a file with its checksum; the files of an index are compared with its folder."""
    if file.is_folder:
        verify_index(path)
    elif "/data/" in file.key:
        verify_data(path)
    elif "/_deletions/" in file.key:
        verify_deletion(path)


def _wrong_size(file: Reference, found: int) -> _Problem | None:
    if file.size is None or file.size == found:
        return None
    return _Problem("file_size", f"it has {found} bytes instead of {file.size}")
