"""Control objects on stores that compare ETags themselves: S3 and memory."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import MemoryStore, S3Store

from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.contents import Entry, Versioned
from omnigraph.storage.unavailable import translated, unavailable

if TYPE_CHECKING:
    from obstore import ObjectMeta, PutMode
    from obstore.store import RetryConfig

_MEMORY: dict[str, MemoryStore] = {}
_MEMORY_LOCK = threading.Lock()

_RETIRED: Final = b"Here was an object that was removed.\n"
"""The content of an object that counts as absent."""

_AT_ONCE: Final = 1_000
"""How many objects one request deletes."""

_RETIRED_TAG: Final = f'"{hashlib.md5(_RETIRED, usedforsecurity=False).hexdigest()}"'
"""The ETag of such an object on most stores: a listing then tells what it is. On others its content is read."""


class RemoteObjects:
    """The objects of one graph. A token is the store's ETag."""

    def __init__(self, address: Address) -> None:
        self._store = _memory_store(address) if address.scheme is Scheme.MEMORY else s3_store(address)
        self._prefix = f"{address.prefix}/" if address.prefix else ""
        self._shown = str(address)

    def get(self, key: str) -> Versioned | None:
        found = self._get(key)
        return None if found is None or found.content == _RETIRED else found

    def _get(self, key: str) -> Versioned | None:
        with translated(self._shown):
            try:
                found = obstore.get(self._store, self._prefix + key)
                return Versioned(bytes(found.bytes()), found.meta["e_tag"] or "")
            except FileNotFoundError:
                return None

    def put(self, key: str, content: bytes) -> str:
        with translated(self._shown):
            return self._put(key, content, "overwrite")

    def hint(self, key: str, *parts: bytes | memoryview) -> None:
        self.put(key, b"".join(parts))

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        with translated(self._shown):
            try:
                return self._put(key, content, "create")
            except (AlreadyExistsError, PreconditionError):
                present = self._get(key)
        if present is None or present.content != _RETIRED:
            return None
        return self.put_if_match(key, content, present.token)

    def write_ahead(self, key: str, content: bytes) -> PutLater:
        return PutLater(self, key, content)

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        with translated(self._shown):
            try:
                return self._put(key, content, {"e_tag": token})
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                return None

    def _put(self, key: str, content: bytes, mode: PutMode) -> str:
        return obstore.put(self._store, self._prefix + key, content, mode=mode)["e_tag"] or ""

    def list(self, prefix: str) -> list[str]:
        with translated(self._shown):
            pages = list(obstore.list(self._store, self._folder(prefix)))
        entries = (entry for page in pages for entry in page)
        return sorted(entry["path"].removeprefix(self._prefix) for entry in entries if self._is_there(entry))

    def _is_there(self, entry: ObjectMeta) -> bool:
        """Is an object that the store lists more than the rest of one that was removed?"""
        if entry["size"] != len(_RETIRED):
            return True
        return entry["e_tag"] != _RETIRED_TAG and self.get(entry["path"].removeprefix(self._prefix)) is not None

    def entries(self, prefix: str) -> Iterator[Entry]:
        with translated(self._shown):
            for page in obstore.list(self._store, self._folder(prefix)):
                for found in page:
                    yield Entry(found["path"].removeprefix(self._prefix), found["size"], found["last_modified"])

    def delete_all(self, keys: Sequence[str]) -> None:
        with translated(self._shown):
            for start in range(0, len(keys), _AT_ONCE):
                some = [self._prefix + key for key in keys[start : start + _AT_ONCE]]
                with contextlib.suppress(FileNotFoundError):
                    obstore.delete(self._store, some)

    def prune(self, prefixes: Iterable[str]) -> None:
        """Object stores have no folders."""

    def delete(self, key: str) -> None:
        with translated(self._shown), contextlib.suppress(FileNotFoundError):
            obstore.delete(self._store, self._prefix + key)

    def discard(self, key: str) -> None:
        self.delete(key)

    def retire(self, key: str) -> None:
        """The object is replaced on condition, not deleted: a request for that which arrives late finds another
        object, and does nothing to it."""
        while (present := self.get(key)) is not None:
            if self.retire_if_match(key, present.token):
                return

    def retire_if_match(self, key: str, token: str) -> bool:
        return self.put_if_match(key, _RETIRED, token) is not None

    def delete_prefix(self, prefix: str) -> None:
        keys = [self._prefix + key for key in self.list(prefix)]
        if keys:
            with translated(self._shown):
                obstore.delete(self._store, keys)

    def exists(self, key: str) -> bool:
        return (bool(key) and self.has(key.rstrip("/"))) or self._has_below(key)

    def has(self, key: str) -> bool:
        with translated(self._shown):
            try:
                found = obstore.head(self._store, self._prefix + key)
            except FileNotFoundError:
                return False
        return self._is_there(found)

    def _has_below(self, prefix: str) -> bool:
        with translated(self._shown):
            return any(obstore.list(self._store, self._folder(prefix), chunk_size=1))

    def _folder(self, prefix: str) -> str:
        """The prefix of everything below, which no sibling of a longer name shares."""
        inner = prefix.strip("/")
        return f"{self._prefix}{inner}/" if inner else self._prefix


class PutLater:
    """An object that will be put: a bucket has no place where it could wait."""

    def __init__(self, objects: RemoteObjects, key: str, content: bytes) -> None:
        self._objects = objects
        self._key = key
        self._content = content

    def put_if_absent(self) -> bool:
        """Put it if there is none; False if there is one."""
        return self._objects.put_if_absent(self._key, self._content) is not None

    def drop(self) -> None:
        """Nothing was written."""


def _memory_store(address: Address) -> MemoryStore:
    with _MEMORY_LOCK:
        return _MEMORY.setdefault(address.bucket, MemoryStore())


def s3_store(address: Address) -> S3Store:
    """A client for the bucket of an address."""
    options = dict(address.options)
    client: dict[str, Any] = {}
    if "allow_http" in options:
        client["allow_http"] = options.pop("allow_http").lower() in ("true", "1")
    known = {k: v for k, v in options.items() if k.startswith("aws_")}
    try:
        retries = _retries(options)
        return S3Store(address.bucket, config=known, client_options=client, retry_config=retries)  # type: ignore[arg-type]
    except (BaseError, ValueError) as error:
        raise unavailable(str(address), error) from error


def _retries(options: Mapping[str, str]) -> RetryConfig:
    """How often and how long requests are repeated: the options by which Lance's own clients are told as well."""
    retries: RetryConfig = {}
    if "client_max_retries" in options:
        retries["max_retries"] = int(options["client_max_retries"])
    if "client_retry_timeout" in options:
        retries["retry_timeout"] = dt.timedelta(seconds=float(options["client_retry_timeout"]))
    return retries
