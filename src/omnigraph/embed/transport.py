"""One question to a server over HTTP, asked again for as long as that can help."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, OpenerDirector, Request, build_opener

if TYPE_CHECKING:
    from collections.abc import Mapping
    from email.message import Message

_TOO_MANY: Final = 429
_LONGEST_PAUSE: Final = 30.0
_SHOWN: Final = 300
_CHUNK: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to wait for a server, in seconds: for one answer, between attempts, and for all of them together.

    A ``deadline`` of 0 is none.
    """

    timeout: float = 30.0
    deadline: float = 60.0
    attempts: int = 4
    backoff: float = 0.2

    def of_job(self) -> Patience:
        """That of a job, which has more to lose: ten times as long, twice as many attempts."""
        return replace(self, deadline=10 * self.deadline, attempts=2 * self.attempts)


@dataclass(frozen=True, slots=True)
class Question:
    """A JSON body for an address. The headers may have a key, so they are not shown."""

    url: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"Question({self.url})"


class Unanswered(Exception):
    """No answer that is any good. ``status`` is the server's, None if it did not answer at all."""

    def __init__(self, status: int | None, reason: str, attempts: int) -> None:
        super().__init__(status, reason, attempts)
        self.status = status
        self.reason = reason
        self.attempts = attempts


class _Failed(Exception):
    """One attempt that failed, and how long the server wants to be left alone."""

    def __init__(self, status: int | None, reason: str, pause: float | None = None) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason
        self.pause = pause

    @property
    def may_pass(self) -> bool:
        """Can the same question have an answer later?"""
        return self.status is None or self.status == _TOO_MANY or self.status >= 500


class _StayHere(HTTPRedirectHandler):
    """Follows nobody elsewhere: another server must not get the key, and a POST would become a GET."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener: OpenerDirector = build_opener(_StayHere)


def ask(question: Question, patience: Patience) -> Any:
    """The JSON of the answer. Timeouts, broken connections, 429 and 5xx are asked again, nothing else is."""
    data = json.dumps(question.body, ensure_ascii=False).encode(errors="replace")
    headers = {"Content-Type": "application/json", "Accept": "application/json", **question.headers}
    end = time.monotonic() + patience.deadline if patience.deadline else math.inf
    attempt = 0
    while True:
        attempt += 1
        try:
            answer = _once(Request(question.url, data, headers, method="POST"), patience.timeout, end)  # noqa: S310
        except _Failed as failed:
            pause = _pause(failed, patience, attempt)
            if not failed.may_pass or attempt >= patience.attempts:
                raise Unanswered(failed.status, failed.reason, attempt) from None
            if time.monotonic() + pause >= end:
                late = f"{failed.reason}; waiting {pause:.1f} s more would pass the deadline"
                raise Unanswered(failed.status, late, attempt) from None
            time.sleep(pause)
            continue
        try:
            return json.loads(answer)
        except ValueError:
            raise Unanswered(None, f"the answer is not JSON: {_text(answer)}", attempt) from None


def _pause(failed: _Failed, patience: Patience, attempt: int) -> float:
    """How long to wait: what the server asks for, else twice as long each time; never all askers alike."""
    grown: float = min(patience.backoff * 2 ** (attempt - 1), _LONGEST_PAUSE)
    if failed.pause is not None:
        return failed.pause + random.uniform(0, patience.backoff)  # noqa: S311  nothing is kept secret by it
    return grown * random.uniform(0.5, 1.5)  # noqa: S311


def _once(request: Request, timeout: float, end: float) -> bytes:
    """The bytes of one answer, all of which have to come within the timeout."""
    stop = min(time.monotonic() + timeout, end)
    try:
        with _opener.open(request, timeout=max(0.001, stop - time.monotonic())) as response:
            return _whole(response, stop)
    except HTTPError as error:
        with error:
            raise _Failed(error.code, _said(error), _retry_after(error.headers)) from None
    except TimeoutError:
        raise _Failed(None, f"no answer within {timeout:g} s") from None
    except URLError as error:
        late = isinstance(error.reason, TimeoutError)
        raise _Failed(None, f"no answer within {timeout:g} s" if late else str(error.reason)) from None
    except (HTTPException, OSError) as error:
        raise _Failed(None, str(error) or type(error).__name__) from None


def _whole(response: HTTPResponse, stop: float) -> bytes:
    """All of an answer, however slowly it trickles in."""
    parts: list[bytes] = []
    while part := response.read1(_CHUNK):
        parts.append(part)
        if time.monotonic() > stop:
            raise TimeoutError
    if response.length:
        raise ConnectionError("the connection broke off within the answer")
    return b"".join(parts)


def _said(error: HTTPError) -> str:
    """What the server says is wrong, in whichever of the usual places."""
    try:
        content = error.read(_CHUNK)
    except (HTTPException, OSError):
        return error.reason
    try:
        found: Any = json.loads(content)
    except ValueError:
        return _text(content) or error.reason
    for _ in range(3):
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict):
            found = next((found[name] for name in ("error", "message", "detail", "msg") if found.get(name)), found)
    return _text(found.encode(errors="replace") if isinstance(found, str) else content)


def _text(content: bytes) -> str:
    return " ".join(content[: 4 * _SHOWN].decode(errors="replace").split())[:_SHOWN]


def _retry_after(headers: Message) -> float | None:
    """The seconds of a Retry-After, which may also name an instant."""
    value = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
