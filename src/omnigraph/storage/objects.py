"""Small control objects on any store: whole or not there, with compare-and-swap.

One implementation over obstore. A token names one content of one object: the store's ETag where the store can
compare it, a digest of the content on local disks, where the comparison is made under a file lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import LocalStore, MemoryStore, S3Store

from omnigraph.errors import StorageUnavailable, StoreUnsupported
from omnigraph.storage.address import Address, Scheme

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Versioned:
    """An object's content and the token that names it."""

    content: bytes
    token: str


class ObjectStore(Protocol):
    """What the rest of the system may do with control objects."""

    def get(self, key: str) -> Versioned | None:
        """The object, or None if there is none."""

    def put(self, key: str, content: bytes) -> str:
        """Write the object, whatever was there; its new token."""

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        """Write the object if there is none; None if there is one."""

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        """Replace the content the token names; None if the object has changed or gone."""

    def list(self, prefix: str) -> list[str]:
        """The keys below a prefix, sorted."""

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens if there is none."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove everything below a prefix."""

    def exists(self, key: str) -> bool:
        """Is there an object of that key, or any object below it?"""

    def has(self, key: str) -> bool:
        """Is there an object of exactly that key?"""


def open_objects(address: Address) -> ObjectStore:
    """The control objects of a graph."""
    if address.scheme is Scheme.LOCAL:
        return LocalObjects(Path(address.root))
    if address.scheme is Scheme.MEMORY:
        return RemoteObjects(_memory_store(address), address.prefix, str(address))
    return RemoteObjects(_s3_store(address), address.prefix, str(address))


_MEMORY: dict[str, MemoryStore] = {}
_MEMORY_LOCK = threading.Lock()


def _memory_store(address: Address) -> MemoryStore:
    with _MEMORY_LOCK:
        return _MEMORY.setdefault(address.bucket, MemoryStore())


def _s3_store(address: Address) -> S3Store:
    options = dict(address.options)
    client: dict[str, Any] = {}
    if "allow_http" in options:
        client["allow_http"] = options.pop("allow_http").lower() in ("true", "1")
    known = {k: v for k, v in options.items() if k.startswith("aws_")}
    try:
        return S3Store(address.bucket, config=known, client_options=client)  # type: ignore[arg-type]
    except (BaseError, ValueError) as error:
        raise StorageUnavailable(str(address), _first_line(error)) from error


class RemoteObjects:
    """Objects on a store that compares ETags itself: S3 and memory."""

    def __init__(self, store: S3Store | MemoryStore, prefix: str, shown: str) -> None:
        self._store = store
        self._prefix = f"{prefix}/" if prefix else ""
        self._shown = shown

    def _call(self, action: Callable[[], T]) -> T:
        """Run one operation; what the store cannot do becomes a StorageUnavailable."""
        try:
            return action()
        except (FileNotFoundError, AlreadyExistsError, PreconditionError):
            raise
        except (BaseError, OSError) as error:
            raise StorageUnavailable(self._shown, _first_line(error)) from error

    def get(self, key: str) -> Versioned | None:
        try:
            found = self._call(lambda: obstore.get(self._store, self._prefix + key))
            return Versioned(bytes(found.bytes()), found.meta["e_tag"] or "")
        except FileNotFoundError:
            return None

    def put(self, key: str, content: bytes) -> str:
        return self._call(lambda: obstore.put(self._store, self._prefix + key, content))["e_tag"] or ""

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        try:
            written = self._call(lambda: obstore.put(self._store, self._prefix + key, content, mode="create"))
        except (AlreadyExistsError, PreconditionError):
            return None
        return written["e_tag"] or ""

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        try:
            written = self._call(
                lambda: obstore.put(self._store, self._prefix + key, content, mode={"e_tag": token})
            )
        except (PreconditionError, FileNotFoundError):
            return None
        return written["e_tag"] or ""

    def list(self, prefix: str) -> list[str]:
        pages = self._call(lambda: list(obstore.list(self._store, f"{self._prefix}{prefix}/")))
        return sorted(entry["path"].removeprefix(self._prefix) for page in pages for entry in page)

    def delete(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._call(lambda: obstore.delete(self._store, self._prefix + key))

    def delete_prefix(self, prefix: str) -> None:
        keys = [self._prefix + key for key in self.list(prefix)]
        if keys:
            self._call(lambda: obstore.delete(self._store, keys))

    def exists(self, key: str) -> bool:
        return (bool(key) and self.has(key)) or self._is_folder(key)

    def _is_folder(self, key: str) -> bool:
        prefix = f"{self._prefix}{key}/" if key else self._prefix
        return bool(self._call(lambda: next(iter(obstore.list(self._store, prefix, chunk_size=1)), None)))

    def has(self, key: str) -> bool:
        try:
            self._call(lambda: obstore.head(self._store, self._prefix + key))
        except FileNotFoundError:
            return False
        return True


class LocalObjects:
    """Objects on a local disk. A put is a rename, so readers see all of an object or none of it."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._opened: LocalStore | None = None

    def _store(self) -> LocalStore:
        if self._opened is None:
            with self._translated():
                self._opened = LocalStore(prefix=self._root, mkdir=True)
        return self._opened

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn what the disk refuses into a StorageUnavailable that says why."""
        try:
            yield
        except (FileNotFoundError, AlreadyExistsError):
            raise
        except (BaseError, OSError) as error:
            raise StorageUnavailable(str(self._root), _first_line(error)) from error

    def get(self, key: str) -> Versioned | None:
        path = self._root / key
        with self._translated():
            try:
                content = path.read_bytes()
            except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
                return None
        return Versioned(content, _digest(content))

    def put(self, key: str, content: bytes) -> str:
        with self._translated():
            obstore.put(self._store(), key, content)
        return _digest(content)

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        try:
            with self._translated():
                obstore.put(self._store(), key, content, mode="create")
        except AlreadyExistsError:
            return None
        return _digest(content)

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        with self._translated(), self._exclusive():
            present = self.get(key)
            if present is None or present.token != token:
                return None
            return self.put(key, content)

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        folder = self._root / "__locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "objects.lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield

    def list(self, prefix: str) -> list[str]:
        folder = self._root / prefix
        with self._translated():
            found = [p for p in folder.rglob("*") if p.is_file() and not _is_temporary(p)]
        return sorted(str(p.relative_to(self._root)) for p in found)

    def delete(self, key: str) -> None:
        with self._translated():
            (self._root / key).unlink(missing_ok=True)

    def delete_prefix(self, prefix: str) -> None:
        with self._translated(), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._root / prefix)

    def exists(self, key: str) -> bool:
        path = self._root / key
        with self._translated():
            return path.is_file() or any(p.is_file() for p in path.rglob("*"))

    def has(self, key: str) -> bool:
        return (self._root / key).is_file()


def require_conditional_put(objects: ObjectStore, address: Address, probe: str) -> None:
    """Refuse a store on which two writers could both win: one that ignores conditions on a put."""
    key = f"__locks/probe-{probe}"
    try:
        first = objects.put_if_absent(key, b"1")
        second = objects.put_if_absent(key, b"2")
        stale = objects.put_if_match(key, b"3", "0" * 32)
    finally:
        objects.delete(key)
    if first is None or second is not None or stale is not None:
        raise StoreUnsupported(str(address), address.endpoint or address.scheme.value)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_temporary(path: Path) -> bool:
    """A half-written object: obstore stages a put as `name#number`."""
    return "#" in path.name


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
