"""The log of a server: one JSON object a line, on standard error. It has no tokens, no queries and no data."""

from __future__ import annotations

import datetime as dt
import json
import logging
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final

from omnigraph.policy.policy import Decision

Log = Callable[..., None]
"""Takes the name of an event and its fields."""
_NONE: Final[Mapping[str, Any]] = {}
REQUEST: Final[ContextVar[Mapping[str, Any]]] = ContextVar("omnigraph.request", default=_NONE)
"""The scope of the request that is being answered, also in the threads that work for it."""


def write_log(event: str, **fields: Any) -> None:
    """Write one line about an event."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    sys.stderr.write(json.dumps({"time": now, "event": event, **fields}, ensure_ascii=False) + "\n")
    sys.stderr.flush()


class _Lines(logging.Handler):
    """Makes lines of a log of what libraries have to say."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        failure = {} if record.exc_info is None else {"failure": repr(record.exc_info[1])[:500]}
        self._log(
            "message", logger=record.name, level=record.levelname.lower(), said=record.getMessage(), **failure
        )


def take_messages(log: Log) -> None:
    """Make the warnings and errors of libraries lines of a log."""
    logging.getLogger().addHandler(_Lines(log))


def note_decision(decision: Decision) -> None:
    """Write one line about what a policy has decided, and about which request and graph."""
    scope = REQUEST.get()
    about = {
        "request_id": scope.get("omnigraph.request_id"),
        "graph": scope.get("path_params", {}).get("graph"),
    }
    write_log("policy", **about, **decision.as_json())


def quiet(event: str, **fields: Any) -> None:
    """Write nothing."""
