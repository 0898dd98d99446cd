"""POST requests with retries, a timeout for each attempt and one deadline for all of them.

urllib3 keeps the connections and speaks TLS; its own retries are off, because they know no total deadline.
"""

from __future__ import annotations

import json
import math
import os
import random
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3.exceptions import HTTPError, ProxyError
from urllib3.exceptions import TimeoutError as HTTPTimeout

_TOO_MANY_REQUESTS: Final = 429
_LONGEST_PAUSE: Final = 30.0
_CHUNK: Final = 1 << 16
_EXCERPT: Final = 300
"""How many characters of a response an error message shows."""
_IDLE_CONNECTIONS: Final = 256
"""How many connections to one server are kept open between requests."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to give up on a server. All times are in seconds.

    ``timeout`` limits one attempt, from connecting to the last byte of the response. ``deadline`` limits all
    attempts and the pauses between them; 0 means no deadline. ``backoff`` is the first pause, and each further
    one is twice as long.
    """

    timeout: float = 30.0
    deadline: float = 60.0
    attempts: int = 4
    backoff: float = 0.2

    def for_job(self) -> RetryPolicy:
        """The policy of a bulk job, which has more to lose: ten times the deadline, twice the attempts."""
        return replace(self, deadline=10 * self.deadline, attempts=2 * self.attempts)


@dataclass(frozen=True, slots=True)
class Request:
    """A JSON body to post to a URL. The headers may hold an API key, so ``repr`` leaves them out."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Request({self.url})"


class RequestFailed(Exception):
    """A request that got no usable response. ``status`` is None if the server did not respond at all."""

    def __init__(self, status: int | None, reason: str, attempts: int) -> None:
        super().__init__(status, reason, attempts)
        self.status = status
        self.reason = reason
        self.attempts = attempts


class _AttemptFailed(Exception):
    """One attempt that failed. ``retry_after`` is the pause that the server asks for, if it asks for one."""

    def __init__(self, status: int | None, reason: str, retry_after: float | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.retry_after = retry_after

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later: after connection errors, timeouts, 429 and 5xx."""
        return self.status is None or self.status == _TOO_MANY_REQUESTS or self.status >= 500


def post_json(request: Request, policy: RetryPolicy) -> Any:
    """Send a request, retrying transient failures within the policy, and return the JSON of the response."""
    content = json.dumps(request.body, ensure_ascii=False).encode(errors="replace")
    headers = {"Content-Type": "application/json", "Accept": "application/json", **request.headers}
    deadline = time.monotonic() + policy.deadline if policy.deadline else math.inf
    attempt = 0
    while True:
        attempt += 1
        try:
            body = _attempt(request.url, headers, content, policy.timeout, deadline)
        except _AttemptFailed as failed:
            if not failed.is_transient or attempt >= policy.attempts:
                raise RequestFailed(failed.status, failed.reason, attempt) from None
            pause = _pause(failed, policy, attempt)
            if time.monotonic() + pause >= deadline:
                late = f"{failed.reason}; waiting {pause:.1f} s more would pass the deadline"
                raise RequestFailed(failed.status, late, attempt) from None
            time.sleep(pause)
            continue
        try:
            return json.loads(body)
        except ValueError:
            raise RequestFailed(None, f"the answer is not JSON: {_excerpt(body)}", attempt) from None


def _pause(failed: _AttemptFailed, policy: RetryPolicy, attempt: int) -> float:
    """Seconds until the next attempt, with jitter so that clients which failed together do not retry together."""
    if failed.retry_after is not None:
        return failed.retry_after + random.uniform(0, policy.backoff)  # noqa: S311  jitter is no secret
    backoff: float = min(policy.backoff * 2 ** (attempt - 1), _LONGEST_PAUSE)
    return backoff * random.uniform(0.5, 1.5)  # noqa: S311


