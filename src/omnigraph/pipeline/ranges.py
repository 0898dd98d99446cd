"""Reading lines out of the middle of files, on this machine or in a bucket, without Hadoop."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, Final, Protocol

import obstore
import pyarrow as pa

from omnigraph.errors import SourceUnusable, StorageUnavailable
from omnigraph.storage.address import parse_address
from omnigraph.storage.remoteobjects import s3_store
from omnigraph.storage.unavailable import translated
from omnigraph.write.records import LONGEST_LINE

_MORE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Lines:
    """Whole lines of a file. ``overlong`` is the length of one more line behind them that is too long to hold."""

    data: bytes
    overlong: int | None = None


class _Seekable(Protocol):
    """A file of which parts can be read."""

    def read_at(self, start: int, count: int) -> bytes:
        """Up to that many bytes from a place; fewer only at the end."""


class _LocalFile:
    def __init__(self, name: str) -> None:
        try:
            self._file: BinaryIO = open(name.removeprefix("file://"), "rb")  # noqa: SIM115, PTH123  closed with the task
        except OSError as error:
            raise SourceUnusable(name, error.strerror or str(error)) from error

    def read_at(self, start: int, count: int) -> bytes:
        self._file.seek(start)
        return self._file.read(count)


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


def _opened(name: str, options: Mapping[str, str]) -> _Seekable:
    return _RemoteFile(name, options) if name.startswith("s3://") else _LocalFile(name)


def read_range(name: str, options: Mapping[str, str], start: int, stop: int) -> Lines:
    """The lines whose first byte lies in the range: every line of a file is in exactly one of its ranges."""
    file = _opened(name, options)
    before = 1 if start else 0
    data = file.read_at(start - before, stop - start + before)
    if before:
        end = data.find(b"\n")
        data = b"" if end < 0 else data[end + 1 :]
    if not data or data.endswith(b"\n"):
        return Lines(data)
    return _finished(file, data, stop)


def _finished(file: _Seekable, data: bytes, stop: int) -> Lines:
    """The data with the rest of their last line, which goes on behind the range."""
    rest = bytearray()
    tail = len(data) - (data.rfind(b"\n") + 1)
    length, at = tail, stop
    while chunk := file.read_at(at, _MORE):
        end = chunk.find(b"\n")
        piece = chunk if end < 0 else chunk[: end + 1]
        length += len(piece)
        if length <= LONGEST_LINE + 1:
            rest += piece
        if end >= 0:
            length -= 1
            break
        at += len(chunk)
    if length > LONGEST_LINE:
        whole, started = data[: len(data) - tail], data[len(data) - tail :]
        is_comment = started.lstrip().startswith(b"//")
        return Lines(whole + b"//\n") if is_comment else Lines(whole, length)
    return Lines(data + bytes(rest))


def unpacked(name: str, options: Mapping[str, str], compression: str, size: int) -> Iterator[Lines]:
    """The lines of a compressed file, in portions of about that size."""
    with open_file(name, options) as raw:
        try:
            stream = pa.CompressedInputStream(raw, compression)
            yield from _portions(stream, size)
        except (pa.ArrowException, OSError) as error:
            raise SourceUnusable(name, f"it cannot be unpacked as {compression}: {error}") from error


def _portions(stream: pa.NativeFile, size: int) -> Iterator[Lines]:
    held = b""
    while chunk := stream.read(size):
        held += chunk
        end = held.rfind(b"\n") + 1
        if end:
            yield Lines(held[:end])
            held = held[end:]
        elif len(held) > LONGEST_LINE:
            length, held = _skipped(stream, held)
            yield Lines(b"", length)
    if held:
        yield Lines(held)


def _skipped(stream: pa.NativeFile, held: bytes) -> tuple[int, bytes]:
    """How long a line is of which only the start is held, and what follows it."""
    length = len(held)
    while chunk := stream.read(_MORE):
        end = chunk.find(b"\n")
        if end >= 0:
            return length + end, chunk[end + 1 :]
        length += len(chunk)
    return length, b""


def open_file(name: str, options: Mapping[str, str]) -> pa.NativeFile:
    """A file as Arrow reads it."""
    try:
        if not name.startswith("s3://"):
            return pa.OSFile(name.removeprefix("file://"), "rb")
        bucket, _, key = name.removeprefix("s3://").partition("/")
        reader = obstore.open_reader(s3_store(parse_address(f"s3://{bucket}", options)), key)
        return pa.PythonFile(io.BufferedReader(_Raw(reader), buffer_size=_MORE), mode="r")
    except FileNotFoundError as error:
        raise SourceUnusable(name, "it is gone") from error
    except OSError as error:
        raise StorageUnavailable(name, str(error)) from error


class _Raw(io.RawIOBase):
    """An object in a bucket as Python knows files."""

    def __init__(self, reader: obstore.ReadableFile) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, target: memoryview) -> int:  # type: ignore[override]
        data = bytes(self._reader.read(len(target)))
        target[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._reader.seek(offset, whence))

    def tell(self) -> int:
        return int(self._reader.tell())
