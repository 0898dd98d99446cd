"""Lance tables: open one at a version, read it, stage a change, commit what was staged.

This is the only module that may move a Lance HEAD. Staging (`storage.staging`) writes files nobody refers to;
`commit_staged` makes them a version. The caller holds the commit lock and has checked that the table stands
where it was read, because Lance would otherwise rebase a stale append silently.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import lance
import pyarrow as pa
from lance import LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError

from omnigraph.errors import HistoryReclaimed, StorageError, StorageUnavailable
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.staging import Staged, stage_append

_HANDLES: Final = 1024


@dataclass(frozen=True, slots=True)
class TableRef:
    """One version of one table. ``branch`` is the native branch that holds it, None for the trunk."""

    location: str
    branch: str | None
    version: int


@dataclass(frozen=True, slots=True)
class Delta:
    """What changed between two versions of a table. Deleted rows are known by row id only."""

    inserted: pa.Table
    updated: pa.Table
    deleted_row_ids: pa.ChunkedArray


class TableMoved(StorageError):
    """A table was not where the writer saw it. Callers turn it into the conflict that fits."""

    def __init__(self, location: str, expected: int) -> None:
        super().__init__(location, expected)
        self.location = location
        self.expected = expected

    def __str__(self) -> str:
        return f"table {self.location} moved past version {self.expected}"


class Tables:
    """The Lance tables of one graph, with one session and a cache of open handles."""

    def __init__(self, address: Address, objects: ObjectStore) -> None:
        self.address = address
        self._objects = objects
        self._options = dict(address.options) or None
        self._session = lance.Session()  # type: ignore[attr-defined]
        self._handles: OrderedDict[TableRef, LanceDataset] = OrderedDict()
        self._lock = threading.Lock()

    def uri(self, location: str, branch: str | None = None) -> str:
        """The absolute address of a table or of one of its native branches."""
        return f"{self.address.lance_root}/{layout.native_prefix(location, branch)}"

    def open(self, ref: TableRef) -> LanceDataset:
        """The table at exactly that version; HistoryReclaimed if the version has been cleaned away."""
        with self._lock:
            handle = self._handles.get(ref)
            if handle is not None:
                self._handles.move_to_end(ref)
                return handle
        with self._translated(ref.location):
            try:
                handle = lance.dataset(
                    self.uri(ref.location, ref.branch),
                    version=ref.version,
                    session=self._session,
                    storage_options=self._options,
                )
            except ValueError as error:
                raise HistoryReclaimed(f"version {ref.version} of table {ref.location}") from error
        return self._remember(ref, handle)

    def _remember(self, ref: TableRef, handle: LanceDataset) -> LanceDataset:
        with self._lock:
            self._handles[ref] = handle
            self._handles.move_to_end(ref)
            while len(self._handles) > _HANDLES:
                self._handles.popitem(last=False)
        return handle

    def newest(self, location: str, branch: str | None = None) -> int | None:
        """The newest version of a table, by listing, which takes longer as it ages; None if there is none."""
        with self._translated(location):
            try:
                return lance.dataset(
                    self.uri(location, branch), session=self._session, storage_options=self._options
                ).version
            except ValueError:
                return None

    def exists(self, ref: TableRef) -> bool:
        """Is there such a version? One look at one file, whatever the history."""
        if self.address.scheme is Scheme.MEMORY:
            newest = self.newest(ref.location, ref.branch)
            return newest is not None and ref.version <= newest
        return self._objects.has(layout.version_file(ref.location, ref.branch, ref.version))

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
        with self._translated(ref.location):
            scanner = self.open(ref).scanner(
                columns=None if columns is None else list(columns), filter=where, with_row_id=row_ids
            )
            return scanner.to_reader()

    def count(self, ref: TableRef) -> int:
        """How many rows the version has."""
        return int(self.open(ref).count_rows())

    def create(self, location: str, schema: pa.Schema) -> TableRef:
        """A new empty table with stable row ids; an empty one of an interrupted creation is taken over."""
        operation = LanceOperation.Overwrite(schema, [])
        with self._translated(location):
            handle = LanceDataset.commit(
                self.uri(location), operation, enable_stable_row_ids=True, storage_options=self._options
            )
        ref = TableRef(location, None, handle.version)
        self._remember(ref, handle)
        return ref

    def create_filled(self, location: str, rows: pa.Table) -> TableRef:
        """A new table that has its first rows from its first version on."""
        with self._translated(location):
            handle = lance.write_dataset(
                rows,
                self.uri(location),
                schema=rows.schema,
                mode="create",
                enable_stable_row_ids=True,
                storage_options=self._options,
            )
        ref = TableRef(location, None, handle.version)
        self._remember(ref, handle)
        return ref

    def commit_staged(self, staged: Staged) -> TableRef:
        """Make a staged change the next version of its table."""
        expected = staged.read_version + 1
        with self._translated(staged.location):
            try:
                handle = LanceDataset.commit(
                    self.open(TableRef(staged.location, staged.branch, staged.read_version)),
                    staged.transaction,
                    max_retries=0,
                    storage_options=self._options,
                )
            except CommitConflictError as error:
                raise TableMoved(staged.location, staged.read_version) from error
        if handle.version != expected:
            raise TableMoved(staged.location, staged.read_version)
        ref = TableRef(staged.location, staged.branch, handle.version)
        self._remember(ref, handle)
        return ref

    def append_to_log(self, location: str, rows: pa.Table) -> None:
        """Add rows to a table that only ever grows, behind whatever others add at the same time."""
        newest = self.newest(location)
        version = self.create(location, rows.schema).version if newest is None else newest
        handle = self.open(TableRef(location, None, version))
        staged = stage_append(handle, location, None, rows, "log")
        with self._translated(location):
            LanceDataset.commit(handle, staged.transaction, storage_options=self._options)

    def restore(self, ref: TableRef, head: int) -> TableRef:
        """Make an older version the newest again. The caller holds the lock and knows the table is at ``head``."""
        operation = Transaction(head, LanceOperation.Restore(ref.version))
        with self._translated(ref.location):
            handle = LanceDataset.commit(
                self.uri(ref.location, ref.branch), operation, max_retries=0, storage_options=self._options
            )
        restored = TableRef(ref.location, ref.branch, handle.version)
        self._remember(restored, handle)
        return restored

    def fork(self, ref: TableRef, native: str) -> TableRef:
        """Give a table a native branch that starts at this version; an equal one is taken over."""
        forked = TableRef(ref.location, native, ref.version)
        with self._translated(ref.location):
            if not self.exists(forked):
                self.open(ref).create_branch(native, (ref.branch, ref.version))
        return forked

    def drop_branch(self, location: str, native: str) -> None:
        """Remove a native branch and its files; nothing happens if there is none."""
        with self._translated(location):
            trunk = lance.dataset(self.uri(location), session=self._session, storage_options=self._options)
            if native in trunk.branches.list():
                trunk.branches.delete(native)

    def native_branches(self, location: str) -> list[str]:
        """The names of a table's native branches."""
        with self._translated(location):
            trunk = lance.dataset(self.uri(location), session=self._session, storage_options=self._options)
            return sorted(trunk.branches.list())

    def delta(self, ref: TableRef, since: int) -> Delta:
        """What happened to a table between an older version and this one, at the cost of what changed."""
        with self._translated(ref.location):
            changes = self.open(ref).delta(begin_version=since, end_version=ref.version)
            return Delta(
                changes.get_inserted_rows().read_all(),
                changes.get_updated_rows().read_all(),
                changes.get_deleted_row_ids().read_all().column(0),
            )

    @contextmanager
    def _translated(self, location: str) -> Iterator[None]:
        """Turn what Lance and the store raise into errors of ours."""
        try:
            yield
        except (OSError, RuntimeError) as error:
            reason = str(error).split(", /")[0]
            raise StorageUnavailable(f"{self.address}/{location}", reason) from error
