"""The files of every version that the newest states and the tags name: there, of the right size, and unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lance import LanceDataset

from omnigraph.errors import ObjectDamaged, OmniError
from omnigraph.maintenance.doctor.examination import RESTORE, Examination, ExaminedTable
from omnigraph.maintenance.doctor.report import Finding, Severity
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.files.checksums import verify_data, verify_deletion, verify_index
from omnigraph.storage.files.references import FileKind, TableFile, referenced_files
from omnigraph.storage.unavailable import translated

_LISTED: Final = 20
"""So many files of a table are named; the others are counted."""

_VERIFY: Final = {FileKind.DATA: verify_data, FileKind.DELETION: verify_deletion, FileKind.INDEX: verify_index}


def check_files(exam: Examination) -> Iterator[Finding]:
    """Look at each file once, however many versions refer to it. A quick examination looks at sizes only."""
    if exam.repository.address.scheme is Scheme.MEMORY:
        return
    store = _Store(exam)
    for table in exam.pinned("files"):
        try:
            handle = exam.repository.tables.open(table.pin.ref)
        except OmniError:
            continue  # the check of counts says why
        yield from _of_table(exam, store, table, handle)


def _of_table(exam: Examination, store: _Store, table: ExaminedTable, handle: LanceDataset) -> Iterator[Finding]:
    listed, more = 0, 0
    moved: set[str] = set()
    with translated(exam.repository.tables.shown(table.pin.location)):
        files = list(referenced_files(handle))
    for file in files:
        if not store.is_inside(file):
            moved.add(file.root)
            continue
        problem = store.problem(file)
        if problem is None:
            continue
        if file.kind is not FileKind.INDEX:
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
    if moved:
        exam.unreadable.add(table.pin.ref)
        yield Finding(
            "moved_directory",
            Severity.ERROR,
            f"{table.table_key} refers to files at {', '.join(sorted(moved))}, outside of the graph: its "
            "directory was moved, or copied by hand",
            "move it back",
            table.shown,
            table.table_key,
        )


def _finding(table: ExaminedTable, file: TableFile, problem: _Problem) -> Finding:
    is_index = file.kind is FileKind.INDEX
    remedy = f"remove it and run `omnigraph index --branch {table.shown}`" if is_index else RESTORE
    code = "index_damaged" if is_index and problem.code == "file_damaged" else problem.code
    message = f"{file.path} of {table.table_key}: {problem.reason}"
    return Finding(code, Severity.ERROR, message, remedy, table.shown, table.table_key, file.path)


@dataclass(frozen=True, slots=True)
class _Problem:
    """What is wrong with a file."""

    code: str
    reason: str


class _Store:
    """The files that were looked at, and what is wrong with them."""

    def __init__(self, exam: Examination) -> None:
        self._exam = exam
        self._address: Address = exam.repository.address
        self._known: dict[str, _Problem | None] = {}
        self._listings: dict[str, dict[str, int]] = {}

    def is_inside(self, file: TableFile) -> bool:
        """Does a file lie below the graph's root?"""
        root = self._address.lance_root.rstrip("/")
        return file.root == root or file.root.startswith(f"{root}/")

    def problem(self, file: TableFile) -> _Problem | None:
        """What is wrong with a file; None if nothing is."""
        if file.path not in self._known:
            local = self._address.scheme is Scheme.LOCAL
            self._known[file.path] = self._local(file) if local else self._remote(file)
        return self._known[file.path]

    def _local(self, file: TableFile) -> _Problem | None:
        path = Path(file.path)
        if not path.exists():
            return _Problem("file_missing", "it is missing")
        if file.kind is not FileKind.INDEX and (wrong := _wrong_size(file, path.stat().st_size)):
            return wrong
        if self._exam.quick:
            return None
        try:
            _VERIFY[file.kind](path)
        except ObjectDamaged as error:
            return _Problem("file_damaged", error.reason)
        return None

    def _remote(self, file: TableFile) -> _Problem | None:
        """Object stores check contents by themselves; what can happen is that an object is gone or replaced."""
        sizes = self._sizes(file.root)
        key = file.path.removeprefix(f"{self._address.lance_root}/")
        if file.kind is FileKind.INDEX:
            is_there = any(name.startswith(f"{key}/") for name in sizes)
            return None if is_there else _Problem("file_missing", "it is missing")
        if key not in sizes:
            return _Problem("file_missing", "it is missing")
        return _wrong_size(file, sizes[key])

    def _sizes(self, root: str) -> dict[str, int]:
        """The sizes of a table's objects, by one listing."""
        if root not in self._listings:
            prefix = root.removeprefix(f"{self._address.lance_root}/")
            entries = self._exam.repository.objects.entries(prefix)
            self._listings = {root: {entry.key: entry.size for entry in entries}}
        return self._listings[root]


def _wrong_size(file: TableFile, found: int) -> _Problem | None:
    if file.size is None or file.size == found:
        return None
    return _Problem("file_size", f"it has {found} bytes instead of {file.size}")
