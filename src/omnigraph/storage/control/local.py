"""Control objects on a local disk.

A put writes a file beside the object and renames it, so a reader sees all of an object or none of it; an object is
on the disk, with the folders that name it, before its writer is told so. Only a replacement on condition keeps
others out, for the moment between looking and replacing; writers do not wait for each other, readers never.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from omnigraph.storage import layout
from omnigraph.storage.control.contents import Entry, Versioned
from omnigraph.storage.files.durability import is_on, sync, sync_folder
from omnigraph.storage.locking.filelocks import flocked
from omnigraph.storage.locking.patience import Patience
from omnigraph.storage.unavailable import translated

_LOCK: Final = "objects.lock"
_WAIT: Final = 10.0
_ATTEMPTS: Final = 200
_ABSENT: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_HALF_WRITTEN: Final = re.compile(r"#\d+$")
"""What is written beside an object until it is whole ends like this."""


class LocalObjects:
    """The objects of one graph. A token is a digest of the content."""

    def __init__(self, root: Path, wait: float = _WAIT) -> None:
        self._root = root
        self._base = str(root)
        self._wait = wait

    def get(self, key: str) -> Versioned | None:
        with translated(self._shown(key)):
            try:
                content = _read(f"{self._base}/{key}")
            except _ABSENT:
                return None
        return Versioned(content, _digest(content))

    def put(self, key: str, content: bytes) -> str:
        with translated(self._shown(key)), self._locked(fcntl.LOCK_SH):
            self._place(key, content, os.replace)
        return _digest(content)

    def hint(self, key: str, *parts: bytes | memoryview) -> None:
        with translated(self._shown(key)), self._locked(fcntl.LOCK_SH):
            self._write_beside(key, parts, os.replace, _write)

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        with translated(self._shown(key)):
            try:
                self._place(key, content, os.link)
            except FileExistsError:
                return None
        return _digest(content)

    def write_ahead(self, key: str, content: bytes) -> WrittenAhead:
        with translated(self._shown(key)):
            beside = self._beside(f"{self._base}/{key}")
            _write_synced(beside, (content,))
        return WrittenAhead(self, key, content, beside)

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        if not self.has(key):
            return None
        with translated(self._shown(key)), self._locked(fcntl.LOCK_EX):
            present = self.get(key)
            if present is None or present.token != token:
                return None
            self._place(key, content, os.replace)
        return _digest(content)

    def list(self, prefix: str) -> list[str]:
        with translated(self._shown(prefix)):
            return sorted(path.removeprefix(f"{self._base}/") for path in self._objects_below(prefix))

    def entries(self, prefix: str) -> Iterator[Entry]:
        with translated(self._shown(prefix)):
            for folder, _, names in os.walk(self._root / prefix, onerror=_unless_absent):
                below = os.path.relpath(folder, self._root)
                for name in names:
                    with contextlib.suppress(*_ABSENT):
                        found = os.stat(os.path.join(folder, name), follow_symlinks=False)
                        written = dt.datetime.fromtimestamp(found.st_mtime, dt.UTC)
                        yield Entry(name if below == "." else f"{below}/{name}", found.st_size, written)

    def delete_all(self, keys: Sequence[str]) -> None:
        folders: dict[Path, None] = {}
        with translated(self._shown("")):
            with self._locked(fcntl.LOCK_SH):
                for key in keys:
                    path = self._root / key
                    with contextlib.suppress(*_ABSENT):
                        path.unlink()
                        folders[path.parent] = None
            for folder in folders:
                sync_folder(folder, self._root)

    def prune(self, prefixes: Iterable[str]) -> None:
        for prefix in prefixes:
            for folder, _, _ in os.walk(self._root / prefix, topdown=False):
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()

    def delete(self, key: str) -> None:
        path = self._root / key
        with translated(self._shown(key)):
            if path.is_file():
                with self._locked(fcntl.LOCK_SH):
                    path.unlink(missing_ok=True)
            if path.parent.is_dir():
                sync_folder(path.parent, self._root)

    def retire(self, key: str) -> None:
        self.delete(key)

    def retire_if_match(self, key: str, token: str) -> bool:
        if not self.has(key):
            return False
        with translated(self._shown(key)), self._locked(fcntl.LOCK_EX):
            present = self.get(key)
            if present is None or present.token != token:
                return False
            path = self._root / key
            path.unlink()
            sync_folder(path.parent, self._root)
        return True

    def discard(self, key: str) -> None:
        if self.has(key):
            with translated(self._shown(key)), self._locked(fcntl.LOCK_SH), contextlib.suppress(FileNotFoundError):
                os.unlink(f"{self._base}/{key}")

    def delete_prefix(self, prefix: str) -> None:
        top = self._root / prefix
        with translated(self._shown(prefix)):
            if not top.is_dir():
                return
            for folder, _, names in os.walk(top, topdown=False, onerror=_unless_absent):
                for name in names:
                    if not self._is_lock(f"{folder}/{name}"):
                        Path(folder, name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
            sync_folder(top if top.is_dir() else top.parent, self._root)

    def exists(self, key: str) -> bool:
        with translated(self._shown(key)):
            return self.has(key) or any(True for _ in self._objects_below(key))

    def has(self, key: str) -> bool:
        with translated(self._shown(key)):
            try:
                return stat.S_ISREG(os.stat(self._shown(key)).st_mode)
            except _ABSENT:
                return False

    def _place(self, key: str, content: bytes, move: Callable[[str, str], None]) -> None:
        """Write an object and bring it and its name to the disk."""
        oldest = self._write_beside(key, (content,), move, _write_synced)
        sync_folder(_folder(f"{self._base}/{key}"), min(oldest, _folder(self._base), key=len))

    def _write_beside(
        self,
        key: str,
        parts: Sequence[bytes | memoryview],
        move: Callable[[str, str], None],
        write: Callable[[str, Sequence[bytes | memoryview]], None],
    ) -> str:
        """Write a file beside the object and give it the object's name; again, if others remove the folder.

        The nearest folder that was there before.
        """
        path = f"{self._base}/{key}"
        folder = _folder(path)
        for attempt in range(_ATTEMPTS):
            beside = self._beside(path)
            try:
                oldest = _made(folder)
                write(beside, parts)
                move(beside, path)
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            finally:
                with contextlib.suppress(*_ABSENT):
                    os.unlink(beside)
            return oldest
        raise AssertionError("the last attempt returns or raises")

    @staticmethod
    def _beside(path: str) -> str:
        """Where a file is written before it gets a name of its own."""
        import secrets

        return f"{_folder(path)}/put#{secrets.randbelow(10**18)}"

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Take the lock of `put_if_match`: shared by plain writes, alone by the one that looks and replaces. The
        wait ends, so that a stopped holder does not stop the others for good."""
        with flocked(f"{self._base}/{layout.LOCKS}/{_LOCK}", how, f"{layout.LOCKS}/{_LOCK}", Patience(self._wait)):
            yield

    def _objects_below(self, prefix: str) -> Iterator[str]:
        for folder, _, names in os.walk(self._shown(prefix.rstrip("/")), onerror=_unless_absent):
            for name in names:
                path = f"{folder}/{name}"
                if not (_HALF_WRITTEN.search(name) or self._is_lock(path)):
                    yield path

    def _is_lock(self, path: str) -> bool:
        """File locks lie among the objects, but are none."""
        return path.endswith((".lock", ".gate")) and _folder(path) == f"{self._base}/{layout.LOCKS}"

    def _shown(self, key: str) -> str:
        return f"{self._base}/{key}" if key else self._base


