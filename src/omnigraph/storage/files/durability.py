"""Power cuts: what was written reaches the disk before its writer is told that it is there.

A file survives a power cut once it is synced and the folder that names it is, and so on up to the graph's root.
`OMNIGRAPH_SYNC=off` trades that for speed: a crash of the process still loses nothing, one of the machine may.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from omnigraph.errors import RequestError
from omnigraph.storage.together import in_shares
from omnigraph.storage.unavailable import unavailable

StrPath = str | os.PathLike[str]

SETTING: Final = "OMNIGRAPH_SYNC"
_THREADS: Final = 4
_REMEMBERED: Final = 4096
_named: set[tuple[str, int]] = set()
"""Folders, by path and inode, whose own entry in the folder above is known to be on the disk."""


def is_on() -> bool:
    """Are files synced? What the setting says, and yes without it."""
    wanted = os.environ.get(SETTING, "").strip().lower()
    if wanted not in ("", "on", "off"):
        raise RequestError(f"{SETTING}={wanted} is neither 'on' nor 'off'; give one of them, or none")
    return wanted != "off"


def sync_files(paths: Iterable[StrPath], below: StrPath) -> None:
    """Bring files to the disk, and the folders that name them, up to the folder they all lie below.

    Each file and each folder is synced once. Folders above the files' own are synced only where they may be new.
    StorageUnavailable names the file that could not be synced.
    """
    files = list(dict.fromkeys(os.fspath(path) for path in paths))
    if not files or not is_on():
        return
    _each(files)
    folders = list(dict.fromkeys(os.path.dirname(path) for path in files))
    _each(folders)
    sync_names(folders, below)


def sync_folder(folder: StrPath, below: StrPath) -> None:
    """Bring the names in a folder to the disk, and the folder's own; nothing happens if it has been removed."""
    if is_on():
        try:
            sync(folder)
        except FileNotFoundError:
            return
        sync_names([folder], below)


def sync_names(folders: Iterable[StrPath], below: StrPath) -> None:
    """Sync the folders above these ones as far as they may have got a new name since they were last synced."""
    top = os.fspath(below)
    inside = top if top.endswith("/") else f"{top}/"
    done: set[str] = set()
    for folder in [os.fspath(each) for each in folders]:
        while folder.startswith(inside):
            try:
                known = folder, os.stat(folder).st_ino
                if known in _named:
                    break
                parent = os.path.dirname(folder)
                if parent not in done:
                    sync(parent)
                    done.add(parent)
            except FileNotFoundError:
                break
            if len(_named) >= _REMEMBERED:
                _named.clear()
            _named.add(known)
            folder = parent


def _each(paths: list[str]) -> None:
    if len(paths) == 1:
        _sync_named(paths[0])
        return
    in_shares(_sync_named, paths, _THREADS)


def _sync_named(path: str) -> None:
    try:
        sync(path)
    except OSError as error:
        raise unavailable(path, error) from error


def sync(path: StrPath) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
