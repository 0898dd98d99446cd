"""Power cuts: what was written reaches the disk before its writer is told that it is there.

A file survives a power cut once it is synced and the folder that names it is, and so on up to the graph's root.
`OMNIGRAPH_SYNC=off` trades that for speed: a crash of the process still loses nothing, one of the machine may.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from omnigraph.errors import RequestError
from omnigraph.storage.unavailable import unavailable

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


def sync_files(paths: Iterable[Path], below: Path) -> None:
    """Bring files to the disk, and the folders that name them, up to the folder they all lie below.

    Each file and each folder is synced once. Folders above the files' own are synced only where they may be new.
    StorageUnavailable names the file that could not be synced.
    """
    files = list(dict.fromkeys(paths))
    if not files or not is_on():
        return
    _each(files)
    folders = list(dict.fromkeys(path.parent for path in files))
    _each(folders)
    sync_names(folders, below)


def sync_folder(folder: Path, below: Path) -> None:
    """Bring the names in a folder to the disk, and the folder's own; nothing happens if it has been removed."""
    if is_on():
        try:
            sync(folder)
        except FileNotFoundError:
            return
        sync_names([folder], below)


def sync_names(folders: Iterable[Path], below: Path) -> None:
    """Sync the folders above these ones as far as they may have got a new name since they were last synced."""
    done: set[Path] = set()
    for folder in folders:
        while folder != below:
            try:
                known = str(folder), folder.stat().st_ino
                if known in _named or below not in folder.parents:
                    break
                if folder.parent not in done:
                    sync(folder.parent)
                    done.add(folder.parent)
            except FileNotFoundError:
                break
            if len(_named) >= _REMEMBERED:
                _named.clear()
            _named.add(known)
            folder = folder.parent


def _each(paths: list[Path]) -> None:
    if len(paths) == 1:
        _sync_named(paths[0])
        return
    with ThreadPoolExecutor(min(_THREADS, len(paths))) as pool:
        list(pool.map(_sync_named, paths))


def _sync_named(path: Path) -> None:
    try:
        sync(path)
    except OSError as error:
        raise unavailable(str(path), error) from error


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
