"""Objects that are read without being copied: on a disk the pages of a file are read when they are used."""

from __future__ import annotations

import mmap
from pathlib import Path

from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.unavailable import translated


def mapped(objects: ObjectStore, address: Address, key: str) -> memoryview | None:
    """The bytes of an object; None if there is none."""
    if address.scheme is not Scheme.LOCAL:
        found = objects.get(key)
        return None if found is None else memoryview(found.content)
    with translated(key):
        try:
            with Path(address.root, key).open("rb") as file:
                return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (FileNotFoundError, NotADirectoryError, ValueError):  # a ValueError says that the file is empty
            return None
