"""Locks on a local disk: `flock`, which the kernel releases when a process dies, however it dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from omnigraph.errors import LockTimeout, StorageUnavailable
from omnigraph.storage import layout

_FIRST_PAUSE: Final = 0.0005
_LONGEST_PAUSE: Final = 0.02


class HeldFile:
    """A held `flock`; only its holder's end releases it, so there is nothing to verify."""

    def verify(self) -> None:
        """A held file lock cannot be lost."""


class FileLocks:
    """File locks of one graph."""

    def __init__(self, root: str) -> None:
        self._folder = Path(root) / layout.LOCKS

    @contextmanager
    def exclusive(self, name: str, wait: float) -> Iterator[HeldFile]:
        """Hold a lock alone. The gate is kept while waiting, so that sharers cannot starve it."""
        deadline = time.monotonic() + wait
        gate = self._acquire(f"{name}.gate", fcntl.LOCK_EX, deadline, name, wait)
        try:
            lock = self._acquire(f"{name}.lock", fcntl.LOCK_EX, deadline, name, wait)
        finally:
            os.close(gate)
        try:
            yield HeldFile()
        finally:
            os.close(lock)

    @contextmanager
    def shared(self, name: str, wait: float) -> Iterator[HeldFile]:
        """Hold a lock together with others, once nobody waits to hold it alone."""
        deadline = time.monotonic() + wait
        gate = self._acquire(f"{name}.gate", fcntl.LOCK_SH, deadline, name, wait)
        try:
            lock = self._acquire(f"{name}.lock", fcntl.LOCK_SH, deadline, name, wait)
        finally:
            os.close(gate)
        try:
            yield HeldFile()
        finally:
            os.close(lock)

    def _acquire(self, file: str, how: int, deadline: float, name: str, wait: float) -> int:
        """Lock a file and return its descriptor; closing it releases the lock."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise StorageUnavailable(str(self._folder), f"cannot lock: {error.strerror}") from error
        pause = _FIRST_PAUSE
        while True:
            try:
                fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    raise LockTimeout(name, wait) from None
                time.sleep(pause)
                pause = min(pause * 1.5, _LONGEST_PAUSE)
            except BaseException:
                os.close(descriptor)
                raise
            else:
                return descriptor
