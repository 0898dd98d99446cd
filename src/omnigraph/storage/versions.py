"""Lance tables at fixed versions: which there are, what is in them, what changed between two."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import xxhash
from lance import LanceDataset

from omnigraph.errors import GraphMoved, HistoryReclaimed, ObjectDamaged, StorageUnavailable
from omnigraph.records import dataclass
from omnigraph.storage import layout
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.place import read_place
from omnigraph.storage.files.checksums import checksum, is_whole
from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.successors import KnownColumns
from omnigraph.storage.files.verification import LOOKUP_BYTES, Verification, is_on
from omnigraph.storage.files.versionfiles import description, relocated
from omnigraph.storage.handles import DEFAULT_LIMITS, HandleLimits, Handles
from omnigraph.storage.handles import TableRef as TableRef
from omnigraph.storage.next_version import VersionFiles
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.session import bounded_session
from omnigraph.storage.unavailable import translated, unavailable

_LITTLE: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Delta:
    """The row ids of what changed between two versions of a table. Among the updated ones may be some that did not
    change, about as many as did."""

    inserted: pa.Array
    updated: pa.Array
    deleted: pa.Array

    def __len__(self) -> int:
        return len(self.inserted) + len(self.updated) + len(self.deleted)


class TableVersions:
    """The versions of one graph's tables, with one session and its open handles."""

    def __init__(self, address: Address, objects: ObjectStore, limits: HandleLimits = DEFAULT_LIMITS) -> None:
        self.address = address
        self.objects = objects
        self.options = dict(address.options) or None
        self._session = bounded_session()
        self._limits = limits
        self._handles = Handles(self._session, limits)
        self._verification = Verification()
        self.version_files = VersionFiles()
        self._columns = KnownColumns()
        self._verified: set[tuple[TableRef, bool]] = set()
        self._origins: tuple[str, ...] | None = None
        self._left: dict[tuple[str, str | None], TableRef | None] = {}

    def uri(self, location: str, branch: str | None = None) -> str:
        """The absolute address of a table or of one of its native branches."""
        return f"{self.address.lance_root}/{layout.native_prefix(location, branch)}"

    def open(self, ref: TableRef) -> LanceDataset:
        """The table at exactly that version; HistoryReclaimed if the version has been cleaned away.

        ObjectDamaged if the table is gone altogether, or the version's file is not the one that was published.
        """
        handle = self._handles.find(ref)
        if handle is not None:
            return handle
        self.check_version(ref)
        handle = self.dataset(ref.location, ref.branch, ref.version, self.version_files.find(ref))
        if handle is None:
            raise self.missing(ref)
        if handle.version != ref.version:
            raise ObjectDamaged(self._version_shown(ref), f"it says that it is version {handle.version}")
        return self.remember(ref, handle)

    def check_version(self, ref: TableRef) -> None:
        """Raise ObjectDamaged if the file that makes a version does not fit its checksum, where that is known."""
        if ref.checksum is None or self.version_checksum(ref) in (None, ref.checksum):
            return
        if ref.checksum not in self._checksums_elsewhere(ref):
            raise ObjectDamaged(self._version_shown(ref), "its content is not what was published")

    def _checksums_elsewhere(self, ref: TableRef) -> Iterator[str]:
        """The checksums that a version of a branch had where the graph lay before: its file names that place."""
        if ref.branch is None:
            return
        content = self.version_path(ref).read_bytes()
        if self._origins is None:
            place = read_place(self.objects)
            self._origins = () if place is None else place.origins
        for origin in self._origins:
            with suppress(ValueError):
                yield f"{xxhash.xxh3_64_intdigest(relocated(content, ref.location, origin)):016x}"

    def version_checksum(self, ref: TableRef) -> str | None:
        """The checksum of the file that makes a version; None where files are not ours to read, or it is gone."""
        if self.address.scheme is not Scheme.LOCAL:
            return None
        with translated(self.shown(ref.location)):
            try:
                return f"{checksum([self._version_file(ref)]):016x}"
            except (FileNotFoundError, IsADirectoryError):
                return None

    def version_path(self, ref: TableRef) -> Path:
        """The file that makes a version of a table on a local disk."""
        return Path(self._version_file(ref))

    def _version_file(self, ref: TableRef) -> str:
        return f"{self.address.root}/{layout.version_file(ref.location, ref.branch, ref.version)}"

    def _version_shown(self, ref: TableRef) -> str:
        return self.shown(layout.version_file(ref.location, ref.branch, ref.version))

    def missing(self, ref: TableRef) -> HistoryReclaimed | ObjectDamaged:
        """Why a version is not there. Cleanup keeps the newest one, so a table without any was not cleaned; a
        native branch that its table does not list was deleted."""
        listed = ref.branch is None or self.objects.has(layout.branch_entry(ref.location, ref.branch))
        if listed and self.newest(ref.location, ref.branch) is None:
            return ObjectDamaged(self.shown(layout.native_prefix(ref.location, ref.branch)), "it is missing")
        return HistoryReclaimed(described(ref))

    def dataset(
        self, location: str, branch: str | None = None, version: int | None = None, content: bytes | None = None
    ) -> LanceDataset | None:
        """A table as it is on the store, the newest version if none is named; None only if it is not there.

        With the ``content`` of the version's file that is not read again, but the file must be there.
        """
        with translated(self.shown(location)):
            try:
                handle = LanceDataset(
                    self.uri(location, branch),
                    version=version,
                    serialized_manifest=None if content is None else description(content),
                    session=self._session,
                    storage_options=self.options,
                )
            except ValueError as error:
                # Lance says ValueError both when there is nothing and when it could not look.
                if "was not found" in str(error):
                    return None
                raise unavailable(self.shown(location), error) from error
            if branch is not None:
                self._require_own(handle, location)
            return handle

    def _require_own(self, handle: LanceDataset, location: str) -> None:
        """Raise GraphMoved if a branch refers to files of a graph at another place, which Lance would read."""
        for base in handle.base_paths().values():
            if not f"{base.path}/".startswith(f"{self.uri(location)}/"):
                raise GraphMoved(str(self.address), base.path.partition(f"/{location}")[0])

    def remember(self, ref: TableRef, handle: LanceDataset) -> LanceDataset:
        """Keep a handle open, as long as there is room for it."""
        self._handles.keep(ref, handle)
        return handle

    def forget(self, location: str, branch: str | None) -> None:
        """Let go of the handles of a branch that is gone."""
        self._handles.forget(location, branch)
        self.version_files.forget(location, branch)
        self._left.pop((location, branch), None)

    def close(self) -> None:
        """Let go of all handles."""
        self._handles.clear()

    def newest(self, location: str, branch: str | None = None) -> int | None:
        """The newest version of a table, by listing, which takes longer as it ages; None if there is none."""
        if self.address.scheme is Scheme.LOCAL:
            listed = self._listed(location, branch)
            if listed:
                return next((v for v in listed if self.exists(TableRef(location, branch, v))), None)
        handle = self.dataset(location, branch)
        return None if handle is None else int(handle.version)

    def _listed(self, location: str, branch: str | None) -> list[int]:
        """The versions whose files lie on a local disk, newest first."""
        folder = Path(self.address.root, layout.native_prefix(location, branch), "_versions")
        with translated(self.shown(location)):
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted((v for v in map(layout.version_of, names) if v is not None), reverse=True)

    def exists(self, ref: TableRef) -> bool:
        """Is there such a version? One look at one file, whatever the history.

        On a local disk a file of which the end is missing is no version: a power cut or a full disk left it, and
        its writer was never told that it succeeded.
        """
        if self.address.scheme is Scheme.LOCAL:
            with translated(self.shown(ref.location)):
                return is_whole(self._version_file(ref))
        if self.address.scheme is Scheme.MEMORY:
            newest = self.newest(ref.location, ref.branch)
            return newest is not None and ref.version <= newest
        return self.objects.has(layout.version_file(ref.location, ref.branch, ref.version))

    def is_torn(self, ref: TableRef) -> bool:
        """Is there a file on a local disk that would make the version if its end were not missing?"""
        if self.address.scheme is not Scheme.LOCAL:
            return False
        with translated(self.shown(ref.location)):
            try:
                os.stat(self._version_file(ref))
            except FileNotFoundError:
                return False
            return not self.exists(ref)

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
        whole_blobs: bool = False,
    ) -> pa.RecordBatchReader:
        """Rows of one version: some columns, a filter in DataFusion SQL, optionally with `_rowid` and the bytes of
        blobs."""
        handle = self.verified(ref, None if where is None else LOOKUP_BYTES)
        with translated(self.shown(ref.location)):
            scanner = handle.scanner(
                columns=None if columns is None else list(columns),
                filter=where,
                with_row_id=row_ids,
                blob_handling="all_binary" if whole_blobs else None,
            )
            return self.readable(ref, scanner.to_reader())

    def rows_from(self, ref: TableRef, offset: int, limit: int) -> pa.Table:
        """So many rows of one version from a position on, in the order they were written in."""
        handle = self.verified(ref, LOOKUP_BYTES)
        with translated(self.shown(ref.location)):
            return handle.scanner(offset=offset, limit=limit).to_table()

    def verified(self, ref: TableRef, limit: int | None = None) -> LanceDataset:
        """The table at that version, its files compared with their checksums: all of them, or up to a limit of
        bytes for the look-up of single rows, which uses the indexes too."""
        handle = self.open(ref)
        if (ref, limit is None) in self._verified:
            return handle
        with translated(self.shown(ref.location)):
            self._verification.check_rows(handle, limit)
            if limit is not None:
                self._verification.check_indexes(handle, limit)
        self._note_verified(ref, limit is None)
        return handle

    def is_to_verify(self, ref: TableRef) -> bool:
        """Would the first look-up of a row compare the files of that version with their checksums?"""
        return self.address.scheme is Scheme.LOCAL and (ref, False) not in self._verified and is_on()

    def follow(self, before: TableRef, after: TableRef) -> None:
        """Take a version that this process made for verified if the one it was made from is: the rest of its files
        were checked when they were staged."""
        for whole in (True, False):
            if (before, whole) in self._verified:
                self._note_verified(after, whole)

    def _note_verified(self, ref: TableRef, whole: bool) -> None:
        if len(self._verified) > self._limits.handles:
            self._verified.clear()
        self._verified.add((ref, whole))

    def verify_fragments(self, ref: TableRef, fragments: Collection[int], limit: int | None = None) -> None:
        """Compare the files of some fragments of a version with their checksums, all of them or up to a limit of
        bytes."""
        handle = self.open(ref)
        with translated(self.shown(ref.location)):
            self._verification.check_rows(handle, limit, fragments)

    def readable(self, ref: TableRef, reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """The same rows; what cannot be read among them is a StorageUnavailable that names the table, or, if the
        version was removed since it was opened, HistoryReclaimed."""

        def batches() -> Iterator[pa.RecordBatch]:
            try:
                with translated(self.shown(ref.location)):
                    yield from reader
            except StorageUnavailable as error:
                self.require_kept(ref, error)
                raise

        return pa.RecordBatchReader.from_batches(reader.schema, batches())

    def require_kept(self, ref: TableRef, error: StorageUnavailable) -> None:
        """Raise HistoryReclaimed if a read failed because the version was removed."""
        with suppress(StorageUnavailable):
            if not self.exists(ref):
                self.forget(ref.location, ref.branch)
                raise HistoryReclaimed(described(ref)) from error

    def pass_through(self, ref: TableRef, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Whole columns of one version for a reader that keeps little of them: hardly anything is read ahead."""
        handle = self.verified(ref)
        with translated(self.shown(ref.location)):
            scanner = handle.scanner(
                columns=list(columns), batch_readahead=1, fragment_readahead=1, io_buffer_size=_LITTLE
            )
            return self.readable(ref, scanner.to_reader())

    def count(self, ref: TableRef) -> int:
        """How many rows the version has."""
        with translated(self.shown(ref.location)):
            return int(self.open(ref).count_rows())

    def delta(self, ref: TableRef, since: int) -> Delta:
        """What happened to a table between an older version and this one, at the cost of what changed.

        ``since`` is a version of the same native branch, the one it forked at included. Versions that a restore
        has undone are no places to start from: what the restore brought back would be missing.
        """
        from omnigraph.storage.stage.row_versions import next_row_id

        handle = self.verified(ref)
        start = TableRef(ref.location, ref.branch, since)
        if not self.exists(start):
            raise HistoryReclaimed(described(start))
        first_new = next_row_id(self.open(start))
        with translated(self.shown(ref.location)):
            # Lance's own delta would read the whole rows, vectors included.
            written = f"_row_last_updated_at_version > {since}"
            found = _row_ids(handle.scanner([], filter=written, with_row_id=True).to_table().column(0))
            is_new = pc.greater_equal(found, pa.scalar(first_new, pa.uint64()))
            changes = handle.delta(begin_version=since, end_version=ref.version)
            return Delta(
                found.filter(is_new),
                found.filter(pc.invert(is_new)),
                _row_ids(changes.get_deleted_row_ids().read_all().column(0)),
            )

    def made_at(self, ref: TableRef) -> dt.datetime | None:
        """When a version was made, as Lance noted it; None if it has no note."""
        with translated(self.shown(ref.location)):
            made = self.open(ref).get_version()["timestamp"]
        return made.astimezone(dt.UTC) if isinstance(made, dt.datetime) else None

    def deleted_row_ids(self, ref: TableRef, since: int) -> list[int]:
        """The row ids that an older version of the same native branch has and this one has not, sorted."""
        with translated(self.shown(ref.location)):
            changes = self.open(ref).delta(begin_version=since, end_version=ref.version)
            found = changes.get_deleted_row_ids().read_all().column(0)
        return sorted(found.to_pylist())

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
                    names |= {name_of(file) for part in handle.get_fragments() for file in part.data_files()}
                made = version["timestamp"]
                if isinstance(made, dt.datetime) and made.astimezone(dt.UTC) < since:
                    break
        return names

    def data_files_after(self, location: str, branch: str | None, version: int) -> set[str]:
        """The names of the data files in all versions after one."""
        newest = self.dataset(location, branch)
        names: set[str] = set()
        if newest is None:
            return names
        with translated(self.shown(location)):
            for number in range(version + 1, newest.version + 1):
                handle = self.dataset(location, branch, number)
                if handle is not None:
                    names |= {file.path for part in handle.get_fragments() for file in part.data_files()}
        return names

    def shown(self, location: str) -> str:
        """How messages name a table."""
        return f"{self.address}/{location}"


def _row_ids(column: pa.ChunkedArray) -> pa.Array:
    found: pa.Array = column.cast(pa.uint64()).combine_chunks()
    return found


def described(ref: TableRef) -> str:
    """A version in words."""
    branch = f" on branch {ref.branch}" if ref.branch else ""
    return f"version {ref.version} of table {ref.location}{branch}"
