"""Waiting for a lock, and giving up."""

from __future__ import annotations

import socket
import time
from typing import Final

from omnigraph.errors import LockTimeout

TIME_TO_LIVE: Final = 10.0
"""For how many seconds a lease that is not renewed holds a lock of an object store."""


class Patience:
    """How long a writer will wait from now on for everything that a lock takes."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """The seconds that are left; 0 when patience is over."""
        return max(0.0, self._until - time.monotonic())

    def pause(self, seconds: float) -> None:
        """Wait a little, but not past the end."""
        time.sleep(min(seconds, self.left))

    def timeout(self, lock: str, holder: str | None) -> LockTimeout:
        """The error to raise when patience is over."""
        return LockTimeout(lock, self._seconds, holder)


def process_name(pid: int | str) -> str:
    """How a process of this machine is called where a lock names its holder."""
    return f"{socket.gethostname()}:{pid}"
