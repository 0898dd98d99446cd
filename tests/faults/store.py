"""Faults of an S3 store: rules for requests to the server's faulty port, and a journal of them."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from tests.stores import S3Server, Store

Method = Literal["HEAD", "GET", "PUT", "DELETE", "LIST", "POST"]
Family = Literal["CHANGE", "ANY"]
"""Methods that change something, and all of them."""

Action = Literal["500", "503", "refuse", "lost", "late", "stall"]
"""A status: nothing is done. `lost`: it is done, but the connection is cut instead of answered. `late`: the
connection is cut, and it is done when `release` is called or some seconds have passed. `stall`: it is done after
some seconds."""

IMPATIENT: Final = {"client_max_retries": "0", "client_retry_timeout": "1", "download_retry_count": "0"}
"""Storage options with which clients report the first failure instead of trying again for minutes."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens to the n-th request of a kind for keys that a glob matches, and if sticky, to all later.

    A star of the glob does not cross a slash; the glob `**` matches every key."""

    method: Method | Family
    key: str
    occurrence: int
    action: Action
    seconds: float = 0.0
    sticky: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One request as it was answered, its key relative to the graph. Without a status it is still on its way.

    ``wave`` is the number of the wave it came in, if requests are answered in waves."""

    method: Method
    key: str
    status: str
    fault: str
    wave: int = 0


@dataclass(frozen=True, slots=True)
class Faults:
    """The faults of one graph's place on the faulty port."""

    server: S3Server
    store: Store

    def arm(self, rule: Rule) -> None:
        """Make a rule. Its glob is relative to the graph."""
        prefix = self.store.address.prefix
        self._ask("arm", {**asdict(rule), "key": f"{prefix}/{rule.key}".rstrip("/")})

    def disarm(self) -> list[int]:
        """Forget all rules; how often each of them has struck."""
        fired: list[int] = self._ask("disarm")
        return fired

    @contextmanager
    def waves(self, quiet: float) -> Iterator[None]:
        """Answer requests in waves: those that come within so many seconds of each other wait for the last."""
        self._ask("waves", {"quiet": quiet})
        try:
            yield
        finally:
            self._ask("waves", {"quiet": 0})

    def save(self) -> None:
        """Keep a copy of the graph as it is, for `restore`."""
        self._ask("save", {"prefix": self.store.address.prefix + "/"})

    def restore(self) -> None:
        """Put the graph back to what was saved."""
        self._ask("restore", {"prefix": self.store.address.prefix + "/"})

    def release(self) -> int:
        """Let late requests arrive; how many they were."""
        count: int = self._ask("release")
        return count

    def journal(self) -> list[Request]:
        """The requests for this graph since `forget`, in order of their answers."""
        prefix = self.store.address.prefix + "/"
        return [
            Request(**{**entry, "key": entry["key"].removeprefix(prefix)})
            for entry in self._ask("journal")
            if (entry["key"] + "/").startswith(prefix)
        ]

    def forget(self) -> None:
        """Begin the journal anew. What is late never arrives."""
        self._ask("forget")

    def _ask(self, verb: str, body: dict[str, Any] | None = None) -> Any:
        url = f"http://127.0.0.1:{self.server.faulty_port}/_faults/{verb}"
        with urllib.request.urlopen(url, json.dumps(body).encode(), timeout=60) as answer:
            return json.loads(answer.read())


@contextmanager
def faulty_store(server: S3Server) -> Iterator[Faults]:
    """A place of its own on the faulty port, whose clients do not try again. No rule outlives the block."""
    place = server.faulty_store()
    faults = Faults(server, Store(place.uri, {**place.options, **IMPATIENT}))
    try:
        yield faults
    finally:
        faults.disarm()
        faults.forget()
