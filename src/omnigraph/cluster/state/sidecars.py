"""Sidecars: what is about to be done to a graph, written before it and removed after the ledger says so."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from omnigraph.cluster.codes import refused
from omnigraph.cluster.state.places import FOLDER, RECOVERIES, ClusterPlace
from omnigraph.errors import ObjectDamaged
from omnigraph.manifest.ids import fresh_id
from omnigraph.storage.control.sealed import optional_number, optional_text, seal, text, unseal

_VERSION: Final = 1


class Kind(StrEnum):
    """What is done to a graph."""

    CREATE = "graph_create"
    SCHEMA = "schema_apply"
    DELETE = "graph_delete"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """One operation on one graph. ``state_cas_base`` is the ledger it began with."""

    operation_id: str
    started_at: str
    kind: Kind
    graph_id: str
    graph_uri: str
    actor: str | None = None
    observed_manifest_version: int | None = None
    desired_schema_digest: str | None = None
    state_cas_base: str | None = None
    approval_id: str | None = None

    @property
    def key(self) -> str:
        return f"{RECOVERIES}/{self.operation_id}.json"

    def as_json(self) -> dict[str, Any]:
        return {"schema_version": _VERSION} | {name: getattr(self, name) for name in self.__slots__}


def begin(place: ClusterPlace, kind: Kind, graph: str, **more: Any) -> Sidecar:
    """Write the sidecar of an operation that begins now."""
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    sidecar = Sidecar(fresh_id(), now, kind, graph, place.graph_uri(graph), **more)
    place.objects.put(sidecar.key, seal(sidecar.as_json()))
    return sidecar


def end(place: ClusterPlace, sidecar: Sidecar) -> None:
    """Remove the sidecar of an operation that the ledger knows the end of."""
    place.objects.delete(sidecar.key)


def read_sidecars(place: ClusterPlace) -> list[Sidecar]:
    """The sidecars of operations that have not ended, oldest first; ClusterRefused if one cannot be read."""
    found = []
    for key in place.objects.list(RECOVERIES):
        stored = place.objects.get(key)
        if stored is None:
            continue
        try:
            found.append(_sidecar(unseal(key, stored.content)))
        except (ObjectDamaged, ValueError, KeyError, TypeError) as error:
            reason = error.reason if isinstance(error, ObjectDamaged) else str(error)
            said = f"{reason}; look at the graphs, remove it, and run `omnigraph cluster refresh`"
            raise refused(place.root, "recovery_unattributable", f"{FOLDER}/{key}", said) from error
    return found


def _sidecar(stored: dict[str, Any]) -> Sidecar:
    if stored["schema_version"] != _VERSION:
        raise ValueError(f"it is of version {stored['schema_version']}")
    return Sidecar(
        text(stored["operation_id"]),
        text(stored["started_at"]),
        Kind(text(stored["kind"])),
        text(stored["graph_id"]),
        text(stored["graph_uri"]),
        optional_text(stored["actor"]),
        optional_number(stored["observed_manifest_version"]),
        optional_text(stored["desired_schema_digest"]),
        optional_text(stored["state_cas_base"]),
        optional_text(stored["approval_id"]),
    )
