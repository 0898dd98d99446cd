"""Locks on a local disk: `flock`, which the kernel releases when a process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

from omnigraph.errors import LockLost, StorageUnavailable
from omnigraph.storage import layout
from omnigraph.storage.patience import Patience, process_name

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.02
_LOCKS_OF_THE_KERNEL: Final = Path("/proc/locks")


class HeldFile:
    """A held `flock`. Only its holder's end releases it, but somebody may remove the file, and lock a new one."""

    def __init__(self, path: Path, descriptor: int, shown: str) -> None:
        self._path = path
        self._descriptor = descriptor
        self._shown = shown

    def verify(self) -> None:
        """Raise LockLost if the lock's file has been removed."""
        if not self.is_there():
            raise LockLost(self._shown)

    def is_there(self) -> bool:
        """Is the file that is locked the one that others would lock?"""
        try:
            return self._path.stat().st_ino == os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return False


class FileLocks:
    """File locks of one graph."""

    def __init__(self, root: str) -> None:
        self._folder = Path(root) / layout.LOCKS

    def exclusive(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[HeldFile]:
        """Hold a lock alone. The gate is kept while waiting, so that sharers cannot starve it."""
        return self._held(name, shown, fcntl.LOCK_EX, patience)

    def shared(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[HeldFile]:
        """Hold a lock together with others, once nobody waits to hold it alone."""
        return self._held(name, shown, fcntl.LOCK_SH, patience)

    def discard(self, name: str) -> None:
        """Remove a lock's files."""
        for kind in ("lock", "gate"):
            (self._folder / f"{name}.{kind}").unlink(missing_ok=True)

    def is_held(self, name: str) -> bool:
        """Is the lock's file there, and locked?"""
        try:
            descriptor = os.open(self._folder / f"{name}.lock", os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StorageUnavailable(str(self._folder), f"cannot look: {error.strerror}") from error
        try:
            return not _locked(descriptor, fcntl.LOCK_SH, Patience(0))
        finally:
            os.close(descriptor)

    @property
    def silence(self) -> float:
        """The kernel knows at once."""
        return 0.0

    @contextmanager
    def _held(self, name: str, shown: str, how: int, patience: Patience) -> Iterator[HeldFile]:
        while True:
            with self._opened(f"{name}.lock") as lock:
                with self._opened(f"{name}.gate") as gate:
                    for file in (gate, lock):
                        if not _locked(file, how, patience):
                            raise patience.timeout(shown, _holder(lock))
                held = HeldFile(self._folder / f"{name}.lock", lock, shown)
                if held.is_there():
                    yield held
                    return

    @contextmanager
    def _opened(self, file: str) -> Iterator[int]:
        """A lock file's descriptor. Closing it releases the lock."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageUnavailable(str(self._folder), f"cannot lock: {error.strerror}") from error
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def _locked(descriptor: int, how: int, patience: Patience) -> bool:
    """Lock a file; False if patience is over first."""
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if not patience.left:
                return False
            patience.pause(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        else:
            return True


def _holder(lock: int) -> str | None:
    """Who holds a lock, as far as the kernel tells."""
    inode = f":{os.fstat(lock).st_ino}"
    try:
        listed = [line.split() for line in _LOCKS_OF_THE_KERNEL.read_text().splitlines()]
    except OSError:
        return None
    held = {how: pid for _, kind, _, how, pid, file, *_ in listed if kind == "FLOCK" and file.endswith(inode)}
    if "READ" in held:
        return "writers that share it"
    return process_name(held["WRITE"]) if "WRITE" in held else None
