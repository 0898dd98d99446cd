"""Removing the files of an attempt that lost a race, before anything referred to them.

An attempt is discarded only if its sidecar was never written: then no transaction of it can ever be committed, and
no other process knows the names of its files. What cannot be removed does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from omnigraph.errors import OmniError
from omnigraph.storage import layout
from omnigraph.storage.address import Scheme
from omnigraph.storage.files.datafiles import remove_file
from omnigraph.storage.stage.changes import Staged, new_data_files, new_deletion_files
from omnigraph.storage.tables import Tables


def discard_change(tables: Tables, change: Staged, *, has_blobs: bool) -> None:
    """Remove the files of a staged change of rows.

    On a disk deletion files stay: their names are made from their content, so that another writer who deletes the
    same rows may have staged, or committed, the same file.
    """
    discard_data(tables, change.location, change.branch, new_data_files(change), has_blobs=has_blobs)
    if tables.address.scheme is not Scheme.LOCAL:
        folder = layout.native_prefix(change.location, change.branch)
        with suppress(OmniError):
            for name in new_deletion_files(change):
                tables.objects.delete(f"{folder}/_deletions/{name}")


def discard_data(
    tables: Tables, location: str, branch: str | None, names: Iterable[str], *, has_blobs: bool
) -> None:
    """Remove data files of a table by name."""
    folder = f"{layout.native_prefix(location, branch)}/data"
    with suppress(OmniError):
        for name in names:
            remove_file(tables.objects, f"{folder}/{name}", has_blobs=has_blobs)
