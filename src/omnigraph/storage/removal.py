"""Removing a whole graph from its store: a table of it, or everything."""

from __future__ import annotations

import shutil
from pathlib import Path

from omnigraph.storage.address import Address, Scheme
from omnigraph.storage.files.durability import sync_folder
from omnigraph.storage.objects import open_objects
from omnigraph.storage.unavailable import translated


def remove_table(address: Address, location: str) -> None:
    """Remove a table and all its versions."""
    open_objects(address).delete_prefix(location)


def remove_all(address: Address) -> None:
    """Remove everything at an address, locks and the rests of objects included."""
    if address.scheme is Scheme.LOCAL:
        root = Path(address.root)
        with translated(address.root):
            if root.exists():
                shutil.rmtree(root)
                sync_folder(root.parent, root.parent)
        return
    objects = open_objects(address)
    objects.delete_all([each.key for each in objects.entries("")])
