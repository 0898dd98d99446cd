"""Files of any size on local disks and in buckets: listed with their sizes, read and written in blocks."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

import obstore

from omnigraph.errors import InvalidAddress, ObjectDamaged
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.files.durability import sync_files
from omnigraph.storage.unavailable import translated

BLOCK: Final = 4 << 20
"""How many bytes of a file are held at a time. Files of up to this size are sent to a bucket by one request."""

_PART: Final = 8 << 20
_PARTS: Final = 2


class FileStore(Protocol):
    """The files below one address."""

    def sizes(self) -> dict[str, int]:
        """The sizes of all files, by key."""

    def blocks(self, key: str) -> Iterator[bytes]:
        """The content of a file; ObjectDamaged if there is none."""

    def write(self, key: str, blocks: Iterable[bytes], size: int) -> None:
        """Write a file of a known size. A reader finds all of it or none of it."""

    def delete(self, key: str) -> None:
        """Remove a file; nothing happens if there is none."""

    def settle(self, keys: Iterable[str]) -> None:
        """Wait until files that were written would survive a power cut."""


def open_files(address: Address) -> FileStore:
    """The files below an address; InvalidAddress for one whose files only Lance can reach."""
    if address.scheme is Scheme.LOCAL:
        return LocalFiles(Path(address.root))
    if address.scheme is Scheme.MEMORY:
        raise InvalidAddress(str(address), "a graph in memory cannot be copied, only one on a disk or in a bucket")
    return BucketFiles(address)


class LocalFiles:
    """The files below a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def sizes(self) -> dict[str, int]:
        found: dict[str, int] = {}
        with translated(str(self._root)):
            self._add(self._root, "", found)
        return found

    def _add(self, folder: Path, prefix: str, found: dict[str, int]) -> None:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    self._add(Path(entry.path), f"{prefix}{entry.name}/", found)
                    continue
                with contextlib.suppress(FileNotFoundError):
                    found[prefix + entry.name] = entry.stat().st_size

    def blocks(self, key: str) -> Iterator[bytes]:
        with translated(str(self._root / key)):
            try:
                file = (self._root / key).open("rb")
            except FileNotFoundError:
                raise ObjectDamaged(str(self._root / key), "it is missing") from None
            with file:
                while block := file.read(BLOCK):
                    yield block

    def write(self, key: str, blocks: Iterable[bytes], size: int) -> None:
        path = self._root / key
        beside = path.parent / f"copy#{secrets.randbelow(10**18)}"
        with translated(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                with beside.open("xb") as file:
                    for block in blocks:
                        file.write(block)
                found = beside.stat().st_size
                if found != size:
                    raise OSError(errno.EIO, f"it has {found} bytes, not {size}", str(path))
                beside.rename(path)
            finally:
                beside.unlink(missing_ok=True)

    def delete(self, key: str) -> None:
        path = self._root / key
        with translated(str(path)):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                path.parent.rmdir()

    def settle(self, keys: Iterable[str]) -> None:
        sync_files([self._root / key for key in keys], self._root)


class BucketFiles:
    """The objects below a prefix of a bucket."""

    def __init__(self, address: Address) -> None:
        self._store = s3_store(address)
        self._prefix = f"{address.prefix}/" if address.prefix else ""
        self._shown = str(address)

    def sizes(self) -> dict[str, int]:
        with translated(self._shown):
            pages = obstore.list(self._store, self._prefix or None)
            return {entry["path"].removeprefix(self._prefix): entry["size"] for page in pages for entry in page}

    def blocks(self, key: str) -> Iterator[bytes]:
        with translated(f"{self._shown}/{key}"):
            try:
                found = obstore.get(self._store, self._prefix + key)
            except FileNotFoundError:
                raise ObjectDamaged(f"{self._shown}/{key}", "it is missing") from None
            for block in found.stream(min_chunk_size=BLOCK):
                yield bytes(block)

    def write(self, key: str, blocks: Iterable[bytes], size: int) -> None:
        with translated(f"{self._shown}/{key}"):
            counted = _Counted(blocks)
            if size <= BLOCK:
                content = b"".join(counted)
                counted.require(size, key)
                obstore.put(self._store, self._prefix + key, content)
                return
            obstore.put(self._store, self._prefix + key, counted, chunk_size=_PART, max_concurrency=_PARTS)
            if counted.bytes != size:
                obstore.delete(self._store, self._prefix + key)
            counted.require(size, key)

    def delete(self, key: str) -> None:
        with translated(f"{self._shown}/{key}"), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, self._prefix + key)

    def settle(self, keys: Iterable[str]) -> None:
        """A bucket keeps what it has acknowledged."""


class _Counted:
    """Blocks, and how many bytes have passed."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks = iter(blocks)
        self.bytes = 0

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> bytes:
        block = next(self._blocks)
        self.bytes += len(block)
        return block

    def require(self, size: int, key: str) -> None:
        if self.bytes != size:
            raise OSError(errno.EIO, f"it has {self.bytes} bytes, not {size}", key)
