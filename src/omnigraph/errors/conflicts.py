"""Another writer was faster: try again."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class ConflictError(OmniError):
    """Another writer was faster. Nothing of this write is visible; read again and retry."""


class ManifestConflict(ConflictError):
    """A table is not at the version the writer saw: kind `ExpectedVersionMismatch`."""

    kind = "ExpectedVersionMismatch"

    def __init__(self, table_key: str, expected: int, actual: int) -> None:
        super().__init__(table_key, expected, actual)
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"{self.table_key} is at version {self.actual}, not at {self.expected} as when this was prepared."
            " Nothing was written. Read again and retry, or write on a branch and merge it."
        )

    def as_json(self) -> dict[str, Any]:
        conflict = {"table_key": self.table_key, "expected": self.expected, "actual": self.actual}
        return {"error": str(self), "code": "conflict", "manifest_conflict": conflict}


class PreconditionFailed(ConflictError):
    """The branch is not at the commit the caller named."""

    def __init__(self, branch: str, expected: str, actual: str | None) -> None:
        super().__init__(branch, expected, actual)
        self.branch = branch
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return f"branch '{self.branch}' is at commit {self.actual}, not at {self.expected}; nothing was written"

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "precondition_failure": {"expected": self.expected, "actual": self.actual},
        }


class BatchDone(ConflictError):
    """Nothing of a stream's micro-batch is left to commit: it is there already, or has no rows."""

    def __init__(self, stream: str, branch: str, batch: int) -> None:
        super().__init__(stream, branch, batch)
        self.stream = stream
        self.branch = branch
        self.batch = batch

    def __str__(self) -> str:
        return f"batch {self.batch} of stream '{self.stream}' is done on branch '{self.branch}'"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "stream": self.stream, "branch": self.branch, "batch": self.batch}


class PublishContention(ConflictError):
    """The manifest moved at every attempt to publish."""

    def __init__(self, branch: str, attempts: int) -> None:
        super().__init__(branch, attempts)
        self.branch = branch
        self.attempts = attempts

    def __str__(self) -> str:
        return f"branch '{self.branch}' moved at each of {self.attempts} attempts to publish; retry in a moment"


class LockTimeout(ConflictError):
    """Another writer held a lock for longer than this one would wait."""

    def __init__(self, lock: str, seconds: float, holder: str | None = None) -> None:
        super().__init__(lock, seconds, holder)
        self.lock = lock
        self.seconds = seconds
        self.holder = holder

    def __str__(self) -> str:
        holder = f", held by {self.holder}," if self.holder else ""
        return f"the lock '{self.lock}'{holder} was not free within {self.seconds:g} seconds; retry later"


class LockLost(ConflictError):
    """A writer stalled for longer than its lease and may not publish any more."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock

    def __str__(self) -> str:
        return f"this writer stalled and lost the lock '{self.lock}'; nothing was written, retry"
