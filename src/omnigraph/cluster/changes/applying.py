"""Applying: graphs are created, schemas changed, payloads written, graphs removed; the ledger is written last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from omnigraph.cluster.changes.change import Change, Disposition, Operation, Plan
from omnigraph.cluster.changes.planning import make_plan
from omnigraph.cluster.changes.session import Session, session
from omnigraph.cluster.changes.sweep import Swept, adopt, pending_problems, sweep, used_by, without_graph
from omnigraph.cluster.codes import is_wrong, problem
from omnigraph.cluster.configuration.resources import load_desired
from omnigraph.cluster.resource import graph_of
from omnigraph.cluster.state.approvals import Approval, consume, read_approvals
from omnigraph.cluster.state.catalog import write_payload
from omnigraph.cluster.state.ledger import Ledgered, ResourceStatus, State, Status
from omnigraph.cluster.state.sidecars import Kind, Sidecar, begin, end, read_sidecars
from omnigraph.errors import ClusterProblem, OmniError, Outcome, StorageError
from omnigraph.failpoints import hit
from omnigraph.opening import create_graph
from omnigraph.opening import open as open_graph
from omnigraph.storage import layout
from omnigraph.storage.address import parse_address
from omnigraph.storage.removal import remove_all, remove_table

_DONE: Final = "done"
_FAILED: Final = "failed"


@dataclass(frozen=True, slots=True)
class Applying:
    """What apply did. It has converged if nothing is left to do."""

    plan: Plan
    ledgered: Ledgered
    is_written: bool
    outcomes: Sequence[tuple[Change, str]]
    recovered: Sequence[dict[str, Any]]
    problems: Sequence[ClusterProblem]
    is_converged: bool

    @property
    def is_failed(self) -> bool:
        """Did a change fail that could have been made?"""
        return is_wrong(self.problems)

    def as_json(self) -> dict[str, Any]:
        return {
            "root": self.plan.root,
            "config_digest": self.plan.config_digest,
            "converged": self.is_converged,
            "state_written": self.is_written,
            "state_revision": self.ledgered.state.revision,
            "state_cas": self.ledgered.cas,
            "changes": [{**change.as_json(), "outcome": outcome} for change, outcome in self.outcomes],
            "approvals_required": self.plan.approvals_required,
            "recovered": list(self.recovered),
            "diagnostics": [each.as_json() for each in self.problems],
        }


def plan_cluster(folder: Path) -> Plan:
    """What apply would do. Nothing is written but the lock."""
    desired = load_desired(folder)
    with session(desired, "plan") as held:
        approvals, problems = read_approvals(held.place)
        found = make_plan(held.place, desired, held.base, approvals)
        problems += pending_problems(read_sidecars(held.place))
        return replace(found, problems=(*found.problems, *problems))


def apply_cluster(folder: Path, actor: str | None = None) -> Applying:
    """Bring the cluster to its configuration, as far as possible. What was killed before is ended first."""
    desired = load_desired(folder)
    with session(desired, "apply") as held:
        approvals, problems = read_approvals(held.place)
        swept = sweep(held.place, held.base.state, desired)
        known = replace(held.base, state=swept.state)
        plan = make_plan(held.place, desired, known, approvals)
        problems += swept.problems
        return _Run(held, plan, swept, actor, problems).run(approvals)


class _Run:
    """One apply: what has been done so far, and the state that the ledger will have."""

    def __init__(
        self, held: Session, plan: Plan, swept: Swept, actor: str | None, problems: list[ClusterProblem]
    ) -> None:
        self._held = held
        self._plan = plan
        self._swept = swept
        self._actor = actor
        self._state = swept.state
        self._ended: list[Sidecar] = list(swept.done)
        self._outcomes: dict[str, str] = {}
        self._problems = [*plan.problems, *problems]
        self._failed: dict[str, ClusterProblem] = {}

    def run(self, approvals: Sequence[Approval]) -> Applying:
        self._creations()
        self._schemas()
        self._payloads()
        self._removals()
        is_converged = len(self._done()) == len(self._plan.changes) and not self._swept.pending
        self._state = self._with_statuses(is_converged)
        ledgered, is_written = self._held.commit(self._state, self._ended)
        used = {name: str(each["operation_id"]) for name, each in self._state.approvals.items()}
        consume(self._held.place, approvals, used)
        outcomes = [(each, self._outcome(each)) for each in self._plan.changes]
        return Applying(
            self._plan,
            ledgered,
            is_written,
            outcomes,
            self._swept.recovered,
            tuple(self._problems),
            is_converged,
        )

    def _made(self, kind: str, *operations: Operation) -> list[Change]:
        """The changes of a kind of resources that are to be made by themselves."""
        return [
            each
            for each in self._plan.changes
            if each.resource.startswith(f"{kind}.")
            and each.operation in operations
            and each.disposition is Disposition.APPLIED
        ]

    def _creations(self) -> None:
        for change in self._made("graph", Operation.CREATE):
            graph = change.resource.removeprefix("graph.")
            schema = self._held.desired.schemas[graph]

            def create(uri: str = self._held.place.graph_uri(graph), source: Any = schema.source) -> None:
                create_graph(uri, source, actor=self._actor).close()

            sidecar = self._begin(Kind.CREATE, graph, desired_schema_digest=schema.shape.hash)
            if self._tried(change, sidecar, "graph_create_failed", create, "graph_create"):
                self._state = adopt(self._state, graph, self._held.desired, schema.shape.hash)
                self._outcomes[f"schema.{graph}"] = _DONE

    def _schemas(self) -> None:
        for change in self._made("schema", Operation.CREATE, Operation.UPDATE):
            graph = change.resource.removeprefix("schema.")
            schema = self._held.desired.schemas[graph]
            uri, version = self._held.place.graph_uri(graph), (change.migration or {}).get("manifest_version")

            def change_schema(uri: str = uri, text: str = schema.source.text) -> None:
                with open_graph(uri, actor=self._actor) as live:
                    live.apply_schema(text, engine="local")

            wanted = schema.shape.hash
            sidecar = self._begin(
                Kind.SCHEMA, graph, desired_schema_digest=wanted, observed_manifest_version=version
            )
            if self._tried(change, sidecar, "schema_apply_failed", change_schema, "schema_apply"):
                self._state = adopt(self._state, graph, self._held.desired, wanted)

    def _payloads(self) -> None:
        """Stored queries and policies into the catalog, and what only the ledger knows: settings and providers."""
        for kind in ("provider", "graph", "query", "policy"):
            changes = self._made(kind, Operation.UPDATE)
            changes += self._made(kind, Operation.CREATE) if kind != "graph" else []
            for change in changes:
                wanted = self._held.desired.resources[change.resource]
                failed = next((each for each in wanted.needs if each in self._failed), None)
                if failed is not None:
                    said = problem("apply_dependency_blocked", change.resource, f"it waits for {failed}")
                    self._fail(change, said)
                    continue
                if wanted.payload is not None:
                    write_payload(self._held.place, change.resource, wanted.payload)
                known = {**self._state.resources, change.resource: wanted.applied}
                self._state = replace(self._state, resources=known)
                self._outcomes[change.resource] = _DONE
        hit("cluster_apply.after_payload_phase")

    def _removals(self) -> None:
        for kind in ("query", "policy", "provider"):
            for change in self._made(kind, Operation.DELETE):
                left = {name: each for name, each in self._state.resources.items() if name != change.resource}
                self._state = replace(self._state, resources=left)
                self._outcomes[change.resource] = _DONE
        for change in self._made("graph", Operation.DELETE):
            graph = change.resource.removeprefix("graph.")

            def remove(uri: str = self._held.place.graph_uri(graph)) -> None:
                address = parse_address(uri)
                remove_table(address, layout.MANIFEST)
                hit("cluster_apply.within_graph_delete")
                remove_all(address)

            sidecar = self._begin(Kind.DELETE, graph, approval_id=change.approval_id)
            if self._tried(change, sidecar, "graph_delete_failed", remove, "graph_delete"):
                self._state = without_graph(self._state, graph)
                assert change.approval_id is not None  # noqa: S101  no graph is removed without one
                used = {**self._state.approvals, change.approval_id: used_by(sidecar)}
                self._state = replace(self._state, approvals=used)
                older = [each for each in self._swept.pending if each.graph_id == graph]
                self._swept.pending = [each for each in self._swept.pending if each not in older]
                self._ended += older
                for each in self._plan.changes:
                    if graph_of(each.resource) == graph:
                        self._outcomes[each.resource] = _DONE

    def _begin(self, kind: Kind, graph: str, **more: Any) -> Sidecar:
        self._held.lock.verify()
        cas = self._held.base.cas
        return begin(self._held.place, kind, graph, actor=self._actor, state_cas_base=cas, **more)

    def _tried(
        self, change: Change, sidecar: Sidecar, code: str, work: Callable[[], None], failpoint: str
    ) -> bool:
        """Do something to a graph. The sidecar of what certainly has not happened goes at once; the next sweep
        looks at what became of the rest."""
        hit(f"cluster_apply.before_{failpoint}")
        try:
            work()
        except OmniError as error:
            self._fail(change, problem(code, change.resource, str(error)))
            is_certain = error.outcome is Outcome.NOTHING_WRITTEN and not isinstance(error, StorageError)
            if is_certain and sidecar.kind is not Kind.DELETE:
                end(self._held.place, sidecar)
            return False
        hit(f"cluster_apply.after_{failpoint}")
        self._ended.append(sidecar)
        self._outcomes[change.resource] = _DONE
        return True

    def _fail(self, change: Change, found: ClusterProblem) -> None:
        self._problems.append(found)
        self._failed[change.resource] = found
        self._outcomes[change.resource] = _FAILED
        if change.resource.startswith("graph.") and change.operation is Operation.CREATE:
            schema = f"schema.{change.resource.removeprefix('graph.')}"
            self._failed[schema], self._outcomes[schema] = found, _FAILED

    def _done(self) -> list[Change]:
        return [each for each in self._plan.changes if self._outcomes.get(each.resource) == _DONE]

    def _outcome(self, change: Change) -> str:
        return self._outcomes.get(change.resource, change.disposition.value)

    def _with_statuses(self, is_converged: bool) -> State:
        """The state with how it stands with each resource now."""
        found = {name: ResourceStatus(Status.APPLIED) for name in self._state.resources}
        for change in self._plan.changes:
            name = change.resource
            if self._outcomes.get(name) == _DONE:
                continue
            failed = self._failed.get(name)
            if failed is not None:
                status = Status.BLOCKED if failed.code == "apply_dependency_blocked" else Status.ERROR
                found[name] = ResourceStatus(status, (failed.code,), failed.message)
            else:
                is_waiting = change.disposition is Disposition.DEFERRED
                said = next((each.message for each in self._problems if each.path == name), None)
                found[name] = ResourceStatus(
                    Status.PENDING if is_waiting else Status.BLOCKED, change.conditions, said
                )
        digest = self._plan.config_digest if is_converged else self._state.config_digest
        return replace(self._state, statuses=found, config_digest=digest)
