"""Lance tables: create one, commit what was staged, go back, fork.

This is the only module that may move a Lance HEAD. Staging (`storage.stage`) writes files nothing refers to;
`commit_staged` makes them a version. Lance would rebase most stale changes silently; here they are refused, and
the commit lock, which the caller holds, makes looking and committing one step.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import xxhash
from lance import DatasetBasePath, FragmentMetadata, LanceDataset, LanceOperation, Transaction
from lance.commit import CommitConflictError

from omnigraph.errors import IncompleteFile, OmniError, StorageUnavailable, TableMoved
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.checksums import is_whole, require_whole
from omnigraph.storage.files.durability import sync_files
from omnigraph.storage.files.successors import is_added, successor
from omnigraph.storage.next_version import MOST_FRAGMENTS, is_computed, next_version
from omnigraph.storage.objects import Ahead
from omnigraph.storage.together import in_shares
from omnigraph.storage.unavailable import translated
from omnigraph.storage.versions import Delta, TableRef, TableVersions, described

if TYPE_CHECKING:
    from omnigraph.storage.stage.changes import Staged

__all__ = ["Delta", "TableRef", "Tables", "VersionOrigin"]

LOG_FILES: Final = 8
"""From so many small files on, those of a log are put together."""

LOG_ROWS_PER_FILE: Final = 1_024
"""Files of a log with so many rows are left as they are: an append costs the same however long the log is."""


_REWRITTEN_INDEX: Final = "RewrittenIndex"


@dataclass(frozen=True, slots=True)
class VersionOrigin:
    """What made a version of a table: Lance's name of the operation, empty if there is no record of it; the id of
    the transaction; the owner that was noted in it; and the version that a restore brought back."""

    operation: str
    transaction_id: str | None = None
    owner: str | None = None
    restored: int | None = None


@dataclass(frozen=True, slots=True)
class NextVersion:
    """A version of a table that can be put in its place: where it belongs, with the checksum of its file, and the
    file, which may be on the disk already."""

    ref: TableRef
    content: bytes
    ahead: Ahead | None = None


_WAITING: Final = 4
"""How many threads write files of versions ahead: most of the time each waits for the disk."""

_REARRANGING: Final = frozenset({"Rewrite", "CreateIndex"})
_MOST_REARRANGED: Final = 16
"""How many versions are looked at to find out if they only rearranged rows."""


class Tables(TableVersions):
    """The Lance tables of one graph."""

    def create(self, location: str, schema: pa.Schema) -> TableRef:
        """A new empty table with stable row ids.

        An empty one of an interrupted creation is taken over. One with rows is left alone, and that is an error.
        """
        newest = self.newest(location)
        if newest is not None:
            return self._taken_over(TableRef(location, None, newest), schema)
        self._clear_torn(TableRef(location, None, 0))
        operation = LanceOperation.Overwrite(schema, [])
        with translated(self.shown(location)):
            handle = LanceDataset.commit(
                self.uri(location),
                operation,
                enable_stable_row_ids=True,
                max_retries=0,
                storage_options=self.options,
            )
        return self._committed(TableRef(location, None, handle.version), handle)

    def _committed(self, ref: TableRef, handle: LanceDataset) -> TableRef:
        """A version that was just made: its file is checked, synced and remembered by its checksum.

        One whose file did not reach the disk is no version. It is removed, so that the next writer can make it;
        the caller holds the lock, or has just created the table.
        """
        if self.address.scheme is not Scheme.LOCAL:
            self.remember(ref, handle)
            return ref
        path = self.version_path(ref)
        with translated(self.shown(ref.location)):
            try:
                require_whole(path, None)
            except IncompleteFile:
                path.unlink(missing_ok=True)
                raise
        self.sync_version(ref)
        self.remember(ref, handle)
        return replace(ref, checksum=self.version_checksum(ref))

    def sync_version(self, ref: TableRef) -> None:
        """Bring the file that makes a version to a local disk."""
        if self.address.scheme is Scheme.LOCAL:
            with translated(self.shown(ref.location)):
                sync_files([self.version_path(ref)], Path(self.address.root))

    def _clear_torn(self, ref: TableRef) -> None:
        """Remove the file of the version after this one if its end is missing: it would be in the way for ever."""
        following = replace(ref, version=ref.version + 1)
        if not self.is_torn(following):
            return
        path = self.version_path(following)
        with translated(self.shown(ref.location)):
            aside = path.rename(path.with_name(f"{path.name}.torn-{uuid.uuid4().hex}"))
            if is_whole(aside):  # another writer has just put a whole one there
                aside.rename(path)
            else:
                aside.unlink()

    def _taken_over(self, ref: TableRef, schema: pa.Schema) -> TableRef:
        from omnigraph.storage.stage.changes import stage_overwrite

        handle = self.open(ref)
        if handle.count_rows():
            raise StorageUnavailable(self.shown(ref.location), "there is a table with rows already")
        if handle.schema == schema:
            return ref
        return self.commit_staged(stage_overwrite(handle, ref.location, None, schema.empty_table(), "create"))

    def create_filled(self, location: str, rows: pa.Table) -> TableRef:
        """A new table that has its first rows from its first version on; StorageUnavailable if there is one."""
        from omnigraph.storage.stage.changes import stage_first_rows

        if self.newest(location) is not None:
            raise StorageUnavailable(self.shown(location), "there is a table already")
        self._clear_torn(TableRef(location, None, 0))
        with translated(self.shown(location)):
            handle = LanceDataset.commit(
                self.uri(location),
                stage_first_rows(self.uri(location), rows, self.options),
                enable_stable_row_ids=True,
                max_retries=0,
                storage_options=self.options,
            )
        return self._committed(TableRef(location, None, handle.version), handle)

    def foresee(self, staged: Staged, before: NextVersion | None) -> NextVersion | None:
        """The version that a staged change will make, on a disk, before the one that it follows need be there;
        None if Lance has to make it. Without ``before`` that one is there."""
        read = TableRef(staged.location, staged.branch, staged.read_version)
        content = None if before is None else before.content
        made = self._computed_next(read, staged.transaction, content)
        if made is None or self.address.scheme is not Scheme.LOCAL:
            return None
        checksum = f"{xxhash.xxh3_64_intdigest(made):016x}"
        return NextVersion(replace(read, version=read.version + 1, checksum=checksum), made)

    def write_ahead(self, versions: Sequence[NextVersion]) -> list[NextVersion]:
        """Bring the files of versions to the disk that will be put in their places one after the other."""

        def written(version: NextVersion) -> NextVersion:
            ref = version.ref
            key = layout.version_file(ref.location, ref.branch, ref.version)
            return replace(version, ahead=self.objects.write_ahead(key, version.content))

        return in_shares(written, versions, _WAITING)

    def commit_staged(self, staged: Staged, foreseen: NextVersion | None = None) -> TableRef:
        """Make a staged change the next version of its table; TableMoved if there is a next version already.

        An overwrite is safe without the lock: of two, Lance lets one win. So is a version that is computed here.
        Any other change that overtakes this one between the look and the commit is a writer without the lock;
        TableMoved then comes too late.
        """
        read = TableRef(staged.location, staged.branch, staged.read_version)
        content = self._computed_next(read, staged.transaction) if foreseen is None else foreseen.content
        if content is not None:
            return self._put_next(read, content, None if foreseen is None else foreseen.ahead)
        is_strict = isinstance(staged.transaction.operation, LanceOperation.Overwrite)
        if not is_strict and self.moved(read):
            raise TableMoved(staged.location, staged.read_version)
        self._clear_torn(read)
        with translated(self.shown(staged.location)):
            try:
                handle = LanceDataset.commit(
                    self.open(read), staged.transaction, max_retries=0, storage_options=self.options
                )
            except CommitConflictError as error:
                raise TableMoved(staged.location, staged.read_version) from error
        if handle.version != staged.read_version + 1:
            raise TableMoved(staged.location, staged.read_version)
        done = self._committed(TableRef(staged.location, staged.branch, handle.version), handle)
        if is_strict and self.address.scheme is Scheme.LOCAL:
            with translated(self.shown(staged.location)):
                self._columns.learn(self.version_path(done).read_bytes(), staged.transaction)
        self.follow(read, done)
        return done

    def staged_rows(self, folder: str, fragment: FragmentMetadata, schema: pa.Schema, location: str) -> pa.Table:
        """The rows of a file in a table's folder that no table refers to, with the bytes of blobs.

        Only a table finds the blobs that lie beside a file; so one is made at a location of the caller's, which
        refers to the file where it is.
        """
        described = fragment.to_json()
        for file in described["files"]:
            file["base_id"] = 1
        base = DatasetBasePath(path=folder, name=None, is_dataset_root=True, id=1)
        moved = FragmentMetadata.from_json(json.dumps(described))
        operation = LanceOperation.Overwrite(schema, [moved], initial_bases=[base])
        with translated(self.shown(location)):
            handle = LanceDataset.commit(
                self.uri(location), operation, max_retries=0, storage_options=self.options
            )
            return handle.scanner(blob_handling="all_binary").to_table()

    def _computed_next(
        self, read: TableRef, transaction: Transaction, before: bytes | None = None
    ) -> bytes | None:
        """The file that makes the next version of a table; None if Lance has to make it."""
        is_remote = self.address.scheme is Scheme.S3
        columns = self._columns.find(transaction)
        is_known = is_computed(transaction) if is_remote else columns is not None or is_added(transaction)
        if self.address.scheme is Scheme.MEMORY or not is_known:
            return None
        current = before or self.version_files.find(read)
        if current is None:
            if len(self.open(read).fragment_ids()) > MOST_FRAGMENTS:
                return None
            found = self.objects.get(layout.version_file(read.location, read.branch, read.version))
            if found is None:
                raise self.missing(read)
            current = found.content
        made = None
        with suppress(ValueError):
            made = successor(current, read.version, transaction, columns)
        if made is not None or not is_remote:
            return made
        made = next_version(read, current, transaction)
        if made is not None:
            self._columns.learn(made, transaction)
        return made

    def _put_next(self, read: TableRef, content: bytes, ahead: Ahead | None) -> TableRef:
        """Put the file of the next version in its place; TableMoved if another one is there."""
        done = replace(read, version=read.version + 1, checksum=None)
        key = layout.version_file(done.location, done.branch, done.version)
        self._clear_torn(read)
        is_put = ahead.put_if_absent() if ahead else self.objects.put_if_absent(key, content) is not None
        if not is_put:
            # A request that was repeated because its answer got lost finds what it put there itself.
            present = self.objects.get(key)
            if present is None or present.content != content:
                raise TableMoved(read.location, read.version)
        if self.address.scheme is Scheme.LOCAL:
            done = replace(done, checksum=f"{xxhash.xxh3_64_intdigest(content):016x}")
        self.version_files.keep(done, content)
        self.follow(read, done)
        return done

    def append_to_log(self, location: str, rows: pa.Table) -> None:
        """Add rows to a table that only ever grows, behind whatever others add at the same time."""
        from omnigraph.storage.stage.changes import stage_append

        version = self.newest(location)
        if version is None:
            version = self._first_version(location, rows.schema)
        self._clear_torn(TableRef(location, None, version))
        handle = self.open(TableRef(location, None, version))
        staged = stage_append(handle, location, None, rows, "log")
        with translated(self.shown(location)):
            after = LanceDataset.commit(handle, staged.transaction, storage_options=self.options)
        done = self._committed(TableRef(location, None, after.version), after)
        with suppress(OmniError):  # the rows are there; the next append tries again
            self._compact_log(done)

    def _compact_log(self, ref: TableRef) -> None:
        """Put the small files of a log together when there are several, so that reading it does not cost a request
        for each append. Rows that others add at the same time stay; of two compactions one wins."""
        from omnigraph.storage.stage.compaction import plan_compaction, stage_compaction

        own = self.dataset(ref.location, None, ref.version)
        if own is None or len(own.get_fragments()) < LOG_FILES:
            return
        plan = plan_compaction(own, LOG_ROWS_PER_FILE)
        if len(plan.fragments) < LOG_FILES:
            return
        staged = stage_compaction(plan, ref.location, None, "log").staged
        self._clear_torn(ref)
        with translated(self.shown(ref.location)), suppress(CommitConflictError):
            after = LanceDataset.commit(own, staged.transaction, storage_options=self.options)
            self._committed(TableRef(ref.location, None, after.version), after)

    def _first_version(self, location: str, schema: pa.Schema) -> int:
        """Create a log, unless another process does at the same time."""
        try:
            return self.create(location, schema).version
        except StorageUnavailable:
            newest = self.newest(location)
            if newest is None:
                raise
            return newest

    def restore(self, ref: TableRef, head: int, owner: str = "restore") -> TableRef:
        """Make an older version the newest again; TableMoved unless the table is at ``head``.

        Lance never checks a restore, so the caller holds the lock.
        """
        from omnigraph.storage.stage.changes import OPERATION_PROPERTY

        self.open(ref)
        if self.moved(TableRef(ref.location, ref.branch, head)):
            raise TableMoved(ref.location, head)
        self._clear_torn(TableRef(ref.location, ref.branch, head))
        transaction = Transaction(
            head, LanceOperation.Restore(ref.version), transaction_properties={OPERATION_PROPERTY: owner}
        )
        with translated(self.shown(ref.location)):
            handle = LanceDataset.commit(
                self.uri(ref.location, ref.branch), transaction, max_retries=0, storage_options=self.options
            )
        if handle.version != head + 1:
            raise TableMoved(ref.location, head)
        return self._committed(TableRef(ref.location, ref.branch, handle.version), handle)

    def transaction_id(self, ref: TableRef) -> str | None:
        """The id of the transaction that made a version; None if Lance has no record of it."""
        return self.origin(ref).transaction_id

    def operation_of(self, ref: TableRef) -> str | None:
        """The owner that was noted in the transaction that made a version."""
        return self.origin(ref).owner

    def origin(self, ref: TableRef) -> VersionOrigin:
        """What made a version, as far as Lance has a record of it.

        Its Python side has no name for the reservation that goes before a compaction, which changes no fragment,
        and cannot read the record of a compaction that rewrote indexes.
        """
        from omnigraph.storage.stage.changes import OPERATION_PROPERTY

        before = replace(ref, version=ref.version - 1, checksum=None)
        with translated(self.shown(ref.location)):
            handle = self.open(ref)
            try:
                transaction = handle.read_transaction(ref.version)
            except TypeError as error:
                if _REWRITTEN_INDEX not in str(error):
                    raise
                return VersionOrigin("Rewrite")
            if transaction is None:
                return VersionOrigin("")
            operation = transaction.operation
            name = type(operation).__name__
            if name == "BaseOperation" and _fragments(handle) == _fragments(self.open(before)):
                name = "ReserveFragments"
            restored = operation.version if isinstance(operation, LanceOperation.Restore) else None
            owner = (transaction.transaction_properties or {}).get(OPERATION_PROPERTY)
            return VersionOrigin(name, str(transaction.uuid), owner, restored)

    def is_rearranged(self, before: TableRef, after: TableRef) -> bool:
        """Are all versions after ``before`` compactions and indexes, so that no row differs? False if unknown."""
        if (before.location, before.branch) != (after.location, after.branch):
            return False
        versions = range(before.version + 1, after.version + 1)
        if len(versions) > _MOST_REARRANGED:
            return False
        refs = (replace(after, version=each, checksum=None) for each in versions)
        try:
            return all(self.origin(ref).operation in _REARRANGING for ref in refs)
        except OmniError:  # a cleanup may have removed versions in between
            return False

    def fork(self, ref: TableRef, native: str) -> TableRef:
        """Give a table a native branch that starts at this version; an equal one is taken over.

        Lance writes the branch's first version and then its entry in the list of branches. What has only one of
        the two was interrupted, and cleanup would not spare the rows it needs: it is made again.
        """
        point = self.fork_point(ref.location, native)
        if point is not None and self.newest(ref.location, native) is not None:
            if point != ref:
                reason = f"branch {native} starts at {described(point)}, not at {described(ref)}"
                raise StorageUnavailable(self.shown(ref.location), reason)
        else:
            self._undo_fork(ref.location, native)
            # Lance changes the handle it branches from, so this cannot be one that other threads read through.
            own = self.dataset(ref.location, ref.branch, ref.version)
            if own is None:
                raise self.missing(ref)
            with translated(self.shown(ref.location)):
                own.create_branch(native, (ref.branch, ref.version))
        self._sync_fork(ref, native)
        return TableRef(ref.location, native, ref.version)

    def _sync_fork(self, ref: TableRef, native: str) -> None:
        """Check and sync what makes a native branch: its first version and its entry among the branches."""
        if self.address.scheme is not Scheme.LOCAL:
            return
        first = self.version_path(TableRef(ref.location, native, ref.version))
        entry = Path(self.address.root, layout.branch_entry(ref.location, native))
        with translated(self.shown(ref.location)):
            require_whole(first, None)
            sync_files([first, entry], Path(self.address.root))

    def _undo_fork(self, location: str, native: str) -> None:
        """Remove what an interrupted fork left. Data files stay: a load may have staged them for the branch."""
        if self.address.scheme is Scheme.MEMORY:
            self.drop_branch(location, native)
            return
        self.objects.delete(layout.branch_entry(location, native))
        tree = layout.native_prefix(location, native)
        for folder in ("_versions", "_transactions", "_deletions", "_indices"):
            self.objects.delete_prefix(f"{tree}/{folder}")
        self.forget(location, native)

    def drop_branch(self, location: str, native: str) -> None:
        """Remove a native branch and its files; nothing happens if there is none."""
        from omnigraph.storage.forkpoints import clear_torn_entries

        if self.fork_point(location, native) is not None:
            trunk = self.dataset(location)
            clear_torn_entries(self.objects, location)
            with translated(self.shown(location)):
                if trunk is not None:
                    trunk.branches.delete(native)
        self.objects.delete_prefix(layout.native_prefix(location, native))
        self.forget(location, native)

    def fork_point(self, location: str, native: str) -> TableRef | None:
        """Where a native branch left which other one; None if the table lists no such branch."""
        from omnigraph.storage.forkpoints import fork_point

        if self.address.scheme is Scheme.MEMORY:
            return self.fork_points(location).get(native)
        return fork_point(self.objects, location, native)

    def left_from(self, ref: TableRef) -> TableRef | None:
        """The version at which the native branch of a published version left another one; None on the trunk.

        It never changes, so it is read once.
        """
        place = (ref.location, ref.branch)
        if ref.branch is not None and place not in self._left:
            self._left[place] = self.fork_point(ref.location, ref.branch)
        return self._left.get(place)

    def native_branches(self, location: str) -> list[str]:
        """The names of a table's native branches."""
        return list(self.fork_points(location))

    def fork_points(self, location: str) -> dict[str, TableRef]:
        """Where each native branch of a table left which other one."""
        from omnigraph.storage.forkpoints import fork_points

        if self.address.scheme is not Scheme.MEMORY:
            return fork_points(self.objects, location)
        trunk = self.dataset(location)
        with translated(self.shown(location)):
            found = {} if trunk is None else trunk.branches.list()
        listed = sorted(found.items())
        return {name: TableRef(location, at["parent_branch"], at["parent_version"]) for name, at in listed}


def _fragments(handle: LanceDataset) -> list[object]:
    return [fragment.metadata.to_json() for fragment in handle.get_fragments()]
