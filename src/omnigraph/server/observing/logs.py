"""The log of a server: one JSON object a line, on standard error. It has no tokens, no queries and no data."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable
from typing import Any

from omnigraph.policy.policy import Decision

Log = Callable[..., None]
"""Takes the name of an event and its fields."""


def write_log(event: str, **fields: Any) -> None:
    """Write one line about an event."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    sys.stderr.write(json.dumps({"time": now, "event": event, **fields}, ensure_ascii=False) + "\n")
    sys.stderr.flush()


def note_decision(decision: Decision) -> None:
    """Write one line about what a policy has decided."""
    write_log("policy", **decision.as_json())


def quiet(event: str, **fields: Any) -> None:
    """Write nothing."""
