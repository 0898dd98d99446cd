"""What goes wrong between a server and its callers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError, Outcome
from omnigraph.errors.conflicts import ConflictError
from omnigraph.errors.requests import RequestError
from omnigraph.errors.storage import StorageError


class Unauthorized(RequestError):
    """A request without a token, or with one that the server does not know."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        header = "send the header `Authorization: Bearer TOKEN` with a token of this server"
        otherwise = "in Python token=…, for commands OMNIGRAPH_BEARER_TOKEN or `omnigraph login`"
        return f"{self.reason}; {header} ({otherwise})"


class GraphNotServed(RequestError):
    """A server that does not serve the graph of that name."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"this server has no graph '{self.name}'; GET /graphs lists those it has"


class QueryNotFound(RequestError):
    """A server that has no stored query of that name for the graph."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"there is no stored query '{self.name[:80]}'; GET …/queries lists those of the graph"


class MediaUnsupported(RequestError):
    """A request or an answer in a form that the route does not have."""

    def __init__(self, given: str, known: Sequence[str]) -> None:
        super().__init__(given, tuple(known))
        self.given = given
        self.known = tuple(known)

    def __str__(self) -> str:
        return f"'{self.given}' is not a form of this route; there are {', '.join(self.known)}"


class RequestIncomplete(RequestError):
    """A request whose body did not arrive in time."""

    def __init__(self, received: int, seconds: float) -> None:
        super().__init__(received, seconds)
        self.received = received
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"only {self.received:,} bytes of the body arrived within {self.seconds:g} seconds;"
            " nothing was written. Send it faster, or in smaller pieces"
        )


class KeyReused(RequestError):
    """An idempotency key that the same actor has used for another write."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key

    def __str__(self) -> str:
        return f"the idempotency key '{self.key}' was used for another write; nothing was written. Use a new key"


class TooManyRequests(ConflictError):
    """More requests at a time than the server admits. ``what`` says of which kind."""

    def __init__(self, what: str, limit: int, retry_after: int) -> None:
        super().__init__(what, limit, retry_after)
        self.what = what
        self.limit = limit
        self.retry_after = retry_after

    def __str__(self) -> str:
        return (
            f"more than {self.limit:,} {self.what} at a time; nothing was written."
            f" Retry after {self.retry_after} seconds"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "limit": self.limit, "retry_after": self.retry_after}


class ServerUnavailable(OmniError):
    """A server that cannot be reached, or that went away before it answered.

    A write may then be in the graph: ``outcome`` is unknown, and a write with an idempotency key can be repeated.
    """

    def __init__(self, url: str, reason: str, is_write: bool = False) -> None:
        super().__init__(url, reason, is_write)
        self.url = url
        self.reason = reason
        self.is_write = is_write
        self.outcome = Outcome.UNKNOWN if is_write else Outcome.NOTHING_WRITTEN

    def __str__(self) -> str:
        doubt = (
            " It is not known whether the write was made; look at the commits before you retry."
            if self.is_write
            else ""
        )
        return f"the server at {self.url} did not answer: {self.reason}.{doubt}"


class ServerFailed(StorageError):
    """An answer that is no answer to the request: a bug of the server, or another program at its address."""

    def __init__(self, status: int, reason: str, request_id: str | None) -> None:
        super().__init__(status, reason, request_id)
        self.status = status
        self.reason = reason
        self.request_id = request_id

    def __str__(self) -> str:
        known = "" if self.request_id is None else f"; its log has more under request {self.request_id}"
        return f"the server failed with status {self.status}: {self.reason}{known}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "status": self.status, "request_id": self.request_id}
