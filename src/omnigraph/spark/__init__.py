"""Spark: sessions, jobs, DataFrames, streams and queries. The only package that imports pyspark.

For users: `session` gives the session that OmniGraph works in, `register` makes `format("omnigraph")` known to
one, `stream` writes a streaming DataFrame, and `Graph.spark` gives a `SparkGraph`: DataFrames of one snapshot.
For developers: read `sessions` (where Spark starts) and `runner` (how tasks get to workers), then `loads/`,
`queries/`, `datasource/` and `streaming/`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.spark.datasource.source import register
    from omnigraph.spark.graph import SparkGraph
    from omnigraph.spark.sessions import spark_session as session
    from omnigraph.spark.streaming.stream import stream

__all__ = ["SparkGraph", "register", "session", "stream"]

_LAZY = {
    "SparkGraph": ("omnigraph.spark.graph", "SparkGraph"),
    "register": ("omnigraph.spark.datasource.source", "register"),
    "session": ("omnigraph.spark.sessions", "spark_session"),
    "stream": ("omnigraph.spark.streaming.stream", "stream"),
}


def __getattr__(name: str) -> Any:
    """Import what needs pyspark when it is first used, so that an error names what is missing."""
    if name not in _LAZY:
        raise AttributeError(f"module 'omnigraph.spark' has no attribute '{name}'")
    module, attribute = _LAZY[name]
    found = getattr(importlib.import_module(module), attribute)
    globals()[name] = found
    return found
