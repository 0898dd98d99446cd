"""Conflicts with other writers: read again and retry."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class ConflictError(OmniError):
    """Another writer was faster. Nothing of this write is in the graph; read again and retry."""


class ManifestConflict(ConflictError):
    """A table is not at the version that the writer read."""

    kind = "ExpectedVersionMismatch"

    def __init__(self, table_key: str, expected: int, actual: int) -> None:
        super().__init__(table_key, expected, actual)
        self.table_key = table_key
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        return (
            f"{self.table_key} moved from version {self.expected} to {self.actual} while this write was prepared."
            " Nothing was written. Read again and retry"
        )

    def as_json(self) -> dict[str, Any]:
        conflict = {"table_key": self.table_key, "expected": self.expected, "actual": self.actual}
        return {"error": str(self), "code": "conflict", "manifest_conflict": conflict}


class SchemaChanged(ConflictError):
    """The schema of the branch was changed while a write was prepared for the old one."""

    def __init__(self, branch: str) -> None:
        super().__init__(branch)
        self.branch = branch

    def __str__(self) -> str:
        return (
            f"the schema of '{self.branch}' was changed while this write was prepared. Nothing was written."
            " Look at the new schema with `omnigraph schema show` and retry"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "read_set_conflict": {"member": "schema"}}


class PreconditionFailed(ConflictError):
    """The branch is not at the commit that the caller named. ``actual`` is None if it has no commit."""

    def __init__(self, branch: str, expected: str, actual: str | None) -> None:
        super().__init__(branch, expected, actual)
        self.branch = branch
        self.expected = expected
        self.actual = actual

    def __str__(self) -> str:
        actual = "has no commit, and is" if self.actual is None else f"is at commit {self.actual},"
        return (
            f"branch '{self.branch}' {actual} not at {self.expected}; nothing was written. "
            "Read again, and retry with the commit you have read"
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "error": str(self),
            "precondition_failure": {"expected": self.expected, "actual": self.actual},
        }


class StagedFilesRemoved(ConflictError):
    """Files of a write that was prepared for longer than the grace period, and that a cleanup has removed."""

    def __init__(self, file: str) -> None:
        super().__init__(file)
        self.file = file

    def __str__(self) -> str:
        return (
            f"a cleanup has removed {self.file} before this write could commit it; nothing was written. "
            "Retry, and give cleanups a longer --grace than writes take"
        )


class BatchDone(ConflictError):
    """A micro-batch of a stream with nothing to commit: it is committed already, or has no rows."""

    def __init__(self, stream: str, branch: str, batch: int) -> None:
        super().__init__(stream, branch, batch)
        self.stream = stream
        self.branch = branch
        self.batch = batch

    def __str__(self) -> str:
        return (
            f"batch {self.batch} of stream '{self.stream}' has nothing to commit on branch '{self.branch}': it is "
            "there already, or has no rows; go on with the next one"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "stream": self.stream, "branch": self.branch, "batch": self.batch}


class CommitDone(ConflictError):
    """A write whose caller chose the id of its commit, and that is committed already."""

    def __init__(self, branch: str, graph_commit_id: str) -> None:
        super().__init__(branch, graph_commit_id)
        self.branch = branch
        self.graph_commit_id = graph_commit_id

    def __str__(self) -> str:
        return (
            f"branch '{self.branch}' has commit {self.graph_commit_id} already, and it is not made twice;"
            f" `omnigraph commit show {self.graph_commit_id}` shows it"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "branch": self.branch, "graph_commit_id": self.graph_commit_id}


class PublishContention(ConflictError):
    """Other writers published at every attempt of this one."""

    def __init__(self, branch: str, attempts: int) -> None:
        super().__init__(branch, attempts)
        self.branch = branch
        self.attempts = attempts

    def __str__(self) -> str:
        return (
            f"other writers published on branch '{self.branch}' at each of {self.attempts} attempts of this one; "
            "retry in a moment"
        )


class LockTimeout(ConflictError):
    """Another writer held a lock for longer than this one waits."""

    def __init__(self, lock: str, seconds: float, holder: str | None = None) -> None:
        super().__init__(lock, seconds, holder)
        self.lock = lock
        self.seconds = seconds
        self.holder = holder

    def __str__(self) -> str:
        holder = f", held by {self.holder}," if self.holder else ""
        return f"the lock '{self.lock}'{holder} was not free within {self.seconds:g} seconds; retry later"


class MaintenanceRunning(ConflictError):
    """Another process, or another thread of this one, maintains the graph."""

    def __init__(self, address: str) -> None:
        super().__init__(address)
        self.address = address

    def __str__(self) -> str:
        return f"another process is maintaining {self.address}; it does what this one would, so there is no hurry"


class LockLost(ConflictError):
    """A writer that paused for longer than its lease, and may not publish any more."""

    def __init__(self, lock: str) -> None:
        super().__init__(lock)
        self.lock = lock

    def __str__(self) -> str:
        return (
            f"this writer paused for longer than its lease and lost the lock '{self.lock}'; "
            "nothing was written, retry"
        )
