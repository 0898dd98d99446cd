"""How soon the next write of a process follows the last one: for so long it pays to keep a lock for it."""

from __future__ import annotations

import time
from collections import deque
from typing import Final

_REMEMBERED: Final = 8
"""As many pauses as writes to a contended branch before one tries without the lock, which takes longer."""

_SPARE: Final = 2.0
_LEAST: Final = 1 / 6


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
        """For how many seconds the next write is worth waiting for, of at most ``most``: twice the longest pause,
        and not at all if it did not come by then the last time."""
        if not self._pauses:
            return most
        if self._pauses[-1] > most:
            return 0.0
        longest = max(pause for pause in self._pauses if pause <= most)
        return min(most, max(_SPARE * longest, _LEAST * most))
