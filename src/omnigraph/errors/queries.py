"""Queries that were stopped: narrow the query, or raise its limit."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class QueryStopped(OmniError):
    """A query that was stopped before it had a result."""


class QueryTimeout(QueryStopped):
    """A query that took longer than its timeout. ``rows`` is the size of its largest step."""

    def __init__(self, query: str, limit: float, elapsed: float, rows: int) -> None:
        super().__init__(query, limit, elapsed, rows)
        self.query = query
        self.limit = limit
        self.elapsed = elapsed
        self.rows = rows

    def __str__(self) -> str:
        return (
            f"query '{self.query}' was stopped after {self.elapsed:.2f} s, its limit is {self.limit:g} s; "
            f"its largest step had {self.rows:,} rows; add conditions that match fewer rows, or raise the timeout"
        )

    def as_json(self) -> dict[str, Any]:
        used = {"resource": "seconds", "limit": self.limit, "actual": self.elapsed, "rows": self.rows}
        return {"error": str(self), "resource_limit": used}


class QueryMemoryExceeded(QueryStopped):
    """A query that needs more memory than its limit. ``rows`` is the size of the step that needs it."""

    def __init__(self, query: str, limit: int, wanted: int, rows: int) -> None:
        super().__init__(query, limit, wanted, rows)
        self.query = query
        self.limit = limit
        self.wanted = wanted
        self.rows = rows

    def __str__(self) -> str:
        return (
            f"query '{self.query}' needs {self.wanted:,} bytes of memory for {self.rows:,} rows, and its limit is "
            f"{self.limit:,}; add conditions, return aggregates, or raise the memory limit"
        )

    def as_json(self) -> dict[str, Any]:
        used = {"resource": "bytes", "limit": self.limit, "actual": self.wanted, "rows": self.rows}
        return {"error": str(self), "resource_limit": used}


class CountOverflow(QueryStopped):
    """A query that counts more matches than a 64-bit integer can hold."""

    def __init__(self, query: str) -> None:
        super().__init__(query)
        self.query = query

    def __str__(self) -> str:
        return (
            f"query '{self.query}' counts more than 9,223,372,036,854,775,806 matches, the most a count can hold; "
            "add conditions, or count fewer variables"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "query": self.query}


class SumOverflow(QueryStopped):
    """A sum is larger, or smaller, than 64 bits can say: of integers an integer, of floats a float."""

    def __init__(self, query: str, expression: str) -> None:
        super().__init__(query, expression)
        self.query = query
        self.expression = expression

    def __str__(self) -> str:
        return (
            f"query '{self.query}': {self.expression} is beyond what 64 bits can say; "
            "add conditions, group by more, or add up smaller numbers: `sum(to_float(…))` of integers"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "query": self.query, "expression": self.expression}


class ComputationFailed(QueryStopped):
    """A value that a query computes and that does not exist, such as a quotient by zero."""

    def __init__(self, query: str, expression: str, reason: str) -> None:
        super().__init__(query, expression, reason)
        self.query = query
        self.expression = expression
        self.reason = reason

    remedy = "exclude such rows by a condition, or choose the values with `case when … then … end`"

    @property
    def advice(self) -> str:
        """What the caller can do about it."""
        return self.remedy

    def __str__(self) -> str:
        return f"query '{self.query}': {self.expression}: {self.reason}; {self.advice}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "query": self.query, "expression": self.expression, "reason": self.reason}


class DivisionByZero(ComputationFailed):
    """A number divided by zero."""

    remedy = "exclude such rows by a condition, or divide by `nullif(…, 0)`, which gives null"


class NumberOverflow(ComputationFailed):
    """A computed number that has no room in 64 bits, or a moment outside the years 1 to 9999."""

    remedy = "compute with floats, `to_float(…)`, or exclude such rows by a condition"

    @property
    def advice(self) -> str:
        """Floats have room for large integers only."""
        return self.remedy if "64 bits" in self.reason else ComputationFailed.remedy


class QueryCancelled(QueryStopped):
    """A query that the caller cancelled."""

    def __init__(self, query: str, elapsed: float, rows: int) -> None:
        super().__init__(query, elapsed, rows)
        self.query = query
        self.elapsed = elapsed
        self.rows = rows

    def __str__(self) -> str:
        used = f"{self.elapsed:.2f} s; its largest step had {self.rows:,} rows"
        return f"query '{self.query}' was cancelled after {used}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "elapsed": self.elapsed, "rows": self.rows}
