"""Streamed answers: a thread writes, the event loop sends, and neither gets far ahead of the other."""

from __future__ import annotations

import asyncio
import contextvars
import io
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, BinaryIO, Final, cast

import pyarrow as pa

from omnigraph.read.limits import Cancellation

PIECE: Final = 256 << 10
"""Bytes that are sent at a time."""
_AHEAD: Final = 2
"""How many pieces a thread may be ahead of the caller."""


class CallerGone(Exception):
    """The caller of a streamed answer went away, or takes too long for the next piece."""


class _Sink(io.RawIOBase):
    """The file that a thread writes to. A write waits while too much is unsent."""

    def __init__(self, put: Callable[[bytes], None]) -> None:
        self._put = put
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        size = len(memoryview(content).cast("B"))
        self._held += content
        while len(self._held) >= PIECE:
            self._put(bytes(self._held[:PIECE]))
            del self._held[:PIECE]
        return size

    def finish(self) -> None:
        if self._held:
            self._put(bytes(self._held))
            self._held.clear()


class Stream:
    """One streamed answer. `start` waits for its first piece, so that an early error is not half an answer."""

    def __init__(
        self,
        write: Callable[[BinaryIO], None],
        codec: str | None,
        pool: ThreadPoolExecutor,
        seconds: float,
        stop: Cancellation,
    ) -> None:
        self._write = write
        self._codec = codec
        self._seconds = seconds
        self._stop = stop
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(_AHEAD)
        self._loop = asyncio.get_running_loop()
        self._is_gone = False
        self._running = self._loop.run_in_executor(pool, contextvars.copy_context().run, self._run)

    async def start(self, done: Callable[[], None]) -> AsyncIterator[bytes]:
        """The pieces of the answer, once the first is there. Raises what the writer raised before that."""
        self._running.add_done_callback(lambda _: done())
        try:
            first = await self._next()
        except asyncio.CancelledError:
            self.abandon()
            raise
        if first is None:
            await self._running
        return self._all(first)

    def abandon(self) -> None:
        """No one takes the rest: the writer stops at its next piece."""
        self._is_gone = True
        self._stop.cancel()
        while not self._pieces.empty():
            self._pieces.get_nowait()
        self._running.add_done_callback(_ignore_outcome)

    async def _all(self, first: bytes | None) -> AsyncIterator[bytes]:
        piece = first
        try:
            while piece is not None:
                yield piece
                piece = await self._next()
            await asyncio.shield(self._running)
        finally:
            self.abandon()

    async def _next(self) -> bytes | None:
        """The next piece; None if the writer has ended, in whichever way."""
        if self._pieces.empty() and not self._running.done():
            getting = asyncio.ensure_future(self._pieces.get())
            either: set[asyncio.Future[Any]] = {getting, self._running}
            try:
                await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
                if getting.done():
                    return getting.result()
            finally:
                getting.cancel()
        return None if self._pieces.empty() else self._pieces.get_nowait()

    def _run(self) -> None:
        sink = _Sink(self._put)
        if self._codec is None:
            self._write(cast(BinaryIO, sink))
        else:
            with pa.CompressedOutputStream(pa.PythonFile(sink, "w"), self._codec) as packed:
                self._write(cast(BinaryIO, packed))
        sink.finish()

    def _put(self, piece: bytes) -> None:
        """In the thread: hand a piece over when there is room for it."""
        if self._is_gone:
            raise CallerGone
        waiting = asyncio.run_coroutine_threadsafe(self._pieces.put(piece), self._loop)
        try:
            waiting.result(self._seconds)
        except TimeoutError:
            waiting.cancel()
            self._is_gone = True
            raise CallerGone from None


def _ignore_outcome(running: asyncio.Future[None]) -> None:
    if not running.cancelled():
        running.exception()
