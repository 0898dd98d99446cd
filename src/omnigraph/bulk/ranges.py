"""Reading ranges of files on disk or in a bucket, as whole lines, without Hadoop."""

from __future__ import annotations

import io
from codecs import BOM_UTF8
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, Protocol

import obstore
import pyarrow as pa

from omnigraph.bulk.meters import note
from omnigraph.errors import SourceUnusable
from omnigraph.formats.jsonl.records import LONGEST_LINE
from omnigraph.storage.address import Address, parse_address
from omnigraph.storage.control.remote import s3_store
from omnigraph.storage.unavailable import translated

_CHUNK_BYTES: Final = 1 << 20
"""How much of a file is read at a time where the end of a line is not known, …"""
_LINE_END_BYTES: Final = 1 << 14
"""… and how much is read first, as most lines are short."""
_PORTION_BYTES: Final = 8 << 20
"""How much of a file on disk is read at a time: more would not stay in the processor's caches."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a file. ``overlong`` is the length of a line after them that is too long to be read."""

    data: bytes
    overlong: int | None = None


class _Seekable(Protocol):
    """A file of which ranges can be read."""

    def read_at(self, start: int, count: int) -> bytes:
        """Up to that many bytes from a position; fewer only at the end of the file."""

    def close(self) -> None:
        """Close the file."""


class _LocalFile:
    def __init__(self, name: str) -> None:
        try:
            self._file: BinaryIO = open(name.removeprefix("file://"), "rb")  # noqa: SIM115, PTH123  `close` closes it
        except OSError as error:
            raise SourceUnusable(name, error.strerror or str(error)) from error

    def read_at(self, start: int, count: int) -> bytes:
        self._file.seek(start)
        return self._file.read(count)

    def close(self) -> None:
        self._file.close()


class _RemoteFile:
    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        bucket, _, self._key = name.removeprefix("s3://").partition("/")
        self._name = name
        self._store = s3_store(parse_address(f"s3://{bucket}", options))
        with translated(name):
            try:
                self._size = int(obstore.head(self._store, self._key)["size"])
            except FileNotFoundError as error:
                raise SourceUnusable(name, "it is gone") from error

    def read_at(self, start: int, count: int) -> bytes:
        stop = min(self._size, start + count)
        if stop <= start:
            return b""
        with translated(self._name):
            return bytes(obstore.get_range(self._store, self._key, start=start, end=stop))

    def close(self) -> None:
        pass


def _opened(name: str, options: Mapping[str, str]) -> _Seekable:
    return _RemoteFile(name, options) if name.startswith("s3://") else _LocalFile(name)


class _LongLine:
    """A line whose end is not known yet, read chunk by chunk. Bytes beyond the limit are counted, not kept."""

    def __init__(self, start: bytes, limit: int) -> None:
        self.is_complete = False
        self._limit = limit
        self._kept = bytearray()
        self._length = 0
        self._is_blank = True
        self._ends_with_return = False
        self.add(start)

    def add(self, chunk: bytes) -> bytes:
        """Add the part of a chunk that belongs to the line; the rest of the chunk."""
        piece, newline, rest = chunk.partition(b"\n")
        if len(self._kept) <= self._limit + 1:
            self._kept += piece
        self._length += len(piece)
        self._is_blank = self._is_blank and not piece.strip()
        self._ends_with_return = piece.endswith(b"\r") if piece else self._ends_with_return
        self.is_complete = bool(newline)
        return rest

    def after(self, before: bytes | memoryview = b"") -> Lines:
        """The lines before it, and the line. A long blank line or comment becomes a short comment."""
        length = self._length - self._ends_with_return
        if length <= self._limit:
            return Lines(b"".join([before, self._kept, b"\n" if self.is_complete else b""]))
        is_comment = self._is_blank or self._kept.lstrip().startswith(b"//")
        return Lines(b"".join([before, b"//\n"])) if is_comment else Lines(bytes(before), length)


def read_ranges(name: str, options: Mapping[str, str], start: int, stop: int) -> Iterator[Lines]:
    """The lines whose first byte lies in the range, in portions; those of an object in a bucket at once."""
    step = stop - start if name.startswith("s3://") else _PORTION_BYTES
    for at in range(start, stop, max(1, step)):
        yield read_range(name, options, at, min(stop, at + step))
        note(size=min(stop, at + step) - at)