class WrittenAhead:
    """An object that is on the disk already, under another name."""

    def __init__(self, objects: LocalObjects, key: str, content: bytes, beside: str) -> None:
        self._objects = objects
        self._key = key
        self._content = content
        self._beside = beside

    def put_if_absent(self) -> bool:
        """Put it if there is none; False if there is one."""
        path = self._objects._shown(self._key)
        with translated(path):
            try:
                os.link(self._beside, path)
            except FileExistsError:
                return False
            except FileNotFoundError:  # a cleanup took it for a file that was left half written
                return self._objects.put_if_absent(self._key, self._content) is not None
            sync_folder(_folder(path), _folder(path))
        self.drop()
        return True

    def drop(self) -> None:
        """Remove the other name; nothing happens if it is gone."""
        with contextlib.suppress(OSError):
            os.unlink(self._beside)


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _made(folder: str) -> str:
    """Make a folder and those above it; the nearest one that was there before."""
    oldest = folder
    while not os.path.isdir(oldest) and oldest != _folder(oldest):
        oldest = _folder(oldest)
    if oldest == folder:
        return oldest
    try:
        os.makedirs(folder, exist_ok=True)
    except FileExistsError as error:  # a file, or a folder that was there and has been removed since
        code = errno.ENOENT if stat.S_ISDIR(os.stat(folder).st_mode) else errno.ENOTDIR
        raise OSError(code, os.strerror(code), folder) from error
    return oldest


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()


def _write_synced(path: str, parts: Sequence[bytes | memoryview]) -> None:
    """Write a new file and bring it to the disk."""
    _write(path, parts)
    if is_on():
        sync(path)


def _write(path: str, parts: Sequence[bytes | memoryview]) -> None:
    """Write a new file, all of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        for part in parts:
            left = memoryview(part)
            while left and (written := os.write(descriptor, left)):
                left = left[written:]
        size, wanted = os.fstat(descriptor).st_size, sum(map(len, parts))
        if size != wanted:
            raise OSError(errno.EIO, f"only {size} of {wanted} bytes were written", path)
    finally:
        os.close(descriptor)


def _unless_absent(error: OSError) -> None:
    """Something that disappears during a walk is not there; anything else is an error."""
    if not isinstance(error, _ABSENT):
        raise error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
