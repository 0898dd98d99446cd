"""What is seen of each request: its id, its line in the log, its place in the metrics."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import MutableMapping
from typing import TYPE_CHECKING, Any, Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from ulid import ULID

from omnigraph.server.observing.logs import REQUEST, Log
from omnigraph.server.observing.metrics import Metrics
from omnigraph.server.observing.traces import Traces, describe

if TYPE_CHECKING:
    from opentelemetry.trace import Span

REQUEST_ID: Final = "X-Request-Id"
_GIVEN: Final = re.compile(rb"[!-~]{1,128}")
_UNKNOWN: Final = "unknown"
BEGUN: Final = "omnigraph.begun"
"""In the scope of a request: has its write begun?"""


def request_id_of(scope: MutableMapping[str, Any]) -> str | None:
    """The id under which a request stands in the log."""
    found = scope.get("omnigraph.request_id")
    return found if isinstance(found, str) else None


class Observed:
    """An application whose requests are counted and logged."""

    def __init__(self, inner: ASGIApp, metrics: Metrics, log: Log, traces: Traces | None = None) -> None:
        self._inner = inner
        self._metrics = metrics
        self._log = log
        self._traces = traces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        if self._traces is None:
            await self._observe(scope, receive, send, None)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        with self._traces.request(scope["method"], headers) as span:
            await self._observe(scope, receive, send, span)

    async def _observe(self, scope: Scope, receive: Receive, send: Send, span: Span | None) -> None:
        seen = _Seen(scope, receive, send)
        self._metrics.in_flight += 1
        REQUEST.set(scope)
        failure: str | None = None
        try:
            await self._inner(scope, seen.receive, seen.send)
        except asyncio.CancelledError:  # the server stops, and has waited for long enough
            failure = "the server stopped"
            if seen.status is None:
                await _give_up(scope, seen)
        except Exception as error:  # noqa: BLE001  the caller has its answer, or half of one; the log gets a line
            # Half an answer: Starlette complains that it is too late for a whole one, and has the reason as cause.
            failure = repr(error.__cause__ or error)[:500]
        finally:
            self._metrics.in_flight -= 1
            self._note(scope, seen, failure, span)

    def _note(self, scope: Scope, seen: _Seen, failure: str | None, span: Span | None) -> None:
        route = scope.get("omnigraph.route", _UNKNOWN)
        seconds = time.monotonic() - seen.started
        status = seen.status or 499
        method = scope["method"] if route != _UNKNOWN else _UNKNOWN
        self._metrics.note(method, route, status, seconds, seen.received, seen.sent)
        about = {
            "request_id": seen.request_id,
            "graph": scope.get("path_params", {}).get("graph"),
            "actor": scope.get("omnigraph.actor"),
        }
        if span is not None:
            describe(span, method, route, status, about)
        self._log(
            "request",
            **about,
            method=scope["method"],
            route=route,
            status=status,
            seconds=round(seconds, 6),
            received=seen.received,
            sent=seen.sent,
            **({} if failure is None else {"failure": failure}),
        )


async def _give_up(scope: Scope, seen: _Seen) -> None:
    """Answer a request that a server which stops does not finish. What runs in a thread is waited for, so it may
    still come to its end."""
    is_begun = scope.get(BEGUN, False)
    body = {
        "error": f"the server stops; {'the write may still be made' if is_begun else 'nothing was written'}",
        "code": "unavailable",
        "outcome": "unknown" if is_begun else "nothing_written",
        "request_id": seen.request_id,
    }
    content = json.dumps(body).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(content)).encode())]
    await seen.send({"type": "http.response.start", "status": 503, "headers": headers})
    await seen.send({"type": "http.response.body", "body": content})


def _new_id() -> str:
    """An id that sorts by time. It is no secret, so it takes nothing from the system's source of randomness."""
    moment = time.time_ns() // 1_000_000
    return str(ULID((moment << 80 | random.getrandbits(80)).to_bytes(16)))


class _Seen:
    """One request while it is answered."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.started = time.monotonic()
        self.status: int | None = None
        self.received = 0
        self.sent = 0
        self._receive = receive
        self._send = send
        given = next((value for name, value in scope["headers"] if name == REQUEST_ID.lower().encode()), b"")
        self.request_id = given.decode() if _GIVEN.fullmatch(given) else _new_id()
        scope["omnigraph.request_id"] = self.request_id

    async def receive(self) -> Message:
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], (REQUEST_ID.lower().encode(), self.request_id.encode())]
        else:
            self.sent += len(message.get("body", b""))
        await self._send(message)
