"""The ledger: what has been applied. One object, replaced as a whole by a command that has read the last one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from omnigraph.cluster.codes import refused
from omnigraph.cluster.resource import Applied, digest_bytes
from omnigraph.cluster.state.places import FOLDER, STATE, ClusterPlace
from omnigraph.errors import ObjectDamaged
from omnigraph.storage.control.sealed import number, optional_text, seal, text, texts, unseal

VERSION: Final = 1
_DAMAGE: Final = (ValueError, KeyError, TypeError, AttributeError)
PATH: Final = f"{FOLDER}/{STATE}"


class Status(StrEnum):
    """How it stands with a resource."""

    PENDING = "pending"
    PLANNED = "planned"
    APPLYING = "applying"
    APPLIED = "applied"
    DRIFTED = "drifted"
    BLOCKED = "blocked"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class ResourceStatus:
    """How it stands with a resource, the codes of what is wrong, and the first of them in words."""

    status: Status
    conditions: tuple[str, ...] = ()
    message: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {"status": self.status.value, "conditions": list(self.conditions), "message": self.message}


Records = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class State:
    """The content of the ledger. Secrets are never in it, only the names of their variables."""

    revision: int = 0
    config_digest: str | None = None
    resources: Mapping[str, Applied] = field(default_factory=dict)
    statuses: Mapping[str, ResourceStatus] = field(default_factory=dict)
    approvals: Records = field(default_factory=dict)
    """The approvals that were used, by their ids."""
    recoveries: Records = field(default_factory=dict)
    """What became of interrupted operations, by their ids."""
    observations: Records = field(default_factory=dict)
    """What was seen of each graph, by its address."""

    def as_json(self) -> dict[str, Any]:
        return {
            "version": VERSION,
            "state_revision": self.revision,
            "applied_revision": {
                "config_digest": self.config_digest,
                "resources": {name: each.as_json() for name, each in sorted(self.resources.items())},
            },
            "resource_statuses": {name: each.as_json() for name, each in sorted(self.statuses.items())},
            "approval_records": {name: dict(each) for name, each in sorted(self.approvals.items())},
            "recovery_records": {name: dict(each) for name, each in sorted(self.recoveries.items())},
            "observations": {name: dict(each) for name, each in sorted(self.observations.items())},
        }

    @property
    def graphs(self) -> list[str]:
        """The graphs that the ledger has."""
        return sorted(name.removeprefix("graph.") for name in self.resources if name.startswith("graph."))


@dataclass(frozen=True, slots=True)
class Ledgered:
    """The state that was read, and what names exactly that content. Without a token there is no ledger yet."""

    state: State = State()
    token: str | None = None
    cas: str | None = None


def read_ledger(place: ClusterPlace) -> Ledgered | None:
    """The ledger; None if there is none, and ClusterRefused if it cannot be read."""
    found = place.objects.get(STATE)
    if found is None:
        return None
    try:
        state = _state(unseal(PATH, found.content))
    except (*_DAMAGE, ObjectDamaged) as error:
        reason = error.reason if isinstance(error, ObjectDamaged) else str(error)
        said = f"{reason}; put a copy of it back, or move it away and run `omnigraph cluster import`"
        raise refused(place.root, "cluster_state_unreadable", PATH, said) from error
    return Ledgered(state, found.token, digest_bytes(found.content))


def require_ledger(place: ClusterPlace) -> Ledgered:
    """The ledger; ClusterRefused if there is none."""
    found = read_ledger(place)
    if found is None:
        said = "the cluster has no ledger; run `omnigraph cluster apply`, or `import` if its graphs are there"
        raise refused(place.root, "cluster_state_missing", PATH, said)
    return found


def write_ledger(place: ClusterPlace, base: Ledgered, state: State) -> Ledgered:
    """Replace the ledger that was read; ClusterRefused if it is another one by now."""
    written = replace(state, revision=base.state.revision + 1)
    content = seal(written.as_json())
    if base.token is None:
        token = place.objects.put_if_absent(STATE, content)
    else:
        token = place.objects.put_if_match(STATE, content, base.token)
    if token is None:
        said = "another process wrote the ledger meanwhile; what this one did is found by the next `cluster apply`"
        raise refused(place.root, "state_cas_mismatch", PATH, said)
    return Ledgered(written, token, digest_bytes(content))


def _state(stored: dict[str, Any]) -> State:
    if stored["version"] != VERSION:
        raise ValueError(f"it is of version {stored['version']}, and this release reads {VERSION}")
    applied = stored["applied_revision"]
    return State(
        number(stored["state_revision"]),
        optional_text(applied.get("config_digest")),
        {text(name): _applied(each) for name, each in applied["resources"].items()},
        {
            name: ResourceStatus(
                Status(each["status"]), texts(each["conditions"]), optional_text(each.get("message"))
            )
            for name, each in stored["resource_statuses"].items()
        },
        _records(stored["approval_records"]),
        _records(stored["recovery_records"]),
        _records(stored["observations"]),
    )


def _applied(stored: dict[str, Any]) -> Applied:
    bound = stored.get("applies_to")
    profile, blobs = (stored.get(name) for name in ("embedding_profile", "external_blob_policy"))
    if not isinstance(profile, dict | None) or not isinstance(blobs, dict | None):
        raise ValueError("a profile, or an allow list, is no object")
    provider = optional_text(stored.get("embedding_provider"))
    return Applied(text(stored["digest"]), None if bound is None else texts(bound), provider, profile, blobs)


def _records(stored: dict[str, Any]) -> Records:
    return {text(name): dict(each) for name, each in stored.items()}