def read_range(
    name: str,
    options: Mapping[str, str],
    start: int,
    stop: int,
    *,
    longest: int = LONGEST_LINE,
    chunk_bytes: int = _LINE_END_BYTES,
) -> Lines:
    """The lines whose first byte lies in the range: every line of a file is in exactly one of its ranges."""
    found = _read_range(name, options, start, stop, longest, chunk_bytes)
    return found if start else _without_mark(found)


def _without_mark(first: Lines) -> Lines:
    """The first lines of a file without its byte-order mark."""
    return replace(first, data=first.data.removeprefix(BOM_UTF8))


def _read_range(
    name: str, options: Mapping[str, str], start: int, stop: int, longest: int, chunk_bytes: int
) -> Lines:
    with closing(_opened(name, options)) as file:
        before = 1 if start else 0
        data = file.read_at(start - before, stop - start + before)
        first = data.find(b"\n") + 1 if before else 0
        if before and not first:
            return Lines(b"")
        if first == len(data) or data.endswith(b"\n"):
            return Lines(data[first:])
        cut = data.rfind(b"\n") + 1
        line, at = _LongLine(data[cut:], longest), stop
        while not line.is_complete and (chunk := file.read_at(at, chunk_bytes)):
            line.add(chunk)
            at += len(chunk)
            chunk_bytes = min(2 * chunk_bytes, _CHUNK_BYTES)
        return line.after(memoryview(data)[first:cut])


def read_bytes(name: str, options: Mapping[str, str], start: int, stop: int) -> bytes:
    """Some bytes of a file on disk or in a bucket."""
    with closing(_opened(name, options)) as file:
        return file.read_at(start, stop - start)


def read_part(address: Address, key: str, start: int, stop: int) -> bytes:
    """Some bytes of an object of a graph on disk or in a bucket."""
    return read_bytes(f"{address.lance_root}/{key}", address.options, start, stop)


def unpacked(
    name: str,
    options: Mapping[str, str],
    compression: str,
    size: int,
    *,
    longest: int = LONGEST_LINE,
    chunk_bytes: int = _CHUNK_BYTES,
) -> Iterator[Lines]:
    """The lines of a compressed file, in portions of about that size."""
    with open_file(name, options) as raw:
        try:
            stream = pa.CompressedInputStream(raw, compression)
            before = 0
            for number, lines in enumerate(_portions(stream, size, longest, chunk_bytes)):
                yield lines if number else _without_mark(lines)
                note(size=raw.tell() - before)
                before = raw.tell()
        except (pa.ArrowException, OSError) as error:
            raise SourceUnusable(name, f"it cannot be unpacked as {compression}: {error}") from error


def _portions(stream: pa.NativeFile, size: int, longest: int, chunk_bytes: int) -> Iterator[Lines]:
    held = b""
    while chunk := stream.read(size):
        held += chunk
        end = held.rfind(b"\n") + 1
        if end:
            yield Lines(held[:end])
            held = held[end:]
        if len(held) > longest:
            line, held = _LongLine(held, longest), b""
            while not line.is_complete and (chunk := stream.read(chunk_bytes)):
                held = line.add(chunk)
            yield line.after()
    if held:
        yield Lines(held)


def open_file(name: str, options: Mapping[str, str]) -> pa.NativeFile:
    """A file on disk or in a bucket, for Arrow's readers."""
    with translated(name):
        try:
            if not name.startswith("s3://"):
                return pa.OSFile(name.removeprefix("file://"), "rb")
            bucket, _, key = name.removeprefix("s3://").partition("/")
            reader = obstore.open_reader(s3_store(parse_address(f"s3://{bucket}", options)), key)
            return pa.PythonFile(io.BufferedReader(_RawObject(name, reader), buffer_size=_CHUNK_BYTES), mode="r")
        except FileNotFoundError as error:
            raise SourceUnusable(name, "it is gone") from error


class _RawObject(io.RawIOBase):
    """An object in a bucket as a raw file of Python."""

    def __init__(self, name: str, reader: obstore.ReadableFile) -> None:
        self._name = name
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        with translated(self._name):
            data = bytes(self._reader.read(len(target)))
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())
