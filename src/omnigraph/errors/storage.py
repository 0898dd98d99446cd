"""Failures of the store, and a graph that is damaged: ask an operator."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class StorageError(OmniError):
    """The store failed, or what it holds is damaged. An operator has to look at it."""


class RecoveryBlocked(StorageError):
    """A write that was interrupted and can be neither finished nor undone without losing other work."""

    def __init__(self, operation_id: str, reason: str) -> None:
        super().__init__(operation_id, reason)
        self.operation_id = operation_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the interrupted write {self.operation_id} can be neither finished nor undone: {self.reason}. "
            "Reads still work. Undo what other programs did to the tables, or restore the graph from a copy; the "
            "sidecar of the write is kept"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "recovery_required": {"operation_id": self.operation_id}}


class ObjectDamaged(StorageError):
    """An object of the graph that is missing from the store, truncated or changed."""

    def __init__(self, key: str, reason: str, remedy: str = "restore it from a copy of the graph") -> None:
        super().__init__(key, reason, remedy)
        self.key = key
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.key} is damaged: {self.reason}; {self.remedy}"

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "object": self.key, "reason": self.reason}


class SidecarUnreadable(StorageError):
    """The sidecar of an interrupted write that is damaged, or that a newer release has written (``is_newer``)."""

    def __init__(self, key: str, reason: str, is_newer: bool = False) -> None:
        super().__init__(key, reason, is_newer)
        self.key = key
        self.reason = reason
        self.is_newer = is_newer

    def __str__(self) -> str:
        give_up = "or give the write up with `omnigraph repair --confirm --force`"
        remedy = "Upgrade omnigraph" if self.is_newer else f"Restore it from a copy of the graph, {give_up}"
        return f"{self.key} cannot be read: {self.reason}. Reads still work, and writes are refused. {remedy}"


class TableDrift(StorageError):
    """A table is at a version that neither the manifest nor a sidecar explains."""

    def __init__(self, table_key: str, expected: int, reason: str) -> None:
        super().__init__(table_key, expected, reason)
        self.table_key = table_key
        self.expected = expected
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"table {self.table_key} is past version {self.expected}, the newest one of the graph: {self.reason}"
        )


class TableMoved(StorageError):
    """A table that is not at the version the writer saw. Its callers turn it into the conflict that fits."""

    def __init__(self, location: str, expected: int) -> None:
        super().__init__(location, expected)
        self.location = location
        self.expected = expected

    def __str__(self) -> str:
        return f"table {self.location} moved past version {self.expected}; read again and retry"


class StorageUnavailable(StorageError):
    """The store refused an operation, or did not complete it."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"the store at {self.address} failed: {self.reason}"


class IncompleteFile(StorageError):
    """A file of which the store kept fewer bytes than were written, for example on a full disk."""

    def __init__(self, path: str, expected: int | None, found: int) -> None:
        super().__init__(path, expected, found)
        self.path = path
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        of = "not all of its bytes" if self.expected is None else f"{self.found} of its {self.expected} bytes"
        return f"only {of} reached {self.path}. Look for a full disk, or a limit on the sizes of files"


class StoreUnsupported(StorageError):
    """A store without conditional puts, on which two writers could both take their commit for published."""

    def __init__(self, address: str, store: str) -> None:
        super().__init__(address, store)
        self.address = address
        self.store = store

    def __str__(self) -> str:
        return (
            f"the store {self.store} does not enforce conditional puts, so commits to {self.address} could be lost"
            "; use a store that supports If-None-Match and If-Match"
        )


class UpgradeRequired(StorageError):
    """A graph of a newer release. ``found`` is its format, ``known`` the newest one that this release reads."""

    def __init__(self, address: str, found: int, known: int) -> None:
        super().__init__(address, found, known)
        self.address = address
        self.found = found
        self.known = known

    def __str__(self) -> str:
        return (
            f"{self.address} has internal schema {self.found}, and this release knows up to {self.known}; "
            "upgrade omnigraph first"
        )
