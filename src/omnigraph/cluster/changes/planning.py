"""Planning: how the ledger differs from the configuration, what can be done about it, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from omnigraph.cluster.changes.change import Change, Disposition, Operation, Plan
from omnigraph.cluster.codes import problem
from omnigraph.cluster.configuration.resources import Desired
from omnigraph.cluster.observing import Presence, look
from omnigraph.cluster.resource import Applied, digest_of, graph_of
from omnigraph.cluster.state.approvals import Approval
from omnigraph.cluster.state.ledger import Ledgered
from omnigraph.cluster.state.places import ClusterPlace
from omnigraph.errors import ClusterProblem, OmniError, StorageUnavailable
from omnigraph.opening import open as open_graph

_ORDER: Final = {"provider": 0, "graph": 1, "schema": 2, "query": 3, "policy": 4}


def make_plan(place: ClusterPlace, desired: Desired, ledgered: Ledgered, approvals: Sequence[Approval]) -> Plan:
    """Plan the changes. Nothing is written; live graphs are opened to plan the changes of their schemas."""
    planner = _Planner(place, desired, ledgered, approvals)
    found = sorted(planner.differences(), key=_order)
    for each in sorted(found, key=_is_not_removed_graph):
        planner.decide(each)
    changes = [planner.decided[each.resource] for each in found]
    return Plan(
        place.root,
        desired.digest,
        ledgered.state.revision,
        ledgered.cas,
        changes,
        {each.resource: planner.touched(each) for each in changes},
        (*desired.problems, *planner.problems),
    )


def before_digest(state: Mapping[str, Applied], graph: str) -> str:
    """What a removal of a graph removes: its settings and its schema, as one digest."""
    found = [state.get(f"{kind}.{graph}") for kind in ("graph", "schema")]
    return digest_of([None if each is None else each.digest for each in found])


def _order(change: Change) -> tuple[bool, int, str]:
    """Creations and updates by what builds on what, then removals."""
    is_removal = change.operation is Operation.DELETE
    return is_removal, _ORDER[change.resource.partition(".")[0]], change.resource


def _is_not_removed_graph(change: Change) -> bool:
    """Whether graphs go is decided first: the policy of one that stays for now stays too."""
    return change.operation is not Operation.DELETE or not change.resource.startswith("graph.")


class _Planner:
    """Decides about one change after the other; later ones build on earlier ones."""

    def __init__(
        self, place: ClusterPlace, desired: Desired, ledgered: Ledgered, approvals: Sequence[Approval]
    ) -> None:
        self._place = place
        self._desired = desired
        self._known = ledgered.state.resources
        self._used = ledgered.state.approvals
        self._approvals = approvals
        self.decided: dict[str, Change] = {}
        self.problems: list[ClusterProblem] = []

    def differences(self) -> Iterable[Change]:
        """The changes before anything is decided about them."""
        for address, wanted in self._desired.resources.items():
            known = self._known.get(address)
            if known is None:
                yield Change(address, Operation.CREATE, Disposition.APPLIED, None, wanted.applied.digest)
            elif known != wanted.applied:
                is_bound = known.applies_to != wanted.applied.applies_to
                yield Change(
                    address,
                    Operation.UPDATE,
                    Disposition.APPLIED,
                    known.digest,
                    wanted.applied.digest,
                    is_bound,
                    _metadata_change(known, wanted.applied),
                )
        for address, known in self._known.items():
            if address not in self._desired.resources:
                yield Change(address, Operation.DELETE, Disposition.APPLIED, known.digest)

    def decide(self, change: Change) -> None:
        """Find out what becomes of a change."""
        kind, _, name = change.resource.partition(".")
        if kind == "policy" and (kept := self._kept_graph(change)) is not None:
            said = f"it applies to {kept}, which is there until its removal is approved"
            found = self._against(change, Disposition.DEFERRED, "apply_dependency_blocked", said)
        elif change.operation is Operation.DELETE:
            found = self._removal(change)
        elif (blocked := self._blocked_need(change)) is not None:
            said = f"it waits for {blocked}"
            found = self._against(change, Disposition.BLOCKED, "apply_dependency_blocked", said)
        elif kind == "graph" and change.operation is Operation.CREATE:
            found = self._creation(change, name)
        elif kind == "schema":
            found = self._schema(change, name)
        else:
            found = change
        self.decided[change.resource] = found

    def touched(self, change: Change) -> list[str]:
        """The resources that build on the one that is changed, and in the end on those."""
        if change.operation is Operation.DELETE:
            graph = graph_of(change.resource) if change.resource.startswith("graph.") else None
            return [] if graph is None else [each for each in sorted(self._known) if _is_part(each, graph)]
        found: dict[str, None] = {change.resource: None}
        for address in sorted(self._desired.resources, key=lambda each: (_ORDER[each.partition(".")[0]], each)):
            wanted = self._desired.resources[address]
            bound = (f"graph.{each}" for each in wanted.applied.applies_to or ())
            if any(need in found for need in (*wanted.needs, *bound)):
                found[address] = None
        return [each for each in found if each != change.resource]

    def _kept_graph(self, change: Change) -> str | None:
        """A graph that a policy applies to now, and whose removal waits."""
        known = self._known.get(change.resource)
        bound = () if known is None else known.applies_to or ()
        removals = (self.decided.get(f"graph.{each}") for each in bound)
        return next((each.resource for each in removals if each is not None and _waits(each)), None)

    def _blocked_need(self, change: Change) -> str | None:
        needs = self._desired.resources[change.resource].needs
        return next((each for each in needs if each in self.decided and not self.decided[each].is_made), None)

    def _creation(self, change: Change, graph: str) -> Change:
        live = look(self._place.graph_uri(graph))
        if live.presence in (Presence.ABSENT, Presence.INCOMPLETE):
            return change
        if live.presence is Presence.GRAPH:
            said = "there is a graph that the ledger does not know; `omnigraph cluster refresh` takes it in"
        else:
            said = f"something else is there: {live.reason}; move it away"
        return self._against(change, Disposition.BLOCKED, "graph_root_exists", said)

    def _schema(self, change: Change, graph: str) -> Change:
        created = self.decided.get(f"graph.{graph}")
        if created is not None and created.operation is Operation.CREATE:
            return replace(change, disposition=Disposition.DERIVED)
        try:
            with open_graph(self._place.graph_uri(graph), read_only=True) as live:
                planned = live.plan_schema(self._desired.schemas[graph].source.text)
                version = live.snapshot().manifest_version
        except StorageUnavailable:
            raise
        except OmniError as error:
            said = f"{error}; `omnigraph cluster refresh` looks at what is there"
            return self._against(change, Disposition.BLOCKED, "graph_unreadable", said)
        change = replace(change, migration={**planned.as_json(), "manifest_version": version})
        if planned.supported:
            return change
        refusals = [str(step) for step in planned.steps.steps if step.kind == "unsupported_change"]
        said = "; ".join(refusals)
        return self._against(change, Disposition.BLOCKED, "apply_unsupported_change", said)

    def _removal(self, change: Change) -> Change:
        kind, _, _ = change.resource.partition(".")
        graph = graph_of(change.resource)
        if graph is None or f"graph.{graph}" in self._desired.resources:
            return change
        if kind != "graph":
            parent = self.decided.get(f"graph.{graph}")
            if parent is None:
                return change
            is_made = parent.disposition is Disposition.APPLIED
            return replace(change, disposition=Disposition.DERIVED if is_made else Disposition.DEFERRED)
        return self._graph_removal(change, graph)

    def _graph_removal(self, change: Change, graph: str) -> Change:
        before = before_digest(self._known, graph)
        change = replace(change, before=before)
        given = [
            each
            for each in self._approvals
            if each.resource == change.resource
            and each.operation == change.operation
            and each.consumed_at is None
            and each.approval_id not in self._used
        ]
        fitting = [each for each in given if each.fits(self._desired.digest, before, None)]
        if fitting:
            return replace(change, approval_id=fitting[-1].approval_id)
        for each in given:
            said = f"approval {each.approval_id} of {each.approved_by} is about another state of the cluster"
            self.problems.append(problem("approval_stale", change.resource, said))
        said = f"the graph and all its rows go; `omnigraph cluster approve {change.resource}` agrees to it"
        return self._against(change, Disposition.DEFERRED, "approval_required", said)

    def _against(self, change: Change, disposition: Disposition, code: str, message: str) -> Change:
        self.problems.append(problem(code, change.resource, message))
        return replace(change, disposition=disposition, conditions=(*change.conditions, code))


def _waits(change: Change) -> bool:
    return change.operation is Operation.DELETE and change.disposition is Disposition.DEFERRED


def _is_part(address: str, graph: str) -> bool:
    return graph_of(address) == graph and not address.startswith("graph.")


def _metadata_change(known: Applied, wanted: Applied) -> str | None:
    """What of a resource changes besides its content."""
    if known.applies_to != wanted.applies_to:
        return "policy_bindings"
    if (known.embedding_provider, known.embedding_profile) != (
        wanted.embedding_provider,
        wanted.embedding_profile,
    ):
        return "embedding_profile"
    return "external_blobs" if known.external_blob_policy != wanted.external_blob_policy else None
