"""Lance tables at fixed versions: which there are, what is in them, what changed between two."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import HistoryReclaimed
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.handles import Handles
from omnigraph.storage.handles import TableRef as TableRef
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.session import bounded_session
from omnigraph.storage.unavailable import translated, unavailable

_LITTLE: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed between two versions of a table. Deleted rows are known by row id only."""

    inserted: pa.Table
    updated: pa.Table
    deleted_row_ids: pa.ChunkedArray


class TableVersions:
    """The versions of one graph's tables, with one session and its open handles."""

    def __init__(self, address: Address, objects: ObjectStore) -> None:
        self.address = address
        self.objects = objects
        self.options = dict(address.options) or None
        self._session = bounded_session()
        self._handles = Handles(self._session)

    def uri(self, location: str, branch: str | None = None) -> str:
        """The absolute address of a table or of one of its native branches."""
        return f"{self.address.lance_root}/{layout.native_prefix(location, branch)}"

    def open(self, ref: TableRef) -> LanceDataset:
        """The table at exactly that version; HistoryReclaimed if the version has been cleaned away."""
        handle = self._handles.find(ref)
        if handle is not None:
            return handle
        handle = self.dataset(ref.location, ref.branch, ref.version)
        if handle is None:
            raise HistoryReclaimed(described(ref))
        return self.remember(ref, handle)

    def dataset(self, location: str, branch: str | None = None, version: int | None = None) -> LanceDataset | None:
        """A table as it is on the store, the newest version if none is named; None only if it is not there."""
        with translated(self.shown(location)):
            try:
                return lance.dataset(
                    self.uri(location, branch),
                    version=version,
                    session=self._session,
                    storage_options=self.options,
                )
            except ValueError as error:
                # Lance says ValueError both when there is nothing and when it could not look.
                if "was not found" in str(error):
                    return None
                raise unavailable(self.shown(location), error) from error

    def remember(self, ref: TableRef, handle: LanceDataset) -> LanceDataset:
        """Keep a handle open, as long as there is room for it."""
        self._handles.keep(ref, handle)
        return handle

    def forget(self, location: str, branch: str | None) -> None:
        """Let go of the handles of a branch that is gone."""
        self._handles.forget(location, branch)

    def newest(self, location: str, branch: str | None = None) -> int | None:
        """The newest version of a table, by listing, which takes longer as it ages; None if there is none."""
        handle = self.dataset(location, branch)
        return None if handle is None else int(handle.version)

    def exists(self, ref: TableRef) -> bool:
        """Is there such a version? One look at one file, whatever the history."""
        if self.address.scheme is Scheme.MEMORY:
            newest = self.newest(ref.location, ref.branch)
            return newest is not None and ref.version <= newest
        return self.objects.has(layout.version_file(ref.location, ref.branch, ref.version))

    def moved(self, ref: TableRef) -> bool:
        """Has the table moved past this version?"""
        return self.exists(TableRef(ref.location, ref.branch, ref.version + 1))

    def scan(
        self,
        ref: TableRef,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        *,
        row_ids: bool = False,
    ) -> pa.RecordBatchReader:
        """Rows of one version: some columns, a filter in DataFusion SQL, optionally with `_rowid`."""
        with translated(self.shown(ref.location)):
            scanner = self.open(ref).scanner(
                columns=None if columns is None else list(columns), filter=where, with_row_id=row_ids
            )
            return scanner.to_reader()

    def pass_through(self, ref: TableRef, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Whole columns of one version for a reader that keeps little of them: hardly anything is read ahead."""
        with translated(self.shown(ref.location)):
            scanner = self.open(ref).scanner(
                columns=list(columns), batch_readahead=1, fragment_readahead=1, io_buffer_size=_LITTLE
            )
            return scanner.to_reader()

    def count(self, ref: TableRef) -> int:
        """How many rows the version has."""
        return int(self.open(ref).count_rows())

    def delta(self, ref: TableRef, since: int) -> Delta:
        """What happened to a table between an older version and this one, at the cost of what changed.

        ``since`` is a version of the same native branch, the one it forked at included. Versions that a restore
        has undone are no places to start from: what the restore brought back would be missing.
        """
        handle = self.open(ref)
        start = TableRef(ref.location, ref.branch, since)
        if not self.exists(start):
            raise HistoryReclaimed(described(start))
        with translated(self.shown(ref.location)):
            changes = handle.delta(begin_version=since, end_version=ref.version)
            return Delta(
                changes.get_inserted_rows().read_all(),
                changes.get_updated_rows().read_all(),
                changes.get_deleted_row_ids().read_all().column(0),
            )

    def data_files(self, location: str, branch: str | None, since: dt.datetime) -> set[str]:
        """The names of the data files in all versions that were made since then, and in the newest one."""
        newest = self.dataset(location, branch)
        if newest is None:
            return set()
        names: set[str] = set()
        with translated(self.shown(location)):
            for version in sorted(newest.versions(), key=lambda entry: -int(entry["version"])):
                handle = self.dataset(location, branch, int(version["version"]))
                if handle is not None:
                    names |= {file.path for part in handle.get_fragments() for file in part.data_files()}
                made = version["timestamp"]
                if isinstance(made, dt.datetime) and made.astimezone(dt.UTC) < since:
                    break
        return names

    def shown(self, location: str) -> str:
        """How messages name a table."""
        return f"{self.address}/{location}"


def described(ref: TableRef) -> str:
    """A version in words."""
    branch = f" on branch {ref.branch}" if ref.branch else ""
    return f"version {ref.version} of table {ref.location}{branch}"
