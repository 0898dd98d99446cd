"""Admission: how many writes an actor may have at a time, and how many bytes in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import TooManyRequests
from omnigraph.server.settings import RETRY_AFTER, ServerSettings


class Admission:
    """What is going on in one server process. It is used by the event loop only, so it needs no lock."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._writes: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._streams = 0
        self._followers = 0

    @contextmanager
    def write(self, actor: str | None, size: int) -> Iterator[None]:
        """Admit a write whose body has up to so many bytes, or raise TooManyRequests."""
        who = actor or ""
        if self._writes[who] >= self._settings.actor_writes:
            raise TooManyRequests("writes of one actor", self._settings.actor_writes, RETRY_AFTER)
        if self._bytes[who] + size > self._settings.actor_bytes:
            raise TooManyRequests("bytes in writes of one actor", self._settings.actor_bytes, RETRY_AFTER)
        self._writes[who] += 1
        self._bytes[who] += size
        try:
            yield
        finally:
            self._writes[who] -= 1
            self._bytes[who] -= size
            if not self._writes[who]:
                del self._writes[who], self._bytes[who]

    @contextmanager
    def follower(self) -> Iterator[None]:
        """Admit a caller that follows changes, or raise TooManyRequests."""
        if self._followers >= self._settings.followers:
            raise TooManyRequests("callers that follow changes", self._settings.followers, RETRY_AFTER)
        self._followers += 1
        try:
            yield
        finally:
            self._followers -= 1

    def begin_stream(self) -> None:
        """Admit a streamed answer, or raise TooManyRequests."""
        if self._streams >= self._settings.streams:
            raise TooManyRequests("streamed answers", self._settings.streams, RETRY_AFTER)
        self._streams += 1

    def end_stream(self) -> None:
        """A streamed answer is done, in whichever way."""
        self._streams -= 1
