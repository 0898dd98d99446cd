"""Semaphores that limit the requests in flight to one server: within a process, or on the whole machine.

Spark runs every task in a process of its own, so the limit of a machine has to hold across processes. It is a
folder of lock files, one for each request that may be in flight; the lock of a process that dies is free again.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Final

_POLL_SECONDS: Final = 0.02


@lru_cache(maxsize=64)
def process_semaphore(server: str, limit: int) -> threading.BoundedSemaphore:
    """The semaphore that all threads of this process share for a server."""
    del server  # only the key of the cache
    return threading.BoundedSemaphore(limit)


@contextmanager
def machine_semaphore(server: str, limit: int) -> Iterator[None]:
    """Hold one of the places that all processes of this user on this machine share for a server.

    Without a writable folder for temporary files, only the threads of this process share the limit.
    """
    with process_semaphore(server, limit):
        folder = _lock_folder(server)
        if folder is None:
            yield
            return
        with _lock_file(folder, limit):
            yield


def _lock_folder(server: str) -> Path | None:
    """The folder of a server's lock files; None if it cannot be created or written."""
    name = f"omnigraph-embed-{os.getuid()}-{hashlib.sha256(server.encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextmanager
def _lock_file(folder: Path, limit: int) -> Iterator[None]:
    """Hold the lock of one of the files, polling while all of them are taken."""
    while True:
        for number in range(limit):
            with (folder / f"{number}.lock").open("a") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                try:
                    yield
                finally:
                    with contextlib.suppress(OSError):
                        fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may still hold the file open
                return
        time.sleep(random.uniform(_POLL_SECONDS, 3 * _POLL_SECONDS))  # noqa: S311  jitter is no secret
