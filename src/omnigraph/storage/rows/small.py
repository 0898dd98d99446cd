"""Rows of small tables in memory: a writer that looks for a few rows of one asks the store only for new files.

The rows are kept by the pieces they lie in, which never change, so the next version of a table takes what was
written since. A table with more files, rows or bytes than the limits is looked up on the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.records import dataclass
from omnigraph.storage.files.fragments import fragments_of
from omnigraph.storage.files.names import name_of
from omnigraph.storage.rows.pieces import Offsets, Piece, column_numbers, deleted_rows, physical_rows, pieces_of
from omnigraph.storage.together import side_by_side
from omnigraph.storage.unavailable import translated
from omnigraph.storage.versions import TableRef, TableVersions

ROW_ID: Final = "_rowid"
ROW_ADDRESS: Final = "_rowaddr"

MOST_FILES: Final = 128
MOST_ROWS: Final = 16_384
MOST_BYTES: Final = 2 << 20
"""A table is small if its version has no more than this, deleted rows included."""

_KEPT_BYTES: Final = 64 << 20
"""How many bytes all that is kept may take."""

_MADE_AT_ONCE: Final = 16
"""The rows of so many versions can be put together at the same time."""

_Columns = tuple[tuple[str, int], ...]
_Key = tuple[str, tuple[str, ...], _Columns]


@dataclass(frozen=True, slots=True, eq=False)
class _Version:
    """The rows of a version of a table, those of each piece, and the columns they were taken from."""

    ref: TableRef
    columns: _Columns
    parts: Mapping[Piece, pa.Table]
    rows: pa.Table


class SmallTables:
    """The rows of the small tables of one graph that writers have looked into."""

    def __init__(self, tables: TableVersions) -> None:
        self._tables = tables
        self._pieces: OrderedDict[_Key, pa.Table] = OrderedDict()
        self._deleted: OrderedDict[tuple[str, str], Offsets] = OrderedDict()
        self._versions: OrderedDict[tuple[str, str | None], _Version] = OrderedDict()
        self._ids: OrderedDict[tuple[str, tuple[str, ...]], pa.Array | None] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._making = tuple(threading.Lock() for _ in range(_MADE_AT_ONCE))

    def rows(self, ref: TableRef, schema: pa.Schema) -> pa.Table | None:
        """All rows of a version in these columns, with row ids and row addresses.

        None if it is not small, or has other columns than the schema. Threads that ask for the same version at the
        same time wait for each other: the next ones find what the first has made.
        """
        with self._making[hash(ref) % _MADE_AT_ONCE]:
            return self._made(ref, schema)

    def _made(self, ref: TableRef, schema: pa.Schema) -> pa.Table | None:
        from omnigraph.storage.files.datafiles import has_blobs

        place = ref.location, ref.branch
        with self._lock:
            known = self._versions.get(place)
        if known is not None and known.ref == ref and known.rows.schema.names[: len(schema)] == schema.names:
            return known.rows
        columns = self._columns(ref)
        is_whole = {name for name, _ in columns} == set(schema.names)
        fragments = self._few(ref) if is_whole and not has_blobs(schema) else None
        if fragments is None:
            return None
        pieces = pieces_of(self._tables, ref)
        parts = known.parts if known is not None and known.columns == columns else {}
        added = [each for each in zip(pieces, fragments, strict=True) if each[0] not in parts]
        found = self._added(ref, schema, columns, added)
        if found is None:
            return None
        parts = {piece: found[piece] if piece in found else parts[piece] for piece in pieces}
        made = pa.concat_tables([_nothing(schema), *parts.values()]).combine_chunks()
        with self._lock:
            self._versions[place] = _Version(ref, columns, parts, made)
            self._versions.move_to_end(place)
            while len(self._versions) > MOST_FILES:
                self._versions.popitem(last=False)
        return made

    def _added(
        self,
        ref: TableRef,
        schema: pa.Schema,
        columns: _Columns,
        added: Sequence[tuple[Piece, FragmentMetadata]],
    ) -> dict[Piece, pa.Table] | None:
        """The rows of some pieces of a version; None if their row ids are stored in an unknown way."""
        pieces = tuple(piece for piece, _ in added)
        identified = [self._identified(*each) for each in added]
        found, *deleted = side_by_side(
            self._tables.address,
            partial(self._contents, ref, pieces, schema, columns),
            *(partial(self._deleted_rows, ref, piece) for piece in pieces if piece.deletions is not None),
        )
        gone = iter(deleted)
        parts: dict[Piece, pa.Table] = {}
        for piece, content, ids in zip(pieces, found, identified, strict=True):
            addresses = np.arange(piece.rows, dtype=np.uint64) + (np.uint64(piece.fragment) << np.uint64(32))
            if ids is None:
                return None
            whole = content.append_column(ROW_ID, ids)
            whole = whole.append_column(ROW_ADDRESS, pa.array(addresses))
            if piece.deletions is not None:
                whole = whole.take(np.setdiff1d(np.arange(piece.rows), next(gone), assume_unique=True))
            parts[piece] = whole
        return parts

    def note(
        self, ref: TableRef, schema: pa.Schema, fragments: Sequence[FragmentMetadata], rows: pa.Table
    ) -> None:
        """Keep rows that were just written to files of a table, one fragment after the other."""
        from omnigraph.storage.files.datafiles import has_blobs

        if rows.num_rows > MOST_ROWS or rows.nbytes > MOST_BYTES or has_blobs(schema):
            return
        folder, columns, start = self._tables.uri(ref.location, ref.branch), self._columns(ref), 0
        whole = rows.select(schema.names).cast(pa.schema(_nullable(schema)))
        for fragment in fragments:
            files = tuple(name_of(file) for file in fragment.files)
            self._keep((folder, files, columns), whole.slice(start, fragment.physical_rows))
            start += fragment.physical_rows

    def _few(self, ref: TableRef) -> Sequence[FragmentMetadata] | None:
        """The fragments of a version that has few files, rows and bytes; None if it has more."""
        handle = self._tables.open(ref)
        with translated(self._tables.shown(ref.location)):
            if len(handle.fragment_ids()) > MOST_FILES:
                return None
            found = fragments_of(handle)
        sizes = (file.file_size_bytes for each in found for file in each.files)
        is_small = (
            sum(each.physical_rows for each in found) <= MOST_ROWS
            and sum(size or MOST_BYTES for size in sizes) < MOST_BYTES
        )
        return found if is_small and not any(each.overlays for each in found) else None

    def _identified(self, piece: Piece, fragment: FragmentMetadata) -> pa.Array | None:
        """The row ids of the physical rows of a piece; None if they are stored in an unknown way."""
        from omnigraph.storage.rows.row_ids import row_ids

        key = piece.folder, piece.files
        with self._lock:
            known = self._ids.get(key)
        if known is None:
            found = row_ids(fragment)
            known = None if found is None else pa.array(found.astype(np.uint64))
            with self._lock:
                self._ids[key] = known
                while len(self._ids) > 8 * MOST_FILES:
                    self._ids.popitem(last=False)
        return known

    def _contents(
        self, ref: TableRef, pieces: tuple[Piece, ...], schema: pa.Schema, columns: _Columns
    ) -> list[pa.Table]:
        """The physical rows of pieces; those that are not kept are read at once."""
        keys = [(piece.folder, piece.files, columns) for piece in pieces]
        with self._lock:
            found = {key: self._pieces[key] for key in keys if key in self._pieces}
            for key in found:
                self._pieces.move_to_end(key)
        missing = [(key, piece) for key, piece in zip(keys, pieces, strict=True) if key not in found]
        if missing:
            reader = physical_rows(self._tables, ref, [piece for _, piece in missing], schema.names)
            read = reader.read_all().select(schema.names).cast(pa.schema(_nullable(schema)))
            start = 0
            for key, piece in missing:
                found[key] = read.slice(start, piece.rows).combine_chunks()
                start += piece.rows
                self._keep(key, found[key])
        return [found[key] for key in keys]

    def _columns(self, ref: TableRef) -> _Columns:
        """The columns that a version has. One that was dropped and added again is another."""
        return tuple(column_numbers(self._tables, ref).items())

    def _keep(self, key: _Key, rows: pa.Table) -> None:
        with self._lock:
            if key not in self._pieces:
                self._pieces[key] = rows
                self._bytes += rows.nbytes
            while self._bytes > _KEPT_BYTES and len(self._pieces) > 1:
                _, dropped = self._pieces.popitem(last=False)
                self._bytes -= dropped.nbytes

    def _deleted_rows(self, ref: TableRef, piece: Piece) -> Offsets:
        """The places of the deleted rows of a piece."""
        assert piece.deletions is not None  # noqa: S101  only such pieces are asked for
        key = piece.deletions.folder, piece.deletions.name
        with self._lock:
            found = self._deleted.get(key)
        if found is None:
            found = deleted_rows(self._tables, ref, piece)
            with self._lock:
                self._deleted[key] = found
                while len(self._deleted) > MOST_FILES:
                    self._deleted.popitem(last=False)
        return found


def _nothing(schema: pa.Schema) -> pa.Table:
    """No rows, in the columns that are kept."""
    added = [pa.field(ROW_ID, pa.uint64()), pa.field(ROW_ADDRESS, pa.uint64())]
    return pa.schema(_nullable(schema) + added).empty_table()


def _nullable(schema: pa.Schema) -> list[pa.Field]:
    return [column.with_nullable(True) for column in schema]
