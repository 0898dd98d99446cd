"""Queries at scale: the same IR as the embedded engine runs, as DataFrame operations over one snapshot."""

from __future__ import annotations

from omnigraph.pipeline.queries.execution import query_frame, run_query

__all__ = ["query_frame", "run_query"]
