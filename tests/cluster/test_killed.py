"""Kill apply anywhere: the next one, after force-unlock, ends where an undisturbed one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cluster.clusters import SCHEMA, WIDER, Cluster, new_cluster
from tests.processes import children, ready, say, see_killed, start_together
from tests.sampling import sampled
from tests.stores import Store

import omnigraph
from omnigraph import failpoints
from omnigraph.cluster.changes.applying import apply_cluster
from omnigraph.cluster.observing import Presence, look
from omnigraph.cluster.state.approvals import read_approvals
from omnigraph.cluster.state.lock import read_lock
from omnigraph.errors import ClusterRefused

GRAPHS = {"old": {"schema": "old.pg"}, "stays": {"schema": "stays.pg", "queries": "queries/"}}
NEXT = {"new": {"schema": "new.pg", "queries": "queries/"}, "stays": GRAPHS["stays"]}

KILLED: dict[str, dict[str, str]] = {
    "cluster_apply.before_graph_create": {"graph_create": "not_begun"},
    "init.after_table": {"graph_create": "incomplete"},
    "cluster_apply.after_graph_create": {"graph_create": "rolled_forward"},
    "cluster_apply.before_schema_apply": {"graph_create": "rolled_forward", "schema_apply": "not_begun"},
    "write.after_publish": {"graph_create": "rolled_forward", "schema_apply": "rolled_forward"},
    "cluster_apply.after_schema_apply": {"graph_create": "rolled_forward", "schema_apply": "rolled_forward"},
    "cluster_apply.after_payload_phase": {"graph_create": "rolled_forward", "schema_apply": "rolled_forward"},
    "cluster_apply.before_graph_delete": {
        "graph_create": "rolled_forward",
        "schema_apply": "rolled_forward",
        "graph_delete": "not_begun",
    },
    "cluster_apply.within_graph_delete": {"graph_create": "rolled_forward", "schema_apply": "rolled_forward"},
    "cluster_apply.after_graph_delete": {
        "graph_create": "rolled_forward",
        "schema_apply": "rolled_forward",
        "graph_delete": "rolled_forward",
    },
    "cluster_apply.before_state_write": {
        "graph_create": "rolled_forward",
        "schema_apply": "rolled_forward",
        "graph_delete": "rolled_forward",
    },
    "cluster_apply.after_state_write": {
        "graph_create": "rolled_forward",
        "schema_apply": "rolled_forward",
        "graph_delete": "rolled_forward",
    },
}
"""Where apply is killed, and what the next one finds of the operations that were begun."""


def test_every_failpoint_has_a_case() -> None:
    assert KILLED.keys() >= failpoints.CLUSTER_NAMES


def prepared(folder: Path, root: str = "", **more: Any) -> Cluster:
    """A cluster whose next apply creates a graph, changes the schema of another, and removes a third."""
    cluster = new_cluster(folder, graphs=GRAPHS, **more)
    cluster.root = root
    cluster.write({f"{name}.pg": SCHEMA for name in ("old", "stays", "new")})
    assert cluster.apply().is_converged
    cluster.edit(graphs=NEXT).write({"stays.pg": WIDER})
    assert cluster.run("approve", "graph.old", "--as", "bob").code == 0
    return cluster


def apply_here(folder: str) -> None:
    """In a child: apply."""
    apply_cluster(Path(folder), "ada")


def check_killed(cluster: Cluster, failpoint: str) -> None:
    see_killed(failpoint, apply_here, str(cluster.folder))
    with pytest.raises(ClusterRefused, match="state_lock_held"):
        cluster.apply()
    cluster.unlock()
    done = cluster.apply()
    assert done.is_converged
    assert {each["kind"]: each["outcome"] for each in done.recovered} == KILLED[failpoint]
    check_converged(cluster)


def check_converged(cluster: Cluster) -> None:
    state = cluster.ledger.state
    assert state.resources.keys() == {
        f"{kind}.{graph}{name}"
        for graph in ("new", "stays")
        for kind, name in (("graph", ""), ("schema", ""), ("query", ".names"))
    }
    assert look(cluster.graph("old")).presence is Presence.ABSENT
    for graph in ("new", "stays"):
        known = state.resources[f"schema.{graph}"].digest
        assert look(cluster.graph(graph)).schema_digest == known
    with omnigraph.open(cluster.graph("stays"), read_only=True) as stays:
        assert [each.kind for each in stays.commits()] == ["schema_apply", "init"]  # nothing was done twice
    assert cluster.place.objects.list("recoveries") == []
    assert len(state.approvals) == 1
    (approval,), problems = read_approvals(cluster.place)
    assert approval.consumed_at is not None
    assert not problems
    again = cluster.json("apply")
    assert (again["converged"], again["state_written"]) == (True, False)


@pytest.mark.parametrize("failpoint", sampled(KILLED, 5))
def test_apply_is_killed(failpoint: str, tmp_path: Path) -> None:
    check_killed(prepared(tmp_path), failpoint)


@pytest.mark.long
@pytest.mark.parametrize("failpoint", sorted(failpoints.CLUSTER_NAMES))
def test_apply_is_killed_in_a_bucket(
    failpoint: str, tmp_path: Path, s3_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_store.environment().items():
        monkeypatch.setenv(name, value)
    check_killed(prepared(tmp_path, s3_store.uri, storage=s3_store.uri), failpoint)


def test_a_refresh_ends_what_was_killed_too(tmp_path: Path) -> None:
    cluster = prepared(tmp_path)
    see_killed("cluster_apply.before_state_write", apply_here, str(tmp_path))
    cluster.unlock()
    assert cluster.codes("plan").count("cluster_recovery_pending") == 3
    assert cluster.codes("status").count("cluster_recovery_pending") == 3
    found = cluster.json("refresh")
    assert {each["outcome"] for each in found["recovered"]} == {"rolled_forward"}
    assert cluster.ledger.state.graphs == ["new", "stays"]
    assert cluster.apply().is_converged
    check_converged(cluster)


def test_an_import_ends_what_was_killed_too(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    see_killed("cluster_apply.before_state_write", apply_here, str(tmp_path))
    cluster.unlock()
    assert [each["outcome"] for each in cluster.json("import")["recovered"]] == ["rolled_forward"]
    assert cluster.json("apply")["state_written"]
    assert cluster.json("plan")["converged"]


def test_a_graph_that_is_wanted_again_after_half_a_removal(tmp_path: Path) -> None:
    cluster = prepared(tmp_path)
    see_killed("cluster_apply.within_graph_delete", apply_here, str(tmp_path))
    cluster.unlock()
    cluster.edit(graphs=GRAPHS | NEXT)
    done = cluster.apply()
    assert not done.is_converged
    assert "graph_delete_incomplete" in [each.code for each in done.problems]


def test_a_graph_that_others_changed_after_a_kill(tmp_path: Path) -> None:
    cluster = prepared(tmp_path)
    see_killed("cluster_apply.after_graph_create", apply_here, str(tmp_path))
    cluster.unlock()
    with omnigraph.open(cluster.graph("new")) as graph:
        graph.apply_schema(WIDER)
    found = cluster.json("refresh")
    assert "actual_applied_state_pending" in [each["code"] for each in found["diagnostics"]]
    assert cluster.ledger.state.statuses["schema.new"].status == "drifted"
    assert cluster.apply().is_converged  # back to what the file says
    assert look(cluster.graph("new")).schema_digest == cluster.ledger.state.resources["schema.new"].digest


def test_a_sidecar_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    cluster.apply()
    cluster.place.objects.put("recoveries/01.json", b"{nothing")
    for verb in ("plan", "apply", "refresh", "status"):
        assert cluster.json(verb, code=1)["code"] == "recovery_unattributable"
    assert read_lock(cluster.place) is None


def apply_when_told(folder: str) -> None:
    """In a child: apply at the same time as others, and say what came of it."""
    ready()
    try:
        say(apply_cluster(Path(folder), "ada").is_written)
    except ClusterRefused as refused:
        say(refused.code)


def check_together(cluster: Cluster) -> None:
    """Four processes apply at once: one of them does it, and the others are told, or find nothing to do."""
    with children(*[(apply_when_told, str(cluster.folder))] * 4) as started:
        start_together(started)
        said = [each.hear() for each in started]
        for each in started:
            each.join()
    assert said.count("True") == 1
    assert set(said) <= {"True", "False", "state_lock_held"}
    assert cluster.ledger.state.revision == 1
    assert not cluster.json("apply")["state_written"]


def test_two_processes_at_once(tmp_path: Path) -> None:
    check_together(new_cluster(tmp_path))


def test_two_processes_without_a_lock(tmp_path: Path) -> None:
    """The ledger is replaced by one of them; the other is told."""
    cluster = new_cluster(tmp_path, state={"lock": False})
    cluster.apply()
    cluster.write({"queries/all.gq": "query other() { match { $p: Person } return { $p.age as age } }\n"})

    def interfere() -> None:
        with failpoints.armed("cluster_apply.before_state_write", lambda: None):
            cluster.apply()

    with (
        failpoints.armed("cluster_apply.before_state_write", interfere),
        pytest.raises(ClusterRefused, match="state_cas_mismatch"),
    ):
        cluster.apply()
    assert cluster.ledger.state.revision == 2
    assert cluster.apply().is_converged


def test_a_lock_that_is_taken_away_stops_its_holder(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    with (
        failpoints.armed("cluster_apply.after_payload_phase", cluster.unlock),
        pytest.raises(ClusterRefused, match="state_lock_lost"),
    ):
        cluster.apply()
    assert not cluster.place.objects.has("state.json")
    assert cluster.apply().is_converged


def test_only_the_exact_id_unlocks(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    cluster.apply()
    assert cluster.json("force-unlock", "01X", code=1)["code"] == "lock_not_held"
    cluster.write({"g.pg": WIDER})
    see_killed("cluster_apply.before_state_write", apply_here, str(tmp_path))
    held = cluster.json("status")["lock"]
    assert (held["operation"], held["version"]) == ("apply", 1)
    for verb in ("plan", "apply", "refresh", "import"):
        refused = cluster.json(verb, code=1)
        assert refused["code"] == "state_lock_held"
        assert f"force-unlock {held['lock_id']}" in refused["error"]
    assert cluster.json("force-unlock", held["lock_id"][:-1], code=1)["code"] == "lock_id_mismatch"
    assert cluster.json("force-unlock", held["lock_id"])["unlocked"]["lock_id"] == held["lock_id"]
    assert cluster.apply().is_converged


def test_a_damaged_lock_can_be_removed(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path).write({"__cluster/lock.json": "{"})
    assert cluster.json("apply", code=1)["code"] == "state_lock_held"
    assert cluster.run("force-unlock", "damaged").code == 0
    assert cluster.apply().is_converged


@pytest.mark.long
def test_two_processes_at_once_in_a_bucket(
    tmp_path: Path, s3_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_store.environment().items():
        monkeypatch.setenv(name, value)
    cluster = new_cluster(tmp_path, storage=s3_store.uri)
    cluster.root = s3_store.uri
    check_together(cluster)
