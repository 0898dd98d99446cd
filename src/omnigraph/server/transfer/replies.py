"""Replies: answers and errors as bytes, and how they are sent."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.types import Send

from omnigraph.errors import OmniError, RangeUnsatisfiable, TooManyRequests
from omnigraph.messages.failures import CODES, failure_body, status_of
from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.messages.values import encode_value
from omnigraph.server.answers.calls import JSON, Answer, Followed, Found, Rendered, Streamed, Text
from omnigraph.server.transfer.bodies import packed

_UNAUTHORIZED: Final = 401
_WITHOUT_LENGTH: Final = (204, 304)
_TERSE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
LEFT: Final = Rendered(b"", JSON, 499)
"""The reply that no caller waits for; its status is for the log."""


def rendered(answer: Answer, form: str, codec: str | None) -> Rendered:
    """An answer as bytes, packed if the caller takes it so."""
    match answer:
        case Found(value, as_json, status, headers):
            kind = VALUES if form == VALUES and value is not None else JSON
            shown = encode_value(value) if kind == VALUES else as_json()
            content = _TERSE.encode(shown).encode(errors="surrogatepass")
        case Rendered() if answer.as_is:
            return answer
        case Rendered(content, kind, status, headers):
            pass
        case Text(text, kind):
            content, status, headers = text.encode(), 200, {}
        case Streamed() | Followed():
            raise TypeError("a streamed answer is not made in memory")
    content, more = packed(content, codec)
    return Rendered(content, kind, status, {**headers, **more} if more else headers)


async def send_reply(send: Send, reply: Rendered) -> None:
    """Send a reply as a whole."""
    headers = [(b"content-type", reply.media_type.encode("latin-1"))]
    headers += [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in reply.headers.items()]
    if reply.status not in _WITHOUT_LENGTH and "Content-Length" not in reply.headers:
        headers.append((b"content-length", b"%d" % len(reply.content)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    await send({"type": "http.response.body", "body": reply.content})


def failed(error: OmniError, request_id: str | None) -> Rendered:
    """The reply to a request that ended with an error of ours."""
    status = status_of(error)
    headers = {}
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, RangeUnsatisfiable):
        headers["Content-Range"] = f"bytes */{error.length}"
    if status == _UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return _as_json(failure_body(error, request_id), status, headers)


def crashed(request_id: str | None) -> Rendered:
    """The reply to a request that failed for a reason that is not the caller's to know; the log has it."""
    body = {
        "code": CODES[500],
        "error": "the server failed; its log has the reason",
        "outcome": "unknown",
        "request_id": request_id,
    }
    return _as_json(body, 500, {})


def unrouted(method: str, path: str, allowed: Sequence[str], request_id: str | None) -> Rendered:
    """The reply to a request for which there is no route: at least not with its method, if others are allowed."""
    status, reason = (405, "Method Not Allowed") if allowed else (404, "Not Found")
    body = {
        "code": CODES[status],
        "error": f"{method} {path[:200]}: {reason}; GET /openapi.json lists the routes",
        "outcome": "nothing_written",
        "request_id": request_id,
    }
    return _as_json(body, status, {"Allow": ", ".join(allowed)} if allowed else {})


def _as_json(body: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Rendered:
    content = json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")
    return Rendered(content, JSON, status, headers)
