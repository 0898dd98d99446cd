"""Moving files from one store to another: several at a time, each in blocks, each compared with its checksum."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Final

import xxhash

from omnigraph.errors import ObjectDamaged
from omnigraph.storage.files.checksums import INDEX_CHECKSUMS, is_deletion_of, named_checksum
from omnigraph.storage.files.transfers import FileStore

_THREADS: Final = 8
_WAITING: Final = 64

Edit = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Piece:
    """Files that are copied together: one, or a data file with its blobs, whose checksum covers all of them.

    ``edit`` makes the content of the copy from that of a small file; without it the copy is the same. ``content``
    is that of a small file, if it has been read before.
    """

    keys: tuple[str, ...]
    sizes: tuple[int, ...]
    edit: Edit | None = None
    content: bytes | None = field(default=None, repr=False)

    @property
    def bytes(self) -> int:
        return sum(self.sizes)


@dataclass(frozen=True, slots=True)
class CopyEvent:
    """The progress of a copy: how many files and bytes of the current step are there, and since when it runs."""

    step: str
    done: int
    files: int
    bytes: int
    total_bytes: int
    seconds: float


Listener = Callable[[CopyEvent], None]


def transfer(
    step: str, source: FileStore, target: FileStore, pieces: Sequence[Piece], listener: Listener | None
) -> dict[str, int]:
    """Copy files, and wait until they would survive a power cut; the sizes of the copies, by key.

    ObjectDamaged if a file is missing or is not what its name says; then nothing of it is kept.
    """
    written: dict[str, int] = {}
    started, done = time.monotonic(), 0
    total, of = sum(len(piece.keys) for piece in pieces), sum(piece.bytes for piece in pieces)
    for copied in _in_threads(lambda piece: _copy(source, target, piece), pieces):
        written |= copied
        done += sum(copied.values())
        if listener is not None:
            listener(CopyEvent(step, len(written), total, done, of, time.monotonic() - started))
    target.settle(written)
    return written


def read_small(source: FileStore, keys: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The contents of small files, several of which are read at a time, in the order of their keys."""
    with ThreadPoolExecutor(_THREADS) as pool:
        for start in range(0, len(keys), _WAITING):
            some = keys[start : start + _WAITING]
            yield from zip(some, pool.map(lambda key: _content(source, key), some), strict=True)


def _content(source: FileStore, key: str) -> bytes:
    return b"".join(source.blocks(key))


def _in_threads(work: Callable[[Piece], dict[str, int]], pieces: Iterable[Piece]) -> Iterator[dict[str, int]]:
    """Work on pieces in several threads; the first failure stops the rest."""
    left = iter(pieces)
    with ThreadPoolExecutor(_THREADS) as pool:
        running = {pool.submit(work, piece) for piece in itertools.islice(left, _WAITING)}
        try:
            while running:
                finished, running = wait(running, return_when=FIRST_COMPLETED)
                running |= {pool.submit(work, piece) for piece in itertools.islice(left, len(finished))}
                for future in finished:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


def _copy(source: FileStore, target: FileStore, piece: Piece) -> dict[str, int]:
    """Copy the files of a piece. The last one is written only if the checksums fit."""
    if piece.edit is not None or piece.content is not None:
        (key,) = piece.keys
        content = _content(source, key) if piece.content is None else piece.content
        content = content if piece.edit is None else piece.edit(content)
        target.write(key, [content], len(content))
        return {key: len(content)}
    check = _Check(piece)
    for key, size in zip(piece.keys, piece.sizes, strict=True):
        target.write(key, check.passed(key, source.blocks(key)), size)
    return dict(zip(piece.keys, piece.sizes, strict=True))


class _Check:
    """Compares files with their checksums while they pass."""

    def __init__(self, piece: Piece) -> None:
        self._last = piece.keys[-1]
        self._named = named_checksum(piece.keys[0]) if "/data/" in piece.keys[0] else None
        self._all = xxhash.xxh3_64()
        self._listed: dict[str, str] = {}

    def passed(self, key: str, blocks: Iterable[bytes]) -> Iterator[bytes]:
        """The blocks of a file; ObjectDamaged instead of its end if it is not what was written."""
        own, listing = xxhash.xxh3_64(), b""
        is_list = key.endswith(f"/{INDEX_CHECKSUMS}")
        for block in blocks:
            own.update(block)
            self._all.update(block)
            listing += block if is_list else b""
            yield block
        if is_list:
            self._listed = _checksums(key, listing)
        if not self._fits(key, own.intdigest()):
            raise ObjectDamaged(key, "its content is not what was written")

    def _fits(self, key: str, checksum: int) -> bool:
        folder, _, name = key.rpartition("/")
        if folder.endswith("/_deletions"):
            return is_deletion_of(name, checksum)
        if key == self._last and self._named is not None:
            return self._all.intdigest() == self._named
        return self._listed.get(name, f"{checksum:016x}") == f"{checksum:016x}"


def _checksums(key: str, listing: bytes) -> dict[str, str]:
    try:
        return dict(json.loads(listing))
    except (ValueError, TypeError, RecursionError) as error:
        raise ObjectDamaged(key, f"it cannot be read: {error}") from error
