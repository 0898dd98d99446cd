"""Small control objects on any store: whole or not there, with compare-and-swap."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from omnigraph.errors import StoreUnsupported
from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.control.contents import Entry, Versioned
from omnigraph.storage.control.local import LocalObjects


class Ahead(Protocol):
    """An object that waits to be put. It is put or dropped once."""

    def put_if_absent(self) -> bool:
        """Put it if there is none; False if there is one."""

    def drop(self) -> None:
        """Leave nothing of it. Nothing happens if it was put."""


class ObjectStore(Protocol):
    """What the rest of the system may do with control objects."""

    def get(self, key: str) -> Versioned | None:
        """The object, or None if there is none."""

    def put(self, key: str, content: bytes) -> str:
        """Write the object, whatever was there; its new token."""

    def hint(self, key: str, *parts: bytes | memoryview) -> None:
        """Write an object that readers can do without, part by part, and do not wait until it is on the disk."""

    def put_if_absent(self, key: str, content: bytes) -> str | None:
        """Write the object if there is none; None if there is one."""

    def write_ahead(self, key: str, content: bytes) -> Ahead:
        """Do as much of a `put_if_absent` as can be done before its time has come."""

    def put_if_match(self, key: str, content: bytes, token: str) -> str | None:
        """Replace the content the token names; None if the object has changed or gone."""

    def list(self, prefix: str) -> list[str]:
        """The keys below a prefix, sorted; all of them below the empty one."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """Everything below a prefix in no certain order, half-written files and files of tables included."""

    def delete(self, key: str) -> None:
        """Remove the object; nothing happens if there is none."""

    def retire(self, key: str) -> None:
        """Remove an object whose key may be used again: no late request of the removal harms the next one."""

    def retire_if_match(self, key: str, token: str) -> bool:
        """Retire the content the token names; False if the object has changed or gone."""

    def discard(self, key: str) -> None:
        """Remove an object that does no harm if a power cut brings it back."""

    def delete_prefix(self, prefix: str) -> None:
        """Remove everything below a prefix."""

    def delete_all(self, keys: Sequence[str]) -> None:
        """Remove objects or files of tables, on a disk in the order of their keys; what is gone stays gone."""

    def prune(self, prefixes: Iterable[str]) -> None:
        """Remove the empty folders at and below prefixes under which nothing is written any more."""

    def exists(self, key: str) -> bool:
        """Is there an object of that key, or any object below it?"""

    def has(self, key: str) -> bool:
        """Is there an object of exactly that key?"""


def open_objects(address: Address) -> ObjectStore:
    """The control objects of a graph."""
    if address.scheme is Scheme.LOCAL:
        return LocalObjects(Path(address.root))
    from omnigraph.storage.control.remote import RemoteObjects

    return RemoteObjects(address)


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
