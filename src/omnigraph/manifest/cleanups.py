"""Marks by which writers learn that files are cleaned away.

A cleanup leaves a mark in the folder of the sidecars before it removes the first file, and another one after the
last. Every writer lists that folder before it stages and once more under its lock. If the mark has changed in
between, or a cleanup has not come to its end, files that the writer staged may be gone, and it looks for them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Final

_MARK: Final = re.compile(r"/(\d{12})\.cleanup$")


def newest_mark(keys: Iterable[str]) -> int:
    """The number of the newest mark among keys; 0 if there is none. Odd ones say that files are being removed."""
    found = (_MARK.search(key) for key in keys)
    return max((int(mark[1]) for mark in found if mark), default=0)


class Cleanups:
    """The newest mark that this process has seen."""

    def __init__(self) -> None:
        self._latest = 0
        self._lock = threading.Lock()

    @property
    def latest(self) -> int:
        """Its number; 0 if there was none."""
        return self._latest

    def may_have_removed(self, since: int) -> bool:
        """Can files be gone that were staged when ``since`` was the newest mark?"""
        return self._latest != since or self._latest % 2 == 1

    def note(self, keys: Iterable[str]) -> None:
        """Look for a newer mark in a listing of the folder."""
        found = newest_mark(keys)
        with self._lock:
            self._latest = max(self._latest, found)
