"""Requests to a server, and what comes of them: values, bytes, or the error that the server raised."""

from __future__ import annotations

import base64
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import urllib3
from urllib3.exceptions import HTTPError

from omnigraph.arguments import described, optional_text
from omnigraph.errors import InvalidArgument, ServerFailed, ServerUnavailable
from omnigraph.messages.failures import raised_from
from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.messages.values import decode_value

NDJSON: Final = "application/x-ndjson"
ABOUT: Final = "Omnigraph-Result"
"""The header that says what an answer is about which has no room for it."""
_CONNECTIONS: Final = 32
_LARGEST_FAILURE: Final = 64 << 20
_CHUNK: Final = 1 << 18


@dataclass(frozen=True)
class Transport:
    """The way to one graph of one server. It can be used by several threads; its ``repr`` leaves out the token."""

    url: str
    token: str | None = field(default=None, repr=False)
    timeout: float = 300.0
    certificates: str | None = None
    pool: urllib3.PoolManager = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pool = urllib3.PoolManager(maxsize=_CONNECTIONS, retries=False, ca_certs=self.certificates)
        object.__setattr__(self, "pool", pool)

    def __reduce__(self) -> tuple[Any, ...]:
        return Transport, (self.url, self.token, self.timeout, self.certificates)

    def value(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        is_write: bool = False,
    ) -> Any:
        """What a route answers, as the Python value that the server had."""
        sent = {"Accept": f"{VALUES}, application/json;q=0.5", **(headers or {})}
        content = None if body is None else encoded(body)
        if content is not None:
            sent["Content-Type"] = "application/json"
        return self.sent(method, path, content, query=query, headers=sent, is_write=is_write)

    def sent(
        self,
        method: str,
        path: str,
        content: bytes | None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str],
        is_write: bool,
    ) -> Any:
        """What a route answers to a body that is made already."""
        with self.answered(method, path, content, query=query, headers=headers, is_write=is_write) as answer:
            found, kind = _read(answer), answer.headers.get("Content-Type", "")
            try:
                decoded = json.loads(found)
                return decode_value(decoded) if kind == VALUES else decoded
            except ValueError as error:
                raise ServerFailed(answer.status, f"its answer cannot be read: {error}", None) from None

    @contextmanager
    def answered(
        self,
        method: str,
        path: str,
        content: bytes | None,
        *,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str],
        is_write: bool = False,
    ) -> Iterator[urllib3.BaseHTTPResponse]:
        """An answer whose body is still to be read. One with an error raises the error."""
        sent = {"User-Agent": "omnigraph", "Accept-Encoding": "gzip", **headers}
        if self.token is not None:
            sent["Authorization"] = f"Bearer {self.token}"
        try:
            answer = self.pool.request(
                method,
                self.url + path + _query_string(query),
                body=content,
                headers=sent,
                timeout=self.timeout,
                preload_content=False,
                redirect=False,
            )
            try:
                _require_success(answer)
                yield answer
            except BaseException:
                answer.close()
                raise
            answer.release_conn()
        except HTTPError as error:
            raise ServerUnavailable(self.url, _reason(error), is_write) from error

    def close(self) -> None:
        """Close the connections."""
        self.pool.clear()


def pieces(answer: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The body of an answer, a piece at a time."""
    yield from answer.stream(_CHUNK, decode_content=True)


def _read(answer: urllib3.BaseHTTPResponse) -> bytes:
    return answer.read(decode_content=True)


def _require_success(answer: urllib3.BaseHTTPResponse) -> None:
    """Raise the error that an answer tells."""
    if answer.status not in (200, 206):
        raise raised_from(answer.status, _failure(answer))


def _failure(answer: urllib3.BaseHTTPResponse) -> object:
    """The body of an answer with an error; None if it is not JSON."""
    try:
        return json.loads(answer.read(_LARGEST_FAILURE, decode_content=True))
    except ValueError:
        return None


def encoded(body: Mapping[str, Any]) -> bytes:
    """A JSON body, without the members that are None."""
    given = {name: each for name, each in body.items() if each is not None}
    try:
        written = json.dumps(given, ensure_ascii=False, allow_nan=False, default=_json_form)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("params", f"they cannot be sent to a server: {error}") from None
    return written.encode(errors="surrogatepass")


def request_headers(
    if_commit: str | None = None, graph_commit_id: str | None = None, idempotency_key: str | None = None
) -> dict[str, str]:
    """The headers of a write: its condition, the id of its commit, and its key."""
    given = {
        "Omnigraph-If-Graph-Commit": optional_text("if_commit", if_commit),
        "Omnigraph-Graph-Commit-Id": optional_text("graph_commit_id", graph_commit_id),
        "Idempotency-Key": optional_text("idempotency_key", idempotency_key),
    }
    return {name: value for name, value in given.items() if value is not None}


def _json_form(value: Any) -> Any:
    """A Python value that JSON does not have, as the values of parameters are written in JSON."""
    if isinstance(value, dt.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return f"base64:{base64.b64encode(value).decode()}"
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, Mapping):
        return dict(value)
    raise InvalidArgument("params", f"{described(value)} cannot be sent to a server")


def _query_string(query: Mapping[str, Any] | None) -> str:
    """The query string of a URL; a list is given once for each of its values."""
    pairs: list[tuple[str, str]] = []
    for name, value in (query or {}).items():
        if value is None:
            continue
        if isinstance(value, list | tuple):
            pairs += [(name, str(each)) for each in value]
        elif isinstance(value, bool):
            pairs.append((name, "true" if value else "false"))
        else:
            pairs.append((name, value.isoformat() if isinstance(value, dt.date) else str(value)))
    return f"?{urlencode(pairs)}" if pairs else ""


def _reason(error: HTTPError) -> str:
    """Why a server could not be reached, without the objects that urllib3 shows."""
    cause = getattr(error, "reason", None) or error
    shown = str(cause.args[-1]) if getattr(cause, "args", None) else str(cause)
    return shown.rpartition(": ")[2] or type(error).__name__
