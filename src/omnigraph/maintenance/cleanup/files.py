"""What lies in the folder of a table: the files of its trunk and of each of its native branches."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Final
from urllib.parse import unquote

from omnigraph.storage import layout
from omnigraph.storage.control.contents import Entry
from omnigraph.storage.objects import ObjectStore

VERSIONS: Final = "_versions"
KINDS: Final = ("_transactions", "_indices", "_deletions", "data")
"""The folders of a tree in which files lie that versions refer to, in the order in which they are emptied."""

_LONG_AGO: Final = dt.datetime.min.replace(tzinfo=dt.UTC)
_HINT: Final = "latest_version_hint.json"
_TREE: Final = re.compile(rf"tree/(.+?\.[0-9a-z]{{26}})/({VERSIONS}|{'|'.join(KINDS)}|_refs)/")
"""A native branch's name ends with its incarnation."""


@dataclass(slots=True)
class TreeFiles:
    """The files of the trunk, whose ``native`` is None, or of one native branch.

    ``files`` are grouped by their folder, and by what a version would refer to: a data file with the files of its
    blobs, an index with its whole folder, any other file alone.
    """

    native: str | None
    versions: dict[int, Entry] = field(default_factory=dict)
    files: dict[str, dict[str, list[Entry]]] = field(default_factory=lambda: {kind: {} for kind in KINDS})
    strays: list[Entry] = field(default_factory=list)
    """Half-written version files."""
    hint: Entry | None = None
    """Lance's own note of the newest version."""
    last_written: dt.datetime = _LONG_AGO

    @property
    def newest(self) -> int | None:
        """The newest version."""
        return max(self.versions, default=None)

    def owned(self) -> Iterator[tuple[str, Entry]]:
        """All files but those of versions, each with the key by which a version would refer to it."""
        for group in self.files.values():
            for owner, entries in group.items():
                yield from ((owner, entry) for entry in entries)
        yield from ((entry.key, entry) for entry in self.strays)


@dataclass(slots=True)
class TableFiles:
    """The files of a table, by native branch, and the entries of its list of native branches.

    ``others`` are files that this release does not know; they are left alone.
    """

    location: str
    trees: dict[str | None, TreeFiles] = field(default_factory=dict)
    listed: dict[str, Entry] = field(default_factory=dict)
    others: list[Entry] = field(default_factory=list)
    last_written: dt.datetime = _LONG_AGO

    def add(self, entry: Entry, natives: Collection[str]) -> None:
        """Put a file where it belongs. ``natives`` are the native branches of live branches."""
        self.last_written = max(self.last_written, entry.modified)
        inner = entry.key.removeprefix(f"{self.location}/")
        if inner.startswith("_refs/branches/") and inner.endswith(".json"):
            self.listed[unquote(inner.rpartition("/")[2].removesuffix(".json"))] = entry
            return
        native = _native(inner, natives) if inner.startswith("tree/") else None
        if native is None and inner.startswith("tree/"):
            self.others.append(entry)
            return
        below = inner if native is None else inner.removeprefix(f"tree/{native}/")
        tree = self.trees.setdefault(native, TreeFiles(native))
        tree.last_written = max(tree.last_written, entry.modified)
        folder, _, name = below.partition("/")
        version = layout.version_of(name)
        if folder == VERSIONS and version is not None:
            tree.versions[version] = entry
        elif folder == VERSIONS and name == _HINT:
            tree.hint = entry
        elif folder == VERSIONS:
            tree.strays.append(entry)
        elif folder in KINDS:
            tree.files[folder].setdefault(_owner(entry.key, below, folder, name), []).append(entry)
        else:
            self.others.append(entry)


def _native(inner: str, natives: Collection[str]) -> str | None:
    """The native branch that a file below `tree` is of; None if that cannot be told."""
    for native in natives:
        if inner.startswith(f"tree/{native}/"):
            return native
    found = _TREE.match(inner)
    return None if found is None else found[1]


def _owner(key: str, below: str, folder: str, name: str) -> str:
    """The key by which versions refer to a file."""
    first, slash, _ = name.partition("/")
    top = key.removesuffix(below)
    if folder == "_indices":
        return f"{top}{folder}/{first}"
    return f"{top}{folder}/{first}.lance" if folder == "data" and slash else key


def table_files(location: str, entries: Iterable[Entry], natives: Collection[str]) -> TableFiles:
    """The files of one table, from a listing of its folder."""
    found = TableFiles(location)
    for entry in entries:
        found.add(entry, natives)
    return found


def tables_below(objects: ObjectStore, folder: str, natives: Collection[str]) -> Iterator[TableFiles]:
    """The files of each table in a folder of tables, one after the other."""
    for location, entries in groupby(objects.entries(folder), key=_location):
        if location is not None:
            yield table_files(location, entries, natives)


def _location(entry: Entry) -> str | None:
    folder, _, rest = entry.key.partition("/")
    name, slash, _ = rest.partition("/")
    return f"{folder}/{name}" if slash else None
