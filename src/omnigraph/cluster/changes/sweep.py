"""The sweep: what a killed apply began is looked at, and the ledger is brought to where the graphs are."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from omnigraph.cluster.codes import problem
from omnigraph.cluster.configuration.resources import Desired
from omnigraph.cluster.observing import Live, Presence, look
from omnigraph.cluster.resource import Applied, digest_of, graph_of
from omnigraph.cluster.state.ledger import ResourceStatus, State, Status
from omnigraph.cluster.state.places import ClusterPlace
from omnigraph.cluster.state.sidecars import Kind, Sidecar, read_sidecars
from omnigraph.errors import ClusterProblem

_KEPT: Final = 50
"""How many records of interrupted operations the ledger keeps."""


@dataclass
class Swept:
    """The state with what was found out, the sidecars that can go once it is written, and those that stay."""

    state: State
    done: list[Sidecar] = field(default_factory=list)
    pending: list[Sidecar] = field(default_factory=list)
    problems: list[ClusterProblem] = field(default_factory=list)
    recovered: list[dict[str, Any]] = field(default_factory=list)


def sweep(place: ClusterPlace, state: State, desired: Desired) -> Swept:
    """Look at every operation that has not ended; nothing is written."""
    swept = Swept(state)
    for sidecar in read_sidecars(place):
        _settle(swept, sidecar, look(sidecar.graph_uri), desired)
    return swept


def pending_problems(sidecars: Sequence[Sidecar]) -> list[ClusterProblem]:
    """What a command that changes nothing says about operations that have not ended."""
    return [
        problem(
            "cluster_recovery_pending",
            f"graph.{each.graph_id}",
            f"{each.kind} {each.operation_id} of {each.started_at} has not ended; `cluster apply` ends it",
        )
        for each in sidecars
    ]


def adopt(state: State, graph: str, desired: Desired, digest: str) -> State:
    """The state in which a graph is known, with a schema."""
    own = f"graph.{graph}"
    wanted = desired.resources.get(own)
    bare = Applied(digest_of({"id": graph, "embedding_provider": None, "blobs": []}))
    known = state.resources.get(own) or (bare if wanted is None else wanted.applied)
    return replace(state, resources={**state.resources, own: known, f"schema.{graph}": Applied(digest)})


def with_status(state: State, address: str, status: Status, code: str, message: str) -> State:
    """The state with what stands against a resource."""
    return replace(state, statuses={**state.statuses, address: ResourceStatus(status, (code,), message)})


def _settle(swept: Swept, sidecar: Sidecar, live: Live, desired: Desired) -> None:
    """Finish or retire one operation, by what is there."""
    graph, own = sidecar.graph_id, f"graph.{sidecar.graph_id}"
    if live.presence is Presence.UNREADABLE:
        swept.pending.append(sidecar)
        swept.problems.append(problem("graph_unreadable", own, str(live.reason)))
    elif sidecar.kind is Kind.DELETE:
        _settle_removal(swept, sidecar, live)
    elif live.presence is Presence.INCOMPLETE:
        swept.problems.append(problem("graph_create_incomplete", own, "its creation was killed; it is made again"))
        _retire(swept, sidecar, "incomplete")
    elif live.schema_digest is None:
        _retire(swept, sidecar, "not_begun")
    elif live.schema_digest == sidecar.desired_schema_digest:
        swept.state = adopt(swept.state, graph, desired, live.schema_digest)
        _retire(swept, sidecar, "rolled_forward")
    elif sidecar.kind is Kind.SCHEMA and _known_schema(swept.state, graph) == live.schema_digest:
        _retire(swept, sidecar, "not_begun")
    else:
        said = f"after {sidecar.kind} {sidecar.operation_id} was killed, its schema is neither old nor new"
        swept.problems.append(problem("actual_applied_state_pending", own, said))
        swept.state = adopt(swept.state, graph, desired, live.schema_digest)
        swept.state = with_status(
            swept.state, f"schema.{graph}", Status.DRIFTED, "actual_applied_state_pending", said
        )
        _retire(swept, sidecar, "drifted")


def _settle_removal(swept: Swept, sidecar: Sidecar, live: Live) -> None:
    if live.presence is Presence.ABSENT:
        swept.state = without_graph(swept.state, sidecar.graph_id)
        if sidecar.approval_id is not None:
            used = {**swept.state.approvals, sidecar.approval_id: used_by(sidecar)}
            swept.state = replace(swept.state, approvals=used)
        _retire(swept, sidecar, "rolled_forward")
    elif live.presence is Presence.GRAPH:
        _retire(swept, sidecar, "not_begun")
    else:
        said = "its removal was killed, and a part of it is still there; it is removed again"
        swept.problems.append(problem("graph_delete_incomplete", f"graph.{sidecar.graph_id}", said))
        swept.pending.append(sidecar)


def without_graph(state: State, graph: str) -> State:
    """The state without a graph, its schema and its stored queries."""
    return replace(
        state,
        resources={name: each for name, each in state.resources.items() if graph_of(name) != graph},
        statuses={name: each for name, each in state.statuses.items() if graph_of(name) != graph},
        observations={name: each for name, each in state.observations.items() if graph_of(name) != graph},
    )


def used_by(sidecar: Sidecar) -> dict[str, Any]:
    """The record of an approval that was used."""
    return {"resource": f"graph.{sidecar.graph_id}", "operation_id": sidecar.operation_id, "consumed_at": _now()}


def _known_schema(state: State, graph: str) -> str | None:
    known = state.resources.get(f"schema.{graph}")
    return None if known is None else known.digest


def _retire(swept: Swept, sidecar: Sidecar, outcome: str) -> None:
    swept.done.append(sidecar)
    record = {"kind": sidecar.kind.value, "graph_id": sidecar.graph_id, "outcome": outcome}
    swept.recovered.append({"operation_id": sidecar.operation_id, **record})
    records = {**swept.state.recoveries, sidecar.operation_id: {**record, "at": _now()}}
    swept.state = replace(swept.state, recoveries=dict(sorted(records.items())[-_KEPT:]))


def _now() -> str:
    return dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
