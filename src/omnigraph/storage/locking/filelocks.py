"""Locks on a local disk: `flock`, which the kernel releases when a process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import ClassVar, Final

from omnigraph.errors import LockLost, StorageUnavailable
from omnigraph.storage import layout
from omnigraph.storage.locking.holders import HeldLock
from omnigraph.storage.locking.patience import Patience, process_name

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.004
_LONGEST_PAUSE_IN_LINE: Final = 0.015
"""Only one process at a time waits for a lock itself. The others wait for its gate, and look more and more rarely:
each look takes processor time from the one that has the lock."""

_ATTEMPTS: Final = 20
_LOCKS_OF_THE_KERNEL: Final = Path("/proc/locks")


class LockFile:
    """An open lock file. Closing it unlocks it, also for children that were forked meanwhile."""

    _open: ClassVar[set[LockFile]] = set()
    _mutex: ClassVar[threading.RLock] = threading.RLock()

    def __init__(self, path: str) -> None:
        self._path = path
        with LockFile._mutex:
            self._descriptor: int | None = _opened(path)
            LockFile._open.add(self)

    def lock(self, how: int, patience: Patience, longest_pause: float = _LONGEST_PAUSE) -> bool:
        """Lock the file; False if patience is over first."""
        return self._descriptor is not None and _locked(self._descriptor, how, patience, longest_pause)

    def is_there(self) -> bool:
        """Is the open file the one that others would open?"""
        try:
            return self._descriptor is not None and os.stat(self._path).st_ino == os.fstat(self._descriptor).st_ino
        except FileNotFoundError:
            return False

    def holder(self) -> str | None:
        """Who holds the lock, as far as the kernel tells."""
        return None if self._descriptor is None else _holder(self._descriptor)

    def close(self) -> None:
        """Unlock the file and close it; nothing happens in a forked child, which has closed it already."""
        with LockFile._mutex:
            LockFile._open.discard(self)
            if self._descriptor is not None:
                with suppress(OSError):
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
                os.close(self._descriptor)
                self._descriptor = None

    @classmethod
    def drop_all(cls) -> None:
        """In a forked child: close what was inherited. The parent keeps the lock."""
        for file in cls._open:
            if file._descriptor is not None:
                os.close(file._descriptor)
                file._descriptor = None
        cls._open.clear()
        cls._mutex.release()


os.register_at_fork(
    before=LockFile._mutex.acquire,
    after_in_parent=LockFile._mutex.release,
    after_in_child=LockFile.drop_all,
)


class HeldFile:
    """A held `flock`. Only its holder's end releases it, but its file can be removed, and a new one locked."""

    def __init__(self, file: LockFile, shown: str) -> None:
        self._file = file
        self._shown = shown

    def verify(self) -> None:
        """Raise LockLost if the lock's file has been removed."""
        if not self._file.is_there():
            raise LockLost(self._shown)


class FileLocks:
    """File locks of one graph."""

    def __init__(self, root: str) -> None:
        self._folder = Path(root) / layout.LOCKS

    def alone(self, name: str, shown: str, patience: Patience) -> AbstractContextManager[HeldFile]:
        """Hold a lock that is no part of another."""
        return self._held(name, shown, fcntl.LOCK_EX, patience)

    def whole(self, name: str, parts: str, shown: str, patience: Patience) -> AbstractContextManager[HeldFile]:  # noqa: ARG002  sharers hold the same file
        """Hold a lock with all its parts. The gate is kept while waiting, so that holders of parts cannot starve
        it."""
        return self._held(name, shown, fcntl.LOCK_EX, patience)

    @contextmanager
    def part(self, whole: str, name: str, shown: str, patience: Patience) -> Iterator[tuple[HeldFile, ...]]:
        """Hold a part of a lock: the whole is shared with the holders of other parts, once no one waits for it."""
        group = self._held(whole, whole, fcntl.LOCK_SH, patience)
        with group as shared, self._held(name, shown, fcntl.LOCK_EX, patience) as own:
            yield shared, own

    def discard(self, name: str) -> None:
        """Remove a lock's files."""
        for kind in ("lock", "gate"):
            with suppress(OSError):  # a file that stays does no harm
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

    def seems_held(self, name: str) -> bool:
        """The kernel knows at once."""
        return self.is_held(name)

    def holders(self, *, watch: bool) -> list[HeldLock]:  # noqa: ARG002  the kernel knows at once who is alive
        """The locks that are held. The kernel frees those of the dead, so all holders are alive."""
        held: list[HeldLock] = []
        for path in sorted(self._folder.glob("*.lock")) if self._folder.is_dir() else ():
            with suppress(OSError):  # a lock that is removed meanwhile is not held
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    holder = _holder(descriptor)
                finally:
                    os.close(descriptor)
                if holder is not None:
                    held.append(HeldLock(path.stem, f"{layout.LOCKS}/{path.name}", holder, is_alive=True))
        return held

    @property
    def silence(self) -> float:
        """The kernel knows at once."""
        return 0.0

    @contextmanager
    def _held(self, name: str, shown: str, how: int, patience: Patience) -> Iterator[HeldFile]:
        while True:
            with _closing(f"{self._folder}/{name}.lock") as lock:
                with _closing(f"{self._folder}/{name}.gate") as gate:
                    if not (gate.lock(how, patience, _LONGEST_PAUSE_IN_LINE) and lock.lock(how, patience)):
                        raise patience.timeout(shown, lock.holder())
                if lock.is_there():
                    yield HeldFile(lock, shown)
                    return


@contextmanager
def flocked(path: str, how: int, shown: str, patience: Patience) -> Iterator[None]:
    """Hold a lock on one file, for a moment and without a gate."""
    with _closing(path) as file:
        if not file.lock(how, patience):
            raise patience.timeout(shown, file.holder())
        yield


@contextmanager
def _closing(path: str) -> Iterator[LockFile]:
    """A lock file, open for the time being."""
    file = LockFile(path)
    try:
        yield file
    finally:
        file.close()


def _opened(path: str) -> int:
    """The descriptor of a lock file, which is made if there is none."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    try:
        for _ in range(_ATTEMPTS):
            with suppress(FileNotFoundError):
                return os.open(path, flags, 0o666)
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)
    except OSError as error:
        raise StorageUnavailable(os.path.dirname(path), f"cannot lock: {error.strerror}") from error


def _locked(descriptor: int, how: int, patience: Patience, longest_pause: float = _LONGEST_PAUSE) -> bool:
    """Lock a file; False if patience is over first."""
    pause = _FIRST_PAUSE
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if not patience.left:
                return False
            patience.pause(pause)
            pause = min(pause * 1.5, longest_pause)
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
