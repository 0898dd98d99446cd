"""What to fix in data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError
from omnigraph.problems import RecordProblem, Violation


class DataError(OmniError):
    """The data does not fit. Nothing of it was written."""


class ConstraintViolation(DataError):
    """Rows that break a rule of the schema. ``violations`` lists the first of them, ``total`` counts all."""

    def __init__(self, violations: Sequence[Violation], total: int) -> None:
        super().__init__(tuple(violations), total)
        self.violations = tuple(violations)
        self.total = total

    def __str__(self) -> str:
        lines = [str(violation) for violation in self.violations]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "violations": [v.as_json() for v in self.violations], "total": self.total}


class RecordError(DataError):
    """Records of a load that cannot be read. ``problems`` lists the first of them, ``total`` counts all."""

    def __init__(self, problems: Sequence[RecordProblem], total: int) -> None:
        super().__init__(tuple(problems), total)
        self.problems = tuple(problems)
        self.total = total

    def __str__(self) -> str:
        lines = [str(problem) for problem in self.problems]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
        return "\n".join(lines)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "problems": [p.as_json() for p in self.problems], "total": self.total}


class KeyConflict(DataError):
    """A strict insert of something that exists already."""

    def __init__(self, table_key: str, ids: Sequence[str], total: int) -> None:
        super().__init__(table_key, tuple(ids), total)
        self.table_key = table_key
        self.ids = tuple(ids)
        self.total = total

    def __str__(self) -> str:
        kind, _, name = self.table_key.partition(":")
        shown = ", ".join(f"'{entity}'" for entity in self.ids)
        more = f" and {self.total - len(self.ids)} more" if self.total > len(self.ids) else ""
        return f"{kind} {name} already has this id: {shown}{more}; use merge to replace what is there"

    def as_json(self) -> dict[str, Any]:
        kind, _, name = self.table_key.partition(":")
        conflict = {"entity_kind": kind, "type_name": name, "entity_id": self.ids[0]}
        return {"error": str(self), "code": "conflict", "key_conflict": conflict, "total": self.total}


class EmbeddingUnavailable(DataError):
    """Vectors that have to be computed and cannot be."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ResourceLimit(DataError):
    """More than one write may carry."""

    def __init__(self, resource: str, limit: int, actual: int) -> None:
        super().__init__(resource, limit, actual)
        self.resource = resource
        self.limit = limit
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.resource}: {self.actual:,} is more than the limit of {self.limit:,}; split the write"

    def as_json(self) -> dict[str, Any]:
        limit = {"resource": self.resource, "limit": self.limit, "actual": self.actual}
        return {"error": str(self), "resource_limit": limit}
