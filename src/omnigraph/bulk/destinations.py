"""Where tasks put the data files of a table before they are committed."""

from __future__ import annotations

from omnigraph.manifest.branches import Branch
from omnigraph.manifest.repository import Repository
from omnigraph.storage import layout
from omnigraph.storage.files.datafiles import Destination
from omnigraph.write.base import Base


def destination(repository: Repository, base: Base, branch: Branch, table_key: str) -> Destination:
    """Where the files of a table go that are to be committed to a branch."""
    pin = base.pin(table_key)
    native = branch.native
    folder = f"{repository.address.lance_root}/{layout.native_prefix(pin.location, native)}"
    version = str(base.open(table_key).data_storage_version)
    return Destination(table_key, repository.address, folder, base.schema(table_key), version)
