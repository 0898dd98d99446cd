"""Connections: what uvicorn's own ones leave open.

Replies go out as one piece: uvicorn writes the head and the body of a reply apart, and each would be a call of the
system and wake the caller. Heads of requests have a limit, since the parser keeps all of one, however long it is.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD: Final = 64 << 10
"""How many bytes there may be up to the end of a head, or up to the next piece of a body."""
_LINGER: Final = 1.0
"""A connection that is refused is open for so many seconds more, or else its caller might not get the reason, …"""
_THROWN_AWAY: Final = 1 << 20
"""… but not for more bytes than that."""


class _Joined(asyncio.Transport):
    """A transport that keeps what is written until the event loop's next turn, or until more is written."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._held = b""

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._held:
            whole = self._held + data
            self._held = b""
            self._transport.write(whole)
        elif data:
            self._held = bytes(data)
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if self._held:
            self._transport.write(self._held)
            self._held = b""

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._held = b""
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def is_reading(self) -> bool:
        return self._transport.is_reading()


class Connection(HttpToolsProtocol):
    """A connection of a caller."""

    _unsaid = 0
    """Bytes that have said nothing yet."""
    _is_in_body = False
    _is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(_Joined(transport, self.loop))

    def data_received(self, data: bytes) -> None:
        self._unsaid += len(data)
        if self._is_refused:
            if self._unsaid > _THROWN_AWAY:
                self.transport.abort()
            return
        super().data_received(data)
        if self._unsaid > LONGEST_HEAD and not self.transport.is_closing():
            reason = f"has a head of more than {LONGEST_HEAD:,} bytes; send less in headers and path"
            self._refuse("431 Request Header Fields Too Large", "too_large", reason)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the caller is told the same in any case
        self._refuse("400 Bad Request", "bad_request", "cannot be read as HTTP/1.1")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._is_in_body:  # what comes behind a body is no header, though the parser says so
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._unsaid, self._is_in_body = 0, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unsaid = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unsaid, self._is_in_body = 0, False
        super().on_message_complete()

    def _refuse(self, status: str, code: str, reason: str) -> None:
        """End the connection, and say why unless another request is being answered."""
        self._is_refused = True
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.close()
            return
        body = {"error": f"the request {reason}", "code": code, "outcome": "nothing_written"}
        content = json.dumps(body).encode()
        head = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + content)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(_LINGER, self.transport.close)
