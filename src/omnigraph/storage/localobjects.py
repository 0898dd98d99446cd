"""Control objects on a local disk.

A put is a rename, so a reader sees all of an object or none of it. Writers take turns under a file lock, which
makes looking and replacing one step; readers never wait.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Final

import obstore
from obstore.exceptions import AlreadyExistsError
from obstore.store import LocalStore

from omnigraph.storage import layout
from omnigraph.storage.contents import Versioned
from omnigraph.storage.unavailable import translated

_LOCK: Final = "objects.lock"
_ABSENT: Final = (FileNotFoundError, IsADirectoryError, NotADirectoryError)
_HALF_WRITTEN: Final = re.compile(r"#\d+$")
"""obstore stages a put as `name#number`."""


class LocalObjects:
    """The objects of one graph. A token is a digest of the content."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @cached_property
    def _store(self) -> LocalStore:
        return LocalStore(prefix=self._root, mkdir=True)

    def get(self, key: str) -> Versioned | None:
        with translated(self._shown(key)):
            try:
                content = (self._root / key).read_bytes()
            except _ABSENT:
                return None
        return Versioned(content, _digest(content))

    def put(self, key: str, content: bytes) -> str:
        with self._writing(key):
            obstore.put(self._store, key, content)
        return _digest(content)

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        with self._writing(key):
            try:
                obstore.put(self._store, key, content, mode="create")
            except AlreadyExistsError:
                return None
        return _digest(content)

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        if not self.has(key):
            return None
        with self._writing(key):
            present = self.get(key)
            if present is None or present.token != token:
                return None
            obstore.put(self._store, key, content)
        return _digest(content)

    def list(self, prefix: str) -> list[str]:
        with translated(self._shown(prefix)):
            return sorted(str(path.relative_to(self._root)) for path in self._objects_below(prefix))

    def delete(self, key: str) -> None:
        if self.has(key):
            with self._writing(key):
                (self._root / key).unlink(missing_ok=True)

    def delete_prefix(self, prefix: str) -> None:
        if not (self._root / prefix).is_dir():
            return
        with self._writing(prefix):
            for folder, _, names in os.walk(self._root / prefix, topdown=False, onerror=_unless_absent):
                for name in names:
                    path = Path(folder, name)
                    if not self._is_lock(path):
                        path.unlink(missing_ok=True)
                with contextlib.suppress(OSError):
                    Path(folder).rmdir()

    def exists(self, key: str) -> bool:
        with translated(self._shown(key)):
            return self.has(key) or any(True for _ in self._objects_below(key))

    def has(self, key: str) -> bool:
        with translated(self._shown(key)):
            return (self._root / key).is_file()

    @contextlib.contextmanager
    def _writing(self, key: str) -> Iterator[None]:
        """Have the only turn to write."""
        folder = self._root / layout.LOCKS
        with translated(self._shown(key)):
            folder.mkdir(parents=True, exist_ok=True)
            with (folder / _LOCK).open("a") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
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


def _unless_absent(error: OSError) -> None:
    """Something that disappears during a walk is not there; anything else is an error."""
    if not isinstance(error, _ABSENT):
        raise error


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
