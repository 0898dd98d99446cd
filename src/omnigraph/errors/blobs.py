"""What goes wrong with the bytes of blobs."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.conflicts import ConflictError
from omnigraph.errors.data import DataError
from omnigraph.errors.requests import RequestError


class BlobNotFound(RequestError):
    """A blob of a node or edge that does not exist, or whose value is null."""

    def __init__(self, table_key: str, id: str, property: str, is_null: bool) -> None:  # noqa: A002
        super().__init__(table_key, id, property, is_null)
        self.table_key = table_key
        self.id = id
        self.property = property
        self.is_null = is_null

    def __str__(self) -> str:
        shown = f"{self.table_key} with id '{self.id[:200]}'"
        if self.is_null:
            return f"{self.property} of {shown} is null; write its bytes with `omnigraph blob put`"
        return f"there is no {shown}; load or insert it before its bytes are read or written"

    def as_json(self) -> dict[str, Any]:
        cell = {"table_key": self.table_key, "id": self.id, "property": self.property, "is_null": self.is_null}
        return {"error": str(self), "blob": cell}


class BlobChanged(ConflictError):
    """A blob that does not have the ETag on which a request depends. ``actual`` is None if it is null."""

    def __init__(self, table_key: str, id: str, property: str, expected: str, actual: str | None) -> None:  # noqa: A002
        super().__init__(table_key, id, property, expected, actual)
        self.table_key = table_key
        self.id = id
        self.property = property
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        now = "is null" if self.actual is None else f"has the ETag {self.actual}"
        return (
            f"{self.property} of {self.table_key} with id '{self.id[:200]}' {now}, which the condition "
            f"{self.expected[:200]} excludes; read it again, and retry with its ETag"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "precondition_failure": {"expected": self.expected, "actual": self.actual},
        }


class BlobSourceUnavailable(DataError):
    """Bytes elsewhere, at an address that is allowed, that cannot be read."""

    def __init__(self, uri: str, reason: str) -> None:
        super().__init__(uri, reason)
        self.uri = uri
        self.reason = reason

    def __str__(self) -> str:
        return f"the bytes at {self.uri[:300]} cannot be read: {self.reason}; nothing was written"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "external_blob_source": {"uri": self.uri, "reason": self.reason}}


class RangeUnsatisfiable(RequestError):
    """A range of bytes, from ``start`` up to ``end``, that lies behind the end of a blob of ``length`` bytes."""

    def __init__(self, asked: str, length: int, start: int, end: int) -> None:
        super().__init__(asked, length, start, end)
        self.asked = asked
        self.length = length
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return f"the range '{self.asked[:80]}' lies outside the {self.length} bytes of the blob"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "blob_range": {"start": self.start, "end": self.end, "length": self.length}}
