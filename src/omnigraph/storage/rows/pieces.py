"""The immutable pieces of a table: fragments of data files that never change, and the rows deleted from them.

A piece is known by its files, whatever version or native branch refers to it. Rows are read by their physical
places, deleted ones included, so that a row has the same place in every version that has the piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileReader

from omnigraph.errors import ObjectDamaged
from omnigraph.records import dataclass
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.fragments import fragments_of
from omnigraph.storage.files.names import name_of
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.unavailable import translated
from omnigraph.storage.versions import TableRef, TableVersions

Offsets = npt.NDArray[np.int32]
_ROWS_AT_A_TIME: Final = 16_384


@dataclass(frozen=True, slots=True)
class Deletions:
    """A deletion file: its name, how many rows it names, and the folder of the table that holds it."""

    name: str
    rows: int
    folder: str = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Piece:
    """A fragment of one version: the names of its files, which tell it from all others, its physical rows, and
    which of those are deleted. The folder is that of the table that holds its first file."""

    fragment: int
    files: tuple[str, ...]
    rows: int
    deletions: Deletions | None
    folder: str = field(compare=False, repr=False)

    @property
    def live(self) -> int:
        """How many of its rows the version has."""
        return self.rows - (0 if self.deletions is None else self.deletions.rows)


def pieces_of(tables: TableVersions, ref: TableRef) -> tuple[Piece, ...]:
    """The pieces of a version, in the order in which it is read."""
    handle = tables.open(ref)
    with translated(tables.shown(ref.location)):
        own = tables.uri(ref.location, ref.branch)
        bases = {number: base.path for number, base in handle.base_paths().items()}
        return tuple(_piece(fragment, own, bases) for fragment in fragments_of(handle))


def _piece(fragment: Any, own: str, bases: dict[int, str]) -> Piece:
    files = [name_of(file) for file in fragment.files]
    files += [f"overlay {overlay.committed_version} {name_of(overlay.data_file)}" for overlay in fragment.overlays]
    deletions = None
    if fragment.deletion_file is not None:
        told = fragment.deletion_file.asdict()
        suffix = "bin" if told["file_type"] == "bitmap" else "arrow"
        name = f"{fragment.id}-{told['read_version']}-{told['id']}.{suffix}"
        holder = own if told["base_id"] is None else bases[told["base_id"]]
        deletions = Deletions(name, int(told["num_deleted_rows"]), holder)
    base = fragment.files[0].base_id
    folder = own if base is None else bases[base]
    return Piece(int(fragment.id), tuple(files), int(fragment.physical_rows), deletions, folder)


def column_numbers(tables: TableVersions, ref: TableRef) -> dict[str, int]:
    """The numbers by which the files of a table know its columns: one that was dropped and added has another."""
    with translated(tables.shown(ref.location)):
        return {found.name(): int(found.id()) for found in tables.open(ref).lance_schema.fields()}


def deleted_rows(tables: TableVersions, ref: TableRef, piece: Piece) -> Offsets:
    """The places of the deleted rows of a piece, ascending."""
    from omnigraph.storage.files.deletions import deleted_rows_of

    if piece.deletions is None:
        return np.zeros(0, dtype=np.int32)
    tables.verify_fragments(ref, [piece.fragment])
    content = _deletion_content(tables, piece.deletions)
    if content is None:
        found = _deleted_by_scan(tables, ref, piece)
    else:
        with translated(tables.shown(ref.location)):
            found = deleted_rows_of(content, is_bitmap=piece.deletions.name.endswith(".bin"))
    if len(found) != piece.deletions.rows:
        raise ObjectDamaged(
            f"{tables.shown(ref.location)}/_deletions/{piece.deletions.name}",
            f"it names {len(found)} rows, and the version says {piece.deletions.rows}",
        )
    return found


def _deletion_content(tables: TableVersions, deletions: Deletions) -> bytes | None:
    """The bytes of a deletion file; None if it lies outside the graph, or where objects cannot be read."""
    root = f"{tables.address.lance_root}/"
    folder = deletions.folder.removeprefix("file://")
    if tables.address.scheme is Scheme.MEMORY or not folder.startswith(root):
        return None
    found = tables.objects.get(f"{folder.removeprefix(root)}/_deletions/{deletions.name}")
    return None if found is None else found.content


def _deleted_by_scan(tables: TableVersions, ref: TableRef, piece: Piece) -> Offsets:
    handle = tables.open(ref)
    with translated(tables.shown(ref.location)):
        scanner = handle.scanner(
            columns=[], fragments=_fragments(handle, [piece]), with_row_id=True, include_deleted_rows=True
        )
        is_null = scanner.to_table().column("_rowid").is_null().combine_chunks()
    return np.flatnonzero(np.asarray(is_null.to_numpy(zero_copy_only=False))).astype(np.int32)


def physical_rows(
    tables: TableVersions, ref: TableRef, pieces: Sequence[Piece], columns: Sequence[str]
) -> pa.RecordBatchReader:
    """Columns of some pieces of a version, one piece after the other, deleted rows included."""
    handle = tables.open(ref)
    if len(pieces) == len(handle.fragment_ids()):
        tables.verified(ref)
    else:
        tables.verify_fragments(ref, {piece.fragment for piece in pieces})
    has_deletions = any(piece.deletions is not None for piece in pieces)
    with translated(tables.shown(ref.location)):
        scanner = handle.scanner(
            columns=list(columns),
            fragments=_fragments(handle, pieces),
            batch_size=_ROWS_AT_A_TIME,
            with_row_id=has_deletions,
            include_deleted_rows=has_deletions,
        )
        return tables.readable(ref, scanner.to_reader())


def _fragments(handle: LanceDataset, pieces: Sequence[Piece]) -> list[Any]:
    known = {fragment.fragment_id: fragment for fragment in handle.get_fragments()}
    return [known[piece.fragment] for piece in pieces]


def rows_at(tables: TableVersions, piece: Piece, offsets: Offsets, columns: Sequence[str]) -> pa.Table:
    """Some rows of a piece, deleted or not, also of one that no version has any more, while its file is there.

    The columns have to lie in the first file of the piece.
    """
    path = f"{piece.folder}/data/{piece.files[0]}"
    with translated(path):
        reader = LanceFileReader(path, storage_options=tables.options, columns=list(columns))
        return reader.take_rows(offsets.tolist()).to_table()


def numbered_rows(
    tables: TableVersions, ref: TableRef, numbers: npt.NDArray[np.int64], columns: Sequence[str]
) -> pa.Table:
    """Some rows of a version, by their numbers in the order in which it is read; no index is used."""
    handle = tables.open(ref)
    fragments = fragments_of(handle)
    ends = np.cumsum([one.num_rows for one in fragments])
    touched = {fragments[place].id for place in np.searchsorted(ends, numbers, side="right").tolist()}
    tables.verify_fragments(ref, touched, LOOKUP_BYTES)
    with translated(tables.shown(ref.location)):
        return handle.take(numbers.tolist(), columns=list(columns))


def addresses_of(tables: TableVersions, ref: TableRef, ids: pa.Array) -> tuple[pa.Array, npt.NDArray[np.int64]]:
    """Those of some ids that a version has, and the addresses of their rows, through the index of the ids."""
    from omnigraph.storage.rows.filters import sql_literal

    handle = tables.verified(ref, LOOKUP_BYTES)
    wanted = ", ".join(sql_literal(each) for each in ids.unique().drop_null())
    if not wanted:
        return ids[:0], np.zeros(0, dtype=np.int64)
    with translated(tables.shown(ref.location)):
        found = handle.scanner(columns=["id"], filter=f"`id` in ({wanted})", with_row_address=True).to_table()
    return found["id"].combine_chunks(), found["_rowaddr"].to_numpy().astype(np.int64)
