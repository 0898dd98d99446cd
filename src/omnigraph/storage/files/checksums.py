"""Checksums of Lance's files: made when a file is staged, compared when it is first read.

Lance keeps no checksums, so on a local disk the names of files carry them: that of a data file ends in
`-{checksum}.lance`, and the number that names a deletion file is one. An index has a list of checksums beside its
files. Object stores check what they keep by themselves, and nothing can be renamed there: nothing is done.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import xxhash

from omnigraph.errors import IncompleteFile, ObjectDamaged
from omnigraph.storage.files.durability import StrPath

DELETION_MARK: Final = 0x6F6D_6E69
"""The low half of a deletion file's number if the high half is its checksum; others have random numbers."""

INDEX_CHECKSUMS: Final = "checksums.json"

_MAGIC: Final = b"LANC"
_NAMED: Final = re.compile(r"-([0-9a-f]{16})\.lance$")
_LOW: Final = 2**32 - 1
_READ_AT_ONCE: Final = 1 << 16
_PIECE: Final = 1 << 18
"""Larger files are read in pieces that stay in the processor's cache: that is faster than mapping them."""


def checksum(paths: Iterable[StrPath]) -> int:
    """The checksum of files in order, 64 bits."""
    total = xxhash.xxh3_64()
    for path in paths:
        _add(total, path)
    return total.intdigest()


def checksum_of_whole(path: StrPath, size: int | None, blobs: Sequence[Path] = ()) -> int:
    """The checksum of a Lance file and its blobs, read once; IncompleteFile unless it has the size it was written
    with and ends as such files do."""
    total = xxhash.xxh3_64()
    try:
        found, end = _add(total, path)
    except FileNotFoundError:
        found, end = 0, b""
    if (size is not None and found != size) or end != _MAGIC:
        raise IncompleteFile(os.fspath(path), size, found)
    for blob in blobs:
        _add(total, blob)
    return total.intdigest()


def _add(total: xxhash.xxh3_64, path: StrPath) -> tuple[int, bytes]:
    """Add the content of a file to a checksum; its size, and its last bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        if size <= _READ_AT_ONCE:
            content = os.pread(descriptor, size, 0)
            total.update(content)
            return size, content[-len(_MAGIC) :]
        piece = bytearray(_PIECE)
        view, found, end = memoryview(piece), 0, b""
        while read := os.readv(descriptor, [piece]):
            total.update(view[:read])
            end = (end + bytes(view[max(0, read - len(_MAGIC)) : read]))[-len(_MAGIC) :]
            found += read
        return found, end
    finally:
        os.close(descriptor)


def is_whole(path: StrPath) -> bool:
    """Is there a file, and does it end as Lance's files do? One of which the end was not written does not."""
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        return os.pread(file, len(_MAGIC), max(0, os.fstat(file).st_size - len(_MAGIC))) == _MAGIC
    finally:
        os.close(file)


def require_whole(path: StrPath, size: int | None) -> None:
    """Raise IncompleteFile unless a Lance file has the size it was written with and ends as such files do."""
    try:
        found = os.stat(path).st_size
    except FileNotFoundError:
        found = 0
    if (size is not None and found != size) or not is_whole(path):
        raise IncompleteFile(os.fspath(path), size, found)


def name_by_content(path: str, size: int | None) -> str:
    """Rename a data file that was just written, and the folder of its blobs, so that the name carries the checksum
    of both; IncompleteFile unless the file is whole."""
    stem, blobs = path.removesuffix(".lance"), blob_files(path)
    named = f"{stem}-{checksum_of_whole(path, size, blobs):016x}"
    if blobs:
        os.rename(stem, named)
    os.rename(path, f"{named}.lance")
    return f"{named}.lance"


def blob_files(path: StrPath) -> list[Path]:
    """The files in which the blobs of a data file lie, in order."""
    folder = os.fspath(path).removesuffix(".lance")
    try:
        return sorted(Path(folder).iterdir()) if stat.S_ISDIR(os.stat(folder).st_mode) else []
    except FileNotFoundError:
        return []


def deletion_number(path: Path) -> int:
    """The number under which a deletion file is kept: its checksum and the mark."""
    return (checksum([path]) & _LOW) << 32 | DELETION_MARK


def named_checksum(name: str) -> int | None:
    """The checksum that the name of a data file carries, of the file and its blobs; None if it carries none."""
    named = _NAMED.search(name)
    return None if named is None else int(named[1], 16)


def is_deletion_of(name: str, content_checksum: int) -> bool:
    """Does the name of a deletion file fit its content? One of an object store fits any."""
    number = int(name.rpartition(".")[0].rpartition("-")[2])
    return number & _LOW != DELETION_MARK or number >> 32 == content_checksum & _LOW


def verify_data(path: Path) -> None:
    """Raise ObjectDamaged if a data file is missing or is not what its name says."""
    named = named_checksum(path.name)
    _require_there(path)
    if named is not None and checksum([path, *blob_files(path)]) != named:
        raise ObjectDamaged(str(path), "its content is not what was written")


def verify_deletion(path: Path) -> None:
    """Raise ObjectDamaged if a deletion file is missing or is not what its number says."""
    number = int(path.stem.rpartition("-")[2])
    _require_there(path)
    if number & _LOW == DELETION_MARK and deletion_number(path) != number:
        raise ObjectDamaged(str(path), "its content is not what was written")


def write_index_checksums(folder: Path, files: Iterable[str]) -> Path:
    """List the checksums of an index's files beside them."""
    listed = folder / INDEX_CHECKSUMS
    listed.write_text(json.dumps(_checksums(folder, files), sort_keys=True))
    return listed


def verify_index(folder: Path) -> None:
    """Raise ObjectDamaged if the files of an index are not those of its list, where it has one."""
    listed = folder / INDEX_CHECKSUMS
    if not listed.exists():
        return
    try:
        expected = dict(json.loads(listed.read_bytes()))
    except (ValueError, TypeError, RecursionError) as error:
        raise ObjectDamaged(str(listed), f"it cannot be read: {error}") from error
    if expected != _checksums(folder, expected):
        raise ObjectDamaged(
            str(folder), "its content is not what was written", "remove it and build the index again"
        )


def _checksums(folder: Path, files: Iterable[str]) -> dict[str, str]:
    return {name: f"{checksum([folder / name]):016x}" for name in files if (folder / name).is_file()}


def _require_there(path: Path) -> None:
    if not path.is_file():
        raise ObjectDamaged(str(path), "it is missing")
