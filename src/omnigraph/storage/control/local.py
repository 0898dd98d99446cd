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
import secrets
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
        self._wait = wait

    def get(self, key: str) -> Versioned | None:
        with translated(self._shown(key)):
            try:
                content = (self._root / key).read_bytes()
            except _ABSENT:
                return None
        return Versioned(content, _digest(content))

    def put(self, key: str, content: bytes) -> str:
        with translated(self._shown(key)), self._locked(fcntl.LOCK_SH):
            self._place(key, content, os.replace)
        return _digest(content)

    def hint(self, key: str, content: bytes) -> None:
        with translated(self._shown(key)), self._locked(fcntl.LOCK_SH):
            self._write_beside(key, content, os.replace, _write)

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        with translated(self._shown(key)):
            try:
                self._place(key, content, os.link)
            except FileExistsError:
                return None
        return _digest(content)

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
            return sorted(str(path.relative_to(self._root)) for path in self._objects_below(prefix))

    def entries(self, prefix: str) -> Iterator[Entry]:
        with translated(self._shown(prefix)):
            for folder, _, names in os.walk(self._root / prefix, onerror=_unless_absent):
                below = os.path.relpath(folder, self._root)
                for name in names:
                    with contextlib.suppress(*_ABSENT):
                        found = os.stat(os.path.join(folder, name), follow_symlinks=False)  # noqa: PTH116, PTH118
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

    def discard(self, key: str) -> None:
        if self.has(key):
            with translated(self._shown(key)), self._locked(fcntl.LOCK_SH):
                (self._root / key).unlink(missing_ok=True)

    def delete_prefix(self, prefix: str) -> None:
        top = self._root / prefix
        with translated(self._shown(prefix)):
            if not top.is_dir():
                return
            for folder, _, names in os.walk(top, topdown=False, onerror=_unless_absent):
                for name in names:
                    path = Path(folder, name)
                    if not self._is_lock(path):
                        path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()
            sync_folder(top if top.is_dir() else top.parent, self._root)

    def exists(self, key: str) -> bool:
        with translated(self._shown(key)):
            return self.has(key) or any(True for _ in self._objects_below(key))

    def has(self, key: str) -> bool:
        with translated(self._shown(key)):
            return (self._root / key).is_file()

    def _place(self, key: str, content: bytes, move: Callable[[Path, Path], None]) -> None:
        """Write an object and bring it and its name to the disk."""
        oldest = self._write_beside(key, content, move, _write_synced)
        below = min(oldest, self._root.parent, key=lambda folder: len(folder.parts))
        sync_folder((self._root / key).parent, below)

    def _write_beside(
        self,
        key: str,
        content: bytes,
        move: Callable[[Path, Path], None],
        write: Callable[[Path, bytes], None],
    ) -> Path:
        """Write a file beside the object and give it the object's name; again, if others remove the folder.

        The nearest folder that was there before.
        """
        path = self._root / key
        for attempt in range(_ATTEMPTS):
            beside = path.parent / f"put#{secrets.randbelow(10**18)}"
            try:
                oldest = _made(path.parent)
                write(beside, content)
                move(beside, path)
            except FileNotFoundError:
                if attempt == _ATTEMPTS - 1:
                    raise
                continue
            finally:
                with contextlib.suppress(*_ABSENT):
                    beside.unlink()
            return oldest
        raise AssertionError("the last attempt returns or raises")

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        """Take the lock of `put_if_match`: shared by plain writes, alone by the one that looks and replaces. The
        wait ends, so that a stopped holder does not stop the others for good."""
        path = self._root / layout.LOCKS / _LOCK
        with flocked(path, how, f"{layout.LOCKS}/{_LOCK}", Patience(self._wait)):
            yield

    def _objects_below(self, prefix: str) -> Iterator[Path]:
        for folder, _, names in os.walk(self._root / prefix, onerror=_unless_absent):
            for name in names:
                path = Path(folder, name)
                if not (_HALF_WRITTEN.search(name) or self._is_lock(path)):
                    yield path

    def _is_lock(self, path: Path) -> bool:
        """File locks lie among the objects, but are none."""
        return path.parent == self._root / layout.LOCKS and path.suffix in (".lock", ".gate")

    def _shown(self, key: str) -> str:
        return str(self._root / key)


def _made(folder: Path) -> Path:
    """Make a folder and those above it; the nearest one that was there before."""
    oldest = folder
    while not oldest.is_dir() and oldest != oldest.parent:
        oldest = oldest.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:  # a file, or a folder that was there and has been removed since
        code = errno.ENOENT if stat.S_ISDIR(folder.stat().st_mode) else errno.ENOTDIR
        raise OSError(code, os.strerror(code), str(folder)) from error
    return oldest


def _write_synced(path: Path, content: bytes) -> None:
    """Write a new file and bring it to the disk."""
    _write(path, content)
    if is_on():
        sync(path)


def _write(path: Path, content: bytes) -> None:
    """Write a new file, all of it."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        left = memoryview(content)
        while left and (written := os.write(descriptor, left)):
            left = left[written:]
        size = os.fstat(descriptor).st_size
        if size != len(content):
            raise OSError(errno.EIO, f"only {size} of {len(content)} bytes were written", str(path))
    finally:
        os.close(descriptor)


def _unless_absent(error: OSError) -> None:
    """Something that disappears during a walk is not there; anything else is an error."""
    if not isinstance(error, _ABSENT):
        raise error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
