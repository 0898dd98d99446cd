"""Blobs: the bytes of one property of one node or edge, read as a file, from any position."""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
from lance import LanceDataset

from omnigraph.errors import BlobNotFound, InvalidArgument
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.entities import entity_key
from omnigraph.storage.files.verification import LOOKUP_BYTES
from omnigraph.storage.rows.filters import sql_literal
from omnigraph.storage.tables import Tables
from omnigraph.storage.unavailable import translated

PIECE: Final = 4 << 20
"""How many bytes are read at once, at most."""
_ETAG: Final = b"omnigraph/blob-etag/v1\0"

ReadRange = Callable[[int, int], bytes]
"""The bytes from a position on, so many of them; both lie within the blob."""


@dataclass(frozen=True, slots=True)
class BlobCell:
    """Which blob: the table of its type, the id of its node or edge, and the property."""

    table_key: str
    id: str
    property: str

    def as_json(self) -> dict[str, Any]:
        kind, _, name = self.table_key.partition(":")
        return {"entity": kind, "type": name, "id": self.id, "property": self.property}


class Blob(io.RawIOBase):
    """The bytes of a blob as a binary file that is only read. What it reads does not change while it is open.

    ``size`` is how many bytes it has, ``etag`` is another text whenever the bytes are others, and
    ``graph_commit_id`` names the state of the graph that it is read from.
    """

    def __init__(
        self, cell: BlobCell, size: int, etag: str, graph_commit_id: str | None, read_range: ReadRange
    ) -> None:
        super().__init__()
        self.cell = cell
        self.size = size
        self.etag = etag
        self.graph_commit_id = graph_commit_id
        self._read_range = read_range
        self._position = 0

    def __repr__(self) -> str:
        shown = self.cell
        return f"<Blob {shown.property} of {shown.table_key} '{shown.id}', {self.size} bytes>"

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        self._require_open()
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a position, which may lie behind the end."""
        self._require_open()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.size}.get(whence)
        if base is None:
            raise ValueError(f"{whence} is not a place to seek from")
        if base + offset < 0:
            raise ValueError(f"position {base + offset} lies before the beginning")
        self._position = base + offset
        return self._position

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        read = self.read_range(self._position, min(len(view), PIECE))
        view[: len(read)] = read
        self._position += len(read)
        return len(read)

    def readall(self) -> bytes:
        found = self.read_range(self._position, max(0, self.size - self._position))
        self._position += len(found)
        return found

    def read(self, size: int | None = -1, /) -> bytes:
        """So many bytes, or all that are left; fewer only at the end."""
        if size is None or size < 0:
            return self.readall()
        found = self.read_range(self._position, size)
        self._position += len(found)
        return found

    def read_range(self, start: int, length: int) -> bytes:
        """The bytes from a position on, without moving to it; fewer if the blob ends before."""
        self._require_open()
        end = min(start + length, self.size)
        pieces = [self._read_range(at, min(PIECE, end - at)) for at in range(start, end, PIECE)]
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def as_json(self) -> dict[str, Any]:
        return {
            **self.cell.as_json(),
            "size": self.size,
            "etag": self.etag,
            "graph_commit_id": self.graph_commit_id,
        }

    def _require_open(self) -> None:
        if self.closed:
            raise ValueError("the blob is closed")


def blob_cell(snapshot: Snapshot, type_name: str, entity_id: str, name: str) -> BlobCell:
    """The blob that a caller named; InvalidArgument if the property is none, or no blob."""
    table_key = entity_key(snapshot.catalog, type_name)
    entity = snapshot.entity(table_key)
    prop = entity.properties.get(name)
    if prop is None:
        raise InvalidArgument("property", f"{entity.name} has no property '{name}'")
    if not prop.type.is_blob:
        raise InvalidArgument("property", f"{entity.name}.{name} is no Blob; read it by a query, or as an entity")
    return BlobCell(table_key, entity_id, name)


def open_blob(tables: Tables, snapshot: Snapshot, cell: BlobCell) -> Blob:
    """The bytes of a blob at one state of the graph; BlobNotFound if there are none."""
    pin = snapshot.tables.get(cell.table_key)
    if pin is None or not pin.row_count:
        raise BlobNotFound(cell.table_key, cell.id, cell.property, False)
    handle = tables.verified(pin.ref, LOOKUP_BYTES)
    shown = tables.shown(pin.location)
    with translated(shown):
        where = f"id = {sql_literal(pa.scalar(cell.id))}"
        rows = handle.scanner(["id"], filter=where, with_row_address=True).to_table()
        addresses = rows["_rowaddr"].to_pylist()
        found = handle.take_blobs(cell.property, addresses=addresses, buffer_size=0) if addresses else []
    if not found:
        raise BlobNotFound(cell.table_key, cell.id, cell.property, False)
    if found[0] is None:
        raise BlobNotFound(cell.table_key, cell.id, cell.property, True)
    blob = found[0]
    etag = _etag(handle, pin.location, addresses[0], cell.property)

    def read_range(start: int, length: int) -> bytes:
        with translated(shown):
            return bytes(blob.read_range(start, length))

    return Blob(cell, blob.size(), etag, snapshot.graph_commit_id, read_range)


def _etag(handle: LanceDataset, location: str, address: int, name: str) -> str:
    """What tells the bytes of a blob from others: the files that its row is in, which never change, and its place
    in them. It stays the same when other rows are written."""
    fragment = handle.get_fragment(address >> 32)
    files = [] if fragment is None else [file.path for file in fragment.data_files()]
    told = json.dumps([location, files, address & 0xFFFFFFFF, name])
    return hashlib.sha256(_ETAG + told.encode()).hexdigest()[:32]