def _attempt(url: str, headers: Mapping[str, str], content: bytes, timeout: float, deadline: float) -> bytes:
    """The body of a successful response. All of it has to arrive within the timeout and before the deadline."""
    start = time.monotonic()
    seconds = max(0.001, min(timeout, deadline - start))
    end = start + seconds
    try:
        # No redirects: another server must not see the API key, and a redirected POST becomes a GET.
        response = _connections(_proxy(url)).request(
            "POST",
            url,
            body=content,
            headers=headers,
            timeout=seconds,
            retries=False,
            redirect=False,
            preload_content=False,
        )
        with response:
            if 200 <= response.status < 300:
                return _body(response, end)
            raise _AttemptFailed(response.status, _error_reason(response, end), _retry_after(response))
    except HTTPError as error:
        raise _AttemptFailed(None, _failure_reason(error, seconds)) from None
    except TimeoutError:
        raise _AttemptFailed(None, _no_answer(seconds)) from None


def _body(response: urllib3.BaseHTTPResponse, end: float) -> bytes:
    """The whole body. The timeout of a socket starts anew with every read, so each one gets what is left."""
    parts: list[bytes] = []
    while part := response.read1(_CHUNK):
        parts.append(part)
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        sock = getattr(response.connection, "sock", None)
        if isinstance(sock, socket.socket):
            sock.settimeout(left)
    return b"".join(parts)


def _error_reason(response: urllib3.BaseHTTPResponse, end: float) -> str:
    """What an error response says is wrong, from whichever member the provider uses for it."""
    phrase = response.reason or "no reason given"
    try:
        content = _body(response, end)
    except (HTTPError, TimeoutError):
        return phrase
    try:
        found: Any = json.loads(content)
    except ValueError:
        return _excerpt(content) or phrase
    for _ in range(3):
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            found = next((found[name] for name in ("error", "message", "detail", "msg") if found.get(name)), found)
    return _excerpt(found.encode(errors="replace") if isinstance(found, str) else content)


def _failure_reason(error: HTTPError, seconds: float) -> str:
    """Why there was no response, in the words of the operating system, of TLS or of the HTTP parser."""
    cause = _root_cause(error)
    if isinstance(cause, (TimeoutError, HTTPTimeout)):
        return _no_answer(seconds)
    prefix = "the proxy failed: " if isinstance(error, ProxyError) else ""
    return f"{prefix}{str(cause) or type(cause).__name__}"


def _root_cause(error: BaseException) -> BaseException:
    """The error that urllib3's errors wrap, which they hold as their last argument or as their cause."""
    last = error.args[-1] if error.args else None
    inner = last if isinstance(last, Exception) else error.__cause__
    return error if inner is None else _root_cause(inner)


def _no_answer(seconds: float) -> str:
    return f"no answer within {round(seconds, 2):g} s"


def _excerpt(content: bytes) -> str:
    """The start of a response, on one line."""
    return " ".join(content[: 4 * _EXCERPT].decode(errors="replace").split())[:_EXCERPT]


def _retry_after(response: urllib3.BaseHTTPResponse) -> float | None:
    """The seconds that a Retry-After header asks for, which may also be a date."""
    value = response.headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def _proxy(url: str) -> str | None:
    """The proxy for a URL as HTTP_PROXY, HTTPS_PROXY and NO_PROXY name it; None for a direct connection."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


@lru_cache(maxsize=8)
def _connections(proxy: str | None) -> urllib3.PoolManager:
    """The open connections that all threads of this process share.

    Certificates are checked against those of the system, or of SSL_CERT_FILE and SSL_CERT_DIR.
    """
    context = ssl.create_default_context()
    if proxy is None:
        return urllib3.PoolManager(maxsize=_IDLE_CONNECTIONS, ssl_context=context)
    credentials = urllib3.util.parse_url(proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=unquote(credentials)) if credentials else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, maxsize=_IDLE_CONNECTIONS, ssl_context=context)


os.register_at_fork(after_in_child=_connections.cache_clear)  # two processes cannot share one connection
