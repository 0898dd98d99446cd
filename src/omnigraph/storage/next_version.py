"""The file that makes the next version of a table on an object store, computed without asking the store.

Before Lance commits to an object store it lists the table's versions, up to a thousand of them, to find out if
there are newer ones. Here it commits to a copy of the table in a scratch folder that has one version and no rows.
The file that comes out is the next version of the table itself, and the caller puts it there if there is none.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import lance
from lance import LanceDataset, LanceOperation, Transaction

from omnigraph.storage import layout
from omnigraph.storage.handles import TableRef

MOST_FRAGMENTS: Final = 1_000
"""Of a table with more fragments the file of a version is larger than the listing that is saved."""

_LARGEST: Final = 1 << 20
"""Nor is a file remembered that has more bytes."""

_COMPUTED: Final = (
    LanceOperation.Append,
    LanceOperation.Overwrite,
    LanceOperation.Update,
    LanceOperation.Delete,
    LanceOperation.Rewrite,
)
"""Operations for which Lance looks at little more than the file of the version before."""

_REMEMBERED: Final = 64
_TABLE: Final = "table"


def is_computed(transaction: Transaction) -> bool:
    """Is it an operation of which the next version can be computed from the file of this one?"""
    return isinstance(transaction.operation, _COMPUTED)


def next_version(ref: TableRef, current: bytes, transaction: Transaction) -> bytes | None:
    """The content of the file that makes the version after this one, given the content of the file of this one.

    None if Lance needs more than that, such as the data files, or if there is no room for a scratch folder.
    """
    with suppress(OSError, ValueError, RuntimeError):
        return _computed(ref, current, transaction)
    return None


def _computed(ref: TableRef, current: bytes, transaction: Transaction) -> bytes:
    import tempfile

    following = replace(ref, version=ref.version + 1)
    with tempfile.TemporaryDirectory(prefix="omnigraph-") as scratch:
        present, made = (
            Path(scratch, layout.version_file(_TABLE, ref.branch, each.version)) for each in (ref, following)
        )
        present.parent.mkdir(parents=True)
        present.write_bytes(current)
        folder = Path(scratch, layout.native_prefix(_TABLE, ref.branch))
        LanceDataset.commit(lance.dataset(str(folder), version=ref.version), transaction, max_retries=0)
        return made.read_bytes()


class VersionFiles:
    """The contents of the version files that this process made last, one for each table and branch."""

    def __init__(self) -> None:
        self._made: OrderedDict[tuple[str, str | None], tuple[int, bytes]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, ref: TableRef) -> bytes | None:
        """The content of the file of a version, if it is remembered."""
        with self._lock:
            version, content = self._made.get((ref.location, ref.branch), (None, None))
        return content if version == ref.version else None

    def forget(self, location: str, branch: str | None) -> None:
        """A branch of a table is gone, or versions of it are."""
        with self._lock:
            self._made.pop((location, branch), None)

    def keep(self, ref: TableRef, content: bytes) -> None:
        """Remember the content of the file of the newest version of a table."""
        with self._lock:
            self._made.pop((ref.location, ref.branch), None)
            if len(content) > _LARGEST:
                return
            self._made[ref.location, ref.branch] = (ref.version, content)
            if len(self._made) > _REMEMBERED:
                self._made.popitem(last=False)
