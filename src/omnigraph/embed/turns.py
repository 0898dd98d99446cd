"""Taking turns: no more than so many requests at a time, of one process or of all processes of a machine.

Spark gives every task a process of its own, so a bound for an executor has to hold across processes. There it is
files that are locked, which a process that dies lets go of.
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

_LOOK_EVERY: Final = 0.02


@contextmanager
def turn(server: str, most: int, *, of_machine: bool) -> Iterator[None]:
    """Be one of at most that many who ask a server at a time."""
    with _in_process(server, most):
        folder = _folder(server) if of_machine else None
        if folder is None:
            yield
            return
        with _slot(folder, most):
            yield


@lru_cache(maxsize=64)
def _in_process(server: str, most: int) -> threading.BoundedSemaphore:
    del server  # one for each
    return threading.BoundedSemaphore(most)


def _folder(server: str) -> Path | None:
    """Where the locks of a server are; None on a machine that has no place for them."""
    name = f"omnigraph-embed-{os.getuid()}-{hashlib.sha256(server.encode()).hexdigest()[:12]}"
    folder = Path(tempfile.gettempdir()) / name
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK) else None


@contextmanager
def _slot(folder: Path, most: int) -> Iterator[None]:
    """Hold the lock of one of the slots; whoever comes when all are taken looks again soon."""
    while True:
        for number in range(most):
            with (folder / f"{number}.lock").open("a") as held:
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                try:
                    yield
                finally:
                    with contextlib.suppress(OSError):
                        fcntl.flock(held, fcntl.LOCK_UN)
                return
        time.sleep(random.uniform(_LOOK_EVERY, 3 * _LOOK_EVERY))  # noqa: S311  nothing is kept secret by it
