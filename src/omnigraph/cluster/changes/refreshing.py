"""Refresh and import: the ledger learns what is really there, so that the next apply mends what is not."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnigraph.cluster.changes.session import Session, session
from omnigraph.cluster.changes.sweep import adopt, sweep, with_status
from omnigraph.cluster.codes import problem, refused
from omnigraph.cluster.configuration.resources import Desired, load_desired
from omnigraph.cluster.observing import Live, Presence, look
from omnigraph.cluster.state.catalog import has_payload, read_payload, write_payload
from omnigraph.cluster.state.ledger import PATH, Ledgered, ResourceStatus, State, Status
from omnigraph.cluster.state.places import ClusterPlace
from omnigraph.errors import ClusterProblem


@dataclass(frozen=True, slots=True)
class Refreshed:
    """What was found, and whether the ledger had to be written."""

    root: str
    ledgered: Ledgered
    is_written: bool
    recovered: Sequence[dict[str, Any]]
    problems: Sequence[ClusterProblem]

    def as_json(self) -> dict[str, Any]:
        return {
            "root": self.root,
            "state_written": self.is_written,
            "state_revision": self.ledgered.state.revision,
            "state_cas": self.ledgered.cas,
            "observations": {name: dict(each) for name, each in self.ledgered.state.observations.items()},
            "recovered": list(self.recovered),
            "diagnostics": [each.as_json() for each in self.problems],
        }


def refresh(folder: Path) -> Refreshed:
    """Look at every graph and every payload of the ledger, and note what is missing or has changed."""
    desired = load_desired(folder)
    with session(desired, "refresh") as held:
        if held.ledgered is None:
            said = "there is no ledger to refresh; run `omnigraph cluster import`, or `apply`"
            raise refused(held.place.root, "cluster_state_missing", PATH, said)
        return _observed(held, held.ledgered.state)


def import_cluster(folder: Path) -> Refreshed:
    """Make the ledger of a cluster that has none, of the graphs and payloads that are there."""
    desired = load_desired(folder)
    with session(desired, "import") as held:
        if held.ledgered is not None:
            said = "there is a ledger; `omnigraph cluster refresh` compares it with what is there"
            raise refused(held.place.root, "cluster_state_exists", PATH, said)
        return _observed(held, _with_payloads(held.place, State(), desired))


def _observed(held: Session, state: State) -> Refreshed:
    swept = sweep(held.place, state, held.desired)
    state, problems = swept.state, list(swept.problems)
    named = {each.removeprefix("graph.") for each in held.desired.resources if each.startswith("graph.")}
    for graph in sorted(named.union(state.graphs)):
        live = look(held.place.graph_uri(graph))
        state = _with_graph(state, graph, live, held.desired, problems)
    for address, known in list(state.resources.items()):
        found = read_payload(held.place, address, known.digest) if has_payload(address) else b""
        if isinstance(found, ClusterProblem):
            problems.append(found)
            left = {name: each for name, each in state.resources.items() if name != address}
            state = with_status(replace(state, resources=left), address, Status.DRIFTED, found.code, found.message)
    if set(state.graphs).difference(held.base.state.graphs):
        state = _with_policies(held.place, state, held.desired)
    ledgered, is_written = held.commit(state, swept.done)
    return Refreshed(held.place.root, ledgered, is_written, swept.recovered, tuple(problems))


def _with_graph(state: State, graph: str, live: Live, desired: Desired, problems: list[ClusterProblem]) -> State:
    """The state with what was seen of a graph."""
    own, schema = f"graph.{graph}", f"schema.{graph}"
    if live.presence is Presence.GRAPH and live.schema_digest is not None:
        known = state.resources.get(schema)
        is_known = own in state.resources
        state = adopt(state, graph, desired, live.schema_digest)
        if is_known and (known is None or known.digest != live.schema_digest):
            said = "its main has another schema than was applied; the next apply changes it back"
            problems.append(problem("schema_drift", schema, said))
            state = with_status(state, schema, Status.DRIFTED, "schema_drift", said)
        elif not is_known:
            fresh = {name: ResourceStatus(Status.APPLIED) for name in (own, schema)}
            state = replace(state, statuses={**state.statuses, **fresh})
    elif own in state.resources and live.presence in (Presence.ABSENT, Presence.INCOMPLETE):
        said = "it is not there; the next apply creates it, empty"
        problems.append(problem("graph_missing", own, said))
        left = {name: each for name, each in state.resources.items() if name not in (own, schema)}
        state = with_status(replace(state, resources=left), own, Status.DRIFTED, "graph_missing", said)
    elif own in state.resources:
        said = str(live.reason)
        problems.append(problem("graph_unreadable", own, said))
        state = with_status(state, own, Status.ERROR, "graph_unreadable", said)
    return _with_observation(state, own, live)


def _with_observation(state: State, own: str, live: Live) -> State:
    """The state with an observation, whose time is that at which it was first so."""
    seen, before = live.as_json(), dict(state.observations.get(own, {}))
    before.pop("observed_at", None)
    if before == seen:
        return state
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    return replace(state, observations={**state.observations, own: {**seen, "observed_at": now}})


def _with_policies(place: ClusterPlace, state: State, desired: Desired) -> State:
    """The state with all policies of the configuration: a graph that is taken in is not served without its own."""
    known = dict(state.resources)
    for address, each in desired.resources.items():
        if address.startswith("policy.") and address not in known and each.payload is not None:
            write_payload(place, address, each.payload)
            known[address] = each.applied
    return replace(state, resources=known)


def _with_payloads(place: ClusterPlace, state: State, desired: Desired) -> State:
    """The state with the stored queries and policies that the catalog has, as the configuration wants them."""
    there = {
        address: each.applied
        for address, each in desired.resources.items()
        if has_payload(address) and isinstance(read_payload(place, address, each.applied.digest), bytes)
    }
    statuses = {address: ResourceStatus(Status.APPLIED) for address in there}
    return replace(state, resources={**state.resources, **there}, statuses={**state.statuses, **statuses})
