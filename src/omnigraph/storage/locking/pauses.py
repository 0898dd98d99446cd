"""How soon the next write of a process follows the last one: for so long it pays to keep a lock for it."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

_REMEMBERED: Final = 8
"""As many pauses as writes to a contended branch before one tries without the lock, which takes longer."""

_SPARE: Final = 2.0
_LEAST: Final = 1 / 6
_RARE: Final = 8
"""Writes with so many times the longest wait between them do not follow each other. A shorter pause may have been
too long by chance."""


class Pauses:
    """The last few pauses between the end of a write and the beginning of the next, of whichever threads."""

    def __init__(self) -> None:
        self._ended: float | None = None
        self._pauses: deque[float] = deque(maxlen=_REMEMBERED)

    def note_end(self) -> None:
        """A write has ended."""
        self._ended = time.monotonic()

    def note_begin(self) -> None:
        """The next one wants the lock."""
        if self._ended is not None:
            self._pauses.append(time.monotonic() - self._ended)
            self._ended = None

    def worth_waiting(self, most: float) -> float:
        """For how many seconds, of at most ``most``, the next write is worth waiting for: twice the longest of the
        pauses that were not longer than that, and not at all if the last one was much longer."""
        if self._pauses and self._pauses[-1] > _RARE * most:
            return 0.0
        longest = max((pause for pause in self._pauses if pause <= most), default=most)
        return min(most, max(_SPARE * longest, _LEAST * most))
