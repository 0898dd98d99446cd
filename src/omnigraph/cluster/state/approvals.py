"""Approvals: an operator agrees to one change, as it is planned at that moment, and to nothing else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.cluster.codes import problem
from omnigraph.cluster.state.places import APPROVALS, FOLDER, ClusterPlace
from omnigraph.errors import ClusterProblem, ObjectDamaged
from omnigraph.manifest.ids import fresh_id
from omnigraph.storage.control.sealed import optional_text, seal, text, unseal

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval of one operation on one resource, bound to the configuration and to the resource's digests."""

    approval_id: str
    resource: str
    operation: str
    reason: str
    bound_config_digest: str
    bound_before_digest: str | None
    bound_after_digest: str | None
    approved_by: str
    created_at: str
    consumed_at: str | None = None
    consumed_by_operation: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"schema_version": _VERSION} | {name: getattr(self, name) for name in self.__slots__}

    def fits(self, config_digest: str, before: str | None, after: str | None) -> bool:
        """Is it about exactly this change?"""
        bound = (self.bound_config_digest, self.bound_before_digest, self.bound_after_digest)
        return bound == (config_digest, before, after)


def new_approval(
    resource: str, operation: str, reason: str, digests: tuple[str, str | None, str | None], who: str
) -> Approval:
    """An approval of now; the digests are those of the configuration, and of the resource before and after."""
    return Approval(fresh_id(), resource, operation, reason, *digests, who, _now())


def write_approval(place: ClusterPlace, approval: Approval) -> None:
    """Keep an approval."""
    place.objects.put(f"{APPROVALS}/{approval.approval_id}.json", seal(approval.as_json()))


def read_approvals(place: ClusterPlace) -> tuple[list[Approval], list[ClusterProblem]]:
    """All approvals, oldest first, and which ones cannot be read."""
    found: list[Approval] = []
    problems: list[ClusterProblem] = []
    for key in place.objects.list(APPROVALS):
        stored = place.objects.get(key)
        try:
            fields = unseal(key, stored.content) if stored is not None else None
            if fields is not None:
                found.append(_approval(fields))
        except (ObjectDamaged, ValueError, KeyError, TypeError) as error:
            reason = error.reason if isinstance(error, ObjectDamaged) else str(error)
            problems.append(problem("approval_unreadable", f"{FOLDER}/{key}", f"it is not used: {reason}"))
    return found, problems


def consume(place: ClusterPlace, approvals: Iterable[Approval], used: dict[str, str]) -> None:
    """Note on approvals that they were used, by which operation; they are kept."""
    for each in approvals:
        if each.approval_id in used and each.consumed_at is None:
            operation = used[each.approval_id]
            write_approval(place, replace(each, consumed_at=_now(), consumed_by_operation=operation))


def _approval(stored: dict[str, Any]) -> Approval:
    if stored["schema_version"] != _VERSION:
        raise ValueError(f"it is of version {stored['schema_version']}")
    return Approval(
        text(stored["approval_id"]),
        text(stored["resource"]),
        text(stored["operation"]),
        text(stored["reason"]),
        text(stored["bound_config_digest"]),
        optional_text(stored["bound_before_digest"]),
        optional_text(stored["bound_after_digest"]),
        text(stored["approved_by"]),
        text(stored["created_at"]),
        optional_text(stored.get("consumed_at")),
        optional_text(stored.get("consumed_by_operation")),
    )


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
