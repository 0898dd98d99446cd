"""Data that does not fit the schema or the limits: fix the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.errors.base import OmniError
from omnigraph.problems import ErrorGroup, RecordProblem, Violation


class DataError(OmniError):
    """The data does not fit the schema or the limits. Nothing of it was written."""


class _ListedError(DataError):
    """Many errors at once: the first are listed, all are counted, and ``groups`` summarises them by reason.

    ``hint`` says what can be done, if the error ended a load.
    """

    total: int
    groups: tuple[ErrorGroup, ...]
    hint: str | None = None

    def _text(self, listed: Sequence[Violation | RecordProblem]) -> str:
        """The listed errors; if there are more, the summary and the hint follow."""
        lines = [str(each) for each in listed]
        if self.total > len(lines):
            lines.append(f"… and {self.total - len(lines)} more")
            if self.groups:
                lines += [f"{self.total} in all:", *map(str, self.groups)]
            if self.hint is not None:
                lines.append(f"hint: {self.hint}")
        return "\n".join(lines)

    def _about_all(self) -> dict[str, Any]:
        return {"total": self.total, "groups": [group.as_json() for group in self.groups], "hint": self.hint}


class ConstraintViolation(_ListedError):
    """Rows that break a constraint of the schema. ``violations`` lists the first of them, ``total`` counts them,
    and ``groups`` says how many there are by rule and by missing id."""

    def __init__(self, violations: Sequence[Violation], total: int, groups: Sequence[ErrorGroup] = ()) -> None:
        super().__init__(tuple(violations), total, tuple(groups))
        self.violations = tuple(violations)
        self.total = total
        self.groups = tuple(groups)

    def __str__(self) -> str:
        return self._text(self.violations)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "violations": [v.as_json() for v in self.violations], **self._about_all()}


class RecordError(_ListedError):
    """Records of a load that cannot be read. ``problems`` lists the first of them, ``total`` counts them,
    and ``groups`` says how many there are by reason."""

    def __init__(self, problems: Sequence[RecordProblem], total: int, groups: Sequence[ErrorGroup] = ()) -> None:
        super().__init__(tuple(problems), total, tuple(groups))
        self.problems = tuple(problems)
        self.total = total
        self.groups = tuple(groups)

    def __str__(self) -> str:
        return self._text(self.problems)

    def as_json(self) -> dict[str, Any]:
        return {"error": str(self), "problems": [p.as_json() for p in self.problems], **self._about_all()}


class BadValue(DataError):
    """A value that its property cannot hold."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class KeyConflict(DataError):
    """An insert or append of ids that exist, or a load with ``repeated`` ids, which several of its records have.

    ``ids`` lists the first of them, ``total`` counts all.
    """

    def __init__(self, table_key: str, ids: Sequence[str], total: int, repeated: bool = False) -> None:
        super().__init__(table_key, tuple(ids), total, repeated)
        self.table_key = table_key
        self.ids = tuple(ids)
        self.total = total
        self.repeated = repeated

    def __str__(self) -> str:
        kind, _, name = self.table_key.partition(":")
        shown = ", ".join(f"'{entity}'" for entity in self.ids)
        more = f" and {self.total - len(self.ids)} more" if self.total > len(self.ids) else ""
        which = "this id" if self.total == 1 else "these ids"
        if self.repeated:
            remedy = "keep one record of each, or load with mode merge, where the last one wins"
            return f"several records of {kind} {name} have {which}: {shown}{more}; {remedy}"
        return f"{kind} {name} already has {which}: {shown}{more}; load with mode merge, or update what is there"

    def as_json(self) -> dict[str, Any]:
        kind, _, name = self.table_key.partition(":")
        conflict = {"entity_kind": kind, "type_name": name, "entity_id": self.ids[0]}
        return {"error": str(self), "code": "conflict", "key_conflict": conflict, "total": self.total}


class EmbeddingUnavailable(DataError):
    """Vectors that an embedding provider has to compute, and cannot."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


class ResourceLimit(DataError):
    """A write that is larger than the engine takes at once."""

    def __init__(self, resource: str, limit: int, actual: int) -> None:
        super().__init__(resource, limit, actual)
        self.resource = resource
        self.limit = limit
        self.actual = actual

    def __str__(self) -> str:
        return f"{self.resource}: {self.actual:,} is more than the limit of {self.limit:,}; send less at a time"

    def as_json(self) -> dict[str, Any]:
        limit = {"resource": self.resource, "limit": self.limit, "actual": self.actual}
        return {"error": str(self), "resource_limit": limit}
