"""What a plan is made of: changes of resources, and what becomes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from omnigraph.errors import ClusterProblem


class Operation(StrEnum):
    """What happens to a resource."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class Disposition(StrEnum):
    """What apply does about a change."""

    APPLIED = "applied"
    """It makes it."""
    DERIVED = "derived"
    """It is part of another change, such as the schema of a graph that is created."""
    DEFERRED = "deferred"
    """It waits for an approval."""
    BLOCKED = "blocked"
    """It cannot be made as things are."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``conditions`` are the codes of what stands against it, ``metadata_change`` says what of a
    resource changes besides its content."""

    resource: str
    operation: Operation
    disposition: Disposition
    before: str | None = None
    after: str | None = None
    binding_change: bool = False
    metadata_change: str | None = None
    migration: Mapping[str, Any] | None = None
    conditions: tuple[str, ...] = ()
    approval_id: str | None = None

    @property
    def is_made(self) -> bool:
        """Does apply make it, by itself or with another one?"""
        return self.disposition in (Disposition.APPLIED, Disposition.DERIVED)

    def as_json(self) -> dict[str, Any]:
        return {
            "resource": self.resource,
            "operation": self.operation.value,
            "disposition": self.disposition.value,
            "before_digest": self.before,
            "after_digest": self.after,
            "binding_change": self.binding_change,
            "metadata_change": self.metadata_change,
            "migration": None if self.migration is None else dict(self.migration),
            "conditions": list(self.conditions),
            "approval_id": self.approval_id,
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes from the ledger to the configuration, in the order in which apply makes them."""

    root: str
    config_digest: str
    state_revision: int
    state_cas: str | None
    changes: Sequence[Change]
    blast_radius: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """For each change, the resources that are touched by it."""
    problems: Sequence[ClusterProblem] = ()

    @property
    def approvals_required(self) -> list[str]:
        """The resources whose changes wait for an approval."""
        return [each.resource for each in self.changes if "approval_required" in each.conditions]

    def change_of(self, resource: str) -> Change | None:
        return next((each for each in self.changes if each.resource == resource), None)

    def as_json(self) -> dict[str, Any]:
        return {
            "root": self.root,
            "config_digest": self.config_digest,
            "state_revision": self.state_revision,
            "state_cas": self.state_cas,
            "converged": not self.changes,
            "changes": [each.as_json() for each in self.changes],
            "blast_radius": {name: list(each) for name, each in self.blast_radius.items()},
            "approvals_required": self.approvals_required,
            "diagnostics": [each.as_json() for each in self.problems],
        }
