"""Queries at scale: the same IR as the embedded engine runs, as DataFrame operations over one snapshot.

Spark is imported when something is asked for, so that a session can say first what is missing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.spark.queries.execution import query_frame as query_frame
    from omnigraph.spark.queries.execution import run_query as run_query

_OFFERED = frozenset({"query_frame", "run_query"})


def __getattr__(name: str) -> Any:
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("omnigraph.spark.queries.execution"), name)
