"""Which files a copy needs, and which of them are missing at the target.

The files of a version are copied before the file that makes the version. So a version that is at the target has
all its files there, and only versions that are missing have to be read to know which files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from omnigraph.errors import IncompleteFile, ObjectDamaged
from omnigraph.maintenance.copying.extent import Extent
from omnigraph.maintenance.copying.transfer import Edit, Piece, read_small
from omnigraph.storage import layout
from omnigraph.storage.files.checksums import INDEX_CHECKSUMS
from omnigraph.storage.files.transfers import FileStore
from omnigraph.storage.files.versionfiles import Reference, VersionReader, relocated, relocated_transaction

_DATA: Final = "/data/"
_INDICES: Final = "/_indices/"
_HELD: Final = 64 << 20
"""How many bytes of version files are held until they are written; the others are read again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What has to be copied: files that versions refer to, then the files that make the versions.

    ``kept`` counts the files that are at the target already.
    """

    content: tuple[Piece, ...]
    versions: tuple[Piece, ...]
    kept: int

    @property
    def keys(self) -> set[str]:
        """All files that are to be copied."""
        return {key for piece in (*self.content, *self.versions) for key in piece.keys}


def make_plan(
    extent: Extent, source: FileStore, sizes: Mapping[str, int], present: Mapping[str, int], root: str | None
) -> Plan:
    """Compare what an extent consists of with the files that are at the target.

    ``sizes`` lists the files of the source, ``present`` those of the target. With a ``root`` the copy is a graph
    that lies there; without one it is a backup, whose files are the same as those of the source. ObjectDamaged
    names a file that is missing from the source, or has another size than its version says.
    """
    listed = _Listed(sizes)
    content: dict[str, Piece] = {key: listed.piece(Reference(key), None) for key in extent.objects}
    versions: list[Piece] = []
    kept, room = 0, _HELD
    for (location, native), numbers in extent.versions.items():
        if native is not None:
            entry = layout.branch_entry(location, native)
            content[entry] = listed.piece(Reference(entry), None)
        keys = [layout.version_file(location, native, number) for number in numbers]
        missing = [key for key in keys if key not in present]
        kept += len(keys) - len(missing)
        move = None if root is None or native is None else partial(_moved, location, root)
        reader = VersionReader(location, layout.native_prefix(location, native))
        for key, found in read_small(source, missing):
            room -= len(found)
            versions.append(Piece((key,), (len(found),), move, found if room > 0 else None))
            try:
                references = list(reader.references(found))
            except (ValueError, KeyError) as error:
                raise ObjectDamaged(key, str(error)) from error
            for reference in references:
                if listed.is_cleaned(reference):
                    continue
                edit = None if move is None else _edit(reference.key, location, root)
                content.setdefault(reference.key, listed.piece(reference, edit))
    pieces = {piece.keys: piece for piece in content.values()}
    waiting = [piece for piece in pieces.values() if not _is_there(piece, present)]
    kept += sum(len(keys) for keys in pieces) - sum(len(piece.keys) for piece in waiting)
    return Plan(tuple(waiting), tuple(versions), kept)


def require_copied(written: Mapping[str, int], present: Mapping[str, int], shown: str) -> None:
    """Raise IncompleteFile unless the target has every file that was copied, with all its bytes."""
    for key, size in written.items():
        if present.get(key) != size:
            raise IncompleteFile(f"{shown}/{key}", size, present.get(key, 0))


def _moved(location: str, root: str, content: bytes) -> bytes:
    return relocated(content, location, root)


def _edit(key: str, location: str, root: str | None) -> Edit | None:
    """The change of a file that names an address: a fork's transaction."""
    if root is None or "/_transactions/" not in key or "/tree/" not in key:
        return None
    place = root
    return lambda content: relocated_transaction(content, location, place)


def _is_there(piece: Piece, present: Mapping[str, int]) -> bool:
    if piece.edit is not None:
        return piece.keys[0] in present
    return all(present.get(key) == size for key, size in zip(piece.keys, piece.sizes, strict=True))


class _Listed:
    """The files of the source, with those that lie in the folders of indexes and of blobs."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._folders: dict[str, list[str]] = {}
        for key in sorted(sizes):
            folder = _folder(key)
            if folder is not None:
                self._folders.setdefault(folder, []).append(key)

    def is_cleaned(self, reference: Reference) -> bool:
        """Is it a transaction that Lance has cleaned up? Each version has its own transaction inside, too."""
        return "/_transactions/" in reference.key and reference.key not in self._sizes

    def piece(self, reference: Reference, edit: Edit | None) -> Piece:
        """What is copied for a reference: a file, a data file with its blobs, or an index as a whole."""
        folder = _folder(reference.key)
        if folder is not None:
            self._require(reference)
            keys = self._folders.get(folder, [])
            if not keys:
                raise ObjectDamaged(folder, "it is missing", "build the index again, and copy then")
            return self._of(sorted(keys, key=lambda key: (not key.endswith(INDEX_CHECKSUMS), key)), None)
        self._require(reference)
        blobs = self._folders.get(reference.key.removesuffix(".lance") + "/", [])
        return self._of([reference.key, *blobs] if _DATA in reference.key else [reference.key], edit)

    def _of(self, keys: Iterable[str], edit: Edit | None) -> Piece:
        found = tuple(keys)
        return Piece(found, tuple(self._sizes[key] for key in found), edit)

    def _require(self, reference: Reference) -> None:
        if reference.key.endswith("/"):
            return
        size = self._sizes.get(reference.key)
        if size is None:
            raise ObjectDamaged(reference.key, "it is missing")
        if reference.size is not None and size != reference.size:
            raise ObjectDamaged(reference.key, f"it has {size} of its {reference.size} bytes")


def _folder(key: str) -> str | None:
    """The folder of the index, or of the blobs, that a file lies in; None for other files."""
    for mark in (_INDICES, _DATA):
        table, found, inner = key.rpartition(mark)
        name, slash, _ = inner.partition("/")
        if found and slash:
            return f"{table}{found}{name}/"
    return None
