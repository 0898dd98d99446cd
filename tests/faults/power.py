"""What an unlucky power cut leaves of a directory, by a journal of what was done to it.

Only what was synced is kept: a file's bytes if the file was synced after its last write, and a name if its
directory was synced after the name was given. Names that were taken away or replaced come back unless their
directory was synced since.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Literal

from tests.faults.disk import Event

Names = Literal["lost", "kept"]


@dataclass(slots=True)
class _Cache:
    """What the kernel has not yet brought to the disk."""

    unsynced: set[int] = field(default_factory=set)
    before: defaultdict[str, dict[str, int | None]] = field(default_factory=lambda: defaultdict(dict))
    """By directory, which inodes the names that have changed since its last sync had then, or None."""

    def change(self, path: str, was: int | None) -> None:
        folder, name = _split(path)
        self.before[folder].setdefault(name, was)

    def sync(self, path: str, inode: int) -> None:
        self.unsynced.discard(inode)
        self.before.pop(path, None)

    def note(self, event: Event) -> None:
        match event.operation:
            case "create" | "mkdir":
                self.change(event.path, None)
            case "write" | "truncate":
                self.unsynced.add(event.inode)
            case "sync":
                self.sync(event.path, event.inode)
            case "link":
                self.change(event.to, None)
            case "rename":
                self.change(event.to, event.replaced or None)
                self.change(event.path, event.inode)
            case "unlink" | "rmdir":
                self.change(event.path, event.inode)


def power_cut(
    root: Path, journal: Sequence[Event], graves: Path, kept: float = 0.0, names: Names = "lost"
) -> None:
    """Leave of a directory what would be there after a power cut, and of bytes that were not synced a share.

    ``names`` says what becomes of names that were not synced. A disk may well bring a name home before the bytes.
    The process that did what the journal says is dead or idle. ``graves`` holds files it has removed, by inode.
    """
    cache = _Cache()
    for event in journal:
        if event.result >= 0:
            cache.note(event)
    for path in root.rglob("*"):
        grave = graves / str(path.stat().st_ino)
        if path.is_file() and not grave.exists():
            os.link(path, grave)
    for unsynced in cache.unsynced:
        if (grave := graves / str(unsynced)).exists():
            os.truncate(grave, int(grave.stat().st_size * kept))
    if names == "kept":
        return
    changed = [
        (root / folder / name, inode) for folder, names in cache.before.items() for name, inode in names.items()
    ]
    for path, _ in changed:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    for path, inode in sorted(changed):
        if inode is None or not path.parent.is_dir():
            continue
        if (grave := graves / str(inode)).exists():
            os.link(grave, path)
        else:
            path.mkdir()  # only directories are not kept


def _split(path: str) -> tuple[str, str]:
    parent, name = PurePosixPath(path).parent, PurePosixPath(path).name
    return ("" if str(parent) == "." else str(parent)), name
