"""Requests that are answered in waves: how many of them a client makes one after the other."""

from __future__ import annotations

import threading
import time


class Waves:
    """Keeps requests waiting until no other has come for a while, then lets all of them go on at once.

    Requests that a client makes at the same time are in one wave. Each wave takes at least as long as is waited.
    """

    def __init__(self, quiet: float) -> None:
        self._quiet = quiet
        self._last = 0.0
        self._wave = 0
        self._changed = threading.Condition()

    def wait(self) -> int:
        """Wait for the end of the wave; its number, from 1 on."""
        with self._changed:
            self._last, mine = time.monotonic(), self._wave
            while mine == self._wave:
                left = self._last + self._quiet - time.monotonic()
                if left <= 0:
                    self._wave += 1
                    self._changed.notify_all()
                else:
                    self._changed.wait(left)
            return mine + 1
