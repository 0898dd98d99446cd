"""What an operator has to look at."""

from __future__ import annotations

from typing import Any

from omnigraph.errors.base import OmniError


class StorageError(OmniError):
    """Something outside the graph is wrong; a person has to look at it."""


class RecoveryBlocked(StorageError):
    """What a dead writer left behind cannot be resolved without losing another writer's work."""

    def __init__(self, operation_id: str, reason: str) -> None:
        super().__init__(operation_id, reason)
        self.operation_id = operation_id
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"the interrupted write {self.operation_id} cannot be recovered: {self.reason}. Reads still work; "
            "its sidecar is kept for an operator"
        )

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "recovery_required": {"operation_id": self.operation_id}}


class ObjectDamaged(StorageError):
    """Something of the graph on the store that is missing, truncated or changed."""

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
    """A sidecar that is damaged or from a newer release."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(key, reason)
        self.key = key
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"{self.key} cannot be read: {self.reason}. Writes are refused until it is resolved and the file is "
            "kept; reads still work"
        )


class TableDrift(StorageError):
    """A table moved, and neither the manifest nor a sidecar knows why."""

    def __init__(self, table_key: str, expected: int, reason: str) -> None:
        super().__init__(table_key, expected, reason)
        self.table_key = table_key
        self.expected = expected
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"table {self.table_key} has moved past version {self.expected}, which the graph knows: {self.reason}"
        )


class StorageUnavailable(StorageError):
    """The store refused an operation or failed."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(address, reason)
        self.address = address
        self.reason = reason

    def __str__(self) -> str:
        return f"the store at {self.address} failed: {self.reason}"


class IncompleteFile(StorageError):
    """A file that was written has fewer bytes in the store than were written: a full disk, a limit on sizes."""

    def __init__(self, path: str, expected: int | None, found: int) -> None:
        super().__init__(path, expected, found)
        self.path = path
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        of = "not all of its bytes" if self.expected is None else f"{self.found} of its {self.expected} bytes"
        return f"only {of} reached {self.path}. Look for a full disk, or a limit on the sizes of files"


class StoreUnsupported(StorageError):
    """A store without conditional puts, on which two writers could both believe they won."""

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
    """A graph whose format is from the future."""

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
