"""Plan and apply: what is planned is done, in order, as far as it can be, and a second time nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cluster.clusters import IMPOSSIBLE, MORE, NARROWER, QUERIES, SCHEMA, WIDER, Cluster, new_cluster
from tests.stores import Store

import omnigraph
from omnigraph.cluster.changes.change import Disposition, Operation
from omnigraph.cluster.observing import Presence, look
from omnigraph.cluster.state.catalog import payload_key
from omnigraph.cluster.state.ledger import Status
from omnigraph.storage.address import parse_address
from omnigraph.storage.objects import open_objects

TWO = {"g": {"schema": "g.pg", "queries": "queries/"}, "h": {"schema": "h.pg"}}


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    """A cluster that was applied, with one person in its graph."""
    made = new_cluster(tmp_path)
    assert made.apply().is_converged
    with omnigraph.open(made.graph()) as graph:
        graph.load('{"type": "Person", "data": {"name": "ada", "age": 36}}', mode="merge")
    return made


def objects_of(cluster: Cluster) -> dict[str, bytes]:
    """Everything below `__cluster`, without locks."""
    objects = cluster.place.objects
    return {key: found.content for key in objects.list("") if (found := objects.get(key)) is not None}


def test_a_first_apply_makes_everything_and_a_second_one_nothing(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, policies={"p": {"file": "reads.yaml", "applies_to": ["g"]}})
    planned = cluster.json("plan")
    assert not planned["converged"]
    assert not cluster.place.objects.has("state.json")
    assert [(each["resource"], each["disposition"]) for each in planned["changes"]] == [
        ("graph.g", "applied"),
        ("schema.g", "derived"),
        ("query.g.names", "applied"),
        ("policy.p", "applied"),
    ]
    done = cluster.json("apply", "--as", "ada")
    assert (done["converged"], done["state_written"], done["state_revision"]) == (True, True, 1)
    assert [each["outcome"] for each in done["changes"]] == ["done"] * 4
    with omnigraph.open(cluster.graph(), read_only=True) as graph:
        assert graph.schema == SCHEMA
        assert graph.commits()[0].actor_id == "ada"
    before = objects_of(cluster)
    again = cluster.json("apply")
    assert (again["converged"], again["state_written"], again["state_revision"]) == (True, False, 1)
    assert again["changes"] == []
    assert objects_of(cluster) == before
    assert cluster.json("plan")["converged"]


def test_the_ledger_has_a_checksum_and_a_token(cluster: Cluster) -> None:
    stored = json.loads((cluster.folder / "__cluster/state.json").read_bytes())
    assert stored["version"] == 1
    assert stored["applied_revision"]["resources"].keys() == {"graph.g", "schema.g", "query.g.names"}
    assert stored.keys() >= {"checksum", "resource_statuses", "approval_records", "recovery_records"}
    assert cluster.ledger.cas is not None
    assert cluster.ledger.cas.startswith("sha256:")


def test_a_schema_is_migrated_and_rows_stay(cluster: Cluster) -> None:
    cluster.write({"g.pg": WIDER, "queries/more.gq": MORE})
    change = cluster.json("plan")["changes"][0]
    assert (change["resource"], change["migration"]["supported"]) == ("schema.g", True)
    assert [step["kind"] for step in change["migration"]["steps"]] == ["add_property"]
    assert cluster.json("plan")["blast_radius"]["schema.g"] == ["query.g.mails", "query.g.names"]
    assert "    add Person.mail: String?\n" in cluster.run("plan").out
    assert cluster.apply().is_converged
    with omnigraph.open(cluster.graph(), read_only=True) as graph:
        assert list(graph.query(MORE)) == [{"mail": None}]


def test_drops_are_soft(cluster: Cluster) -> None:
    """A state before the drop still has the values."""
    with omnigraph.open(cluster.graph(), read_only=True) as graph:
        before = graph.snapshot().graph_commit_id
    assert cluster.write({"g.pg": NARROWER}).apply().is_converged
    old = "query ages() { match { $p: Person } return { $p.age as age } }"
    with omnigraph.open(cluster.graph(), read_only=True) as graph:
        assert list(graph.query(old, at=before)) == [{"age": 36}]


def test_a_schema_that_is_not_possible_blocks_its_queries_and_nothing_else(cluster: Cluster) -> None:
    cluster.edit(graphs=TWO).write({"h.pg": SCHEMA, "g.pg": IMPOSSIBLE})
    cluster.write({"queries/all.gq": QUERIES + "// changed\n"})
    done = cluster.json("apply")
    outcomes = {each["resource"]: each["outcome"] for each in done["changes"]}
    assert outcomes == {"graph.h": "done", "schema.h": "done", "schema.g": "blocked", "query.g.names": "blocked"}
    assert (done["converged"], done["state_written"]) == (False, True)
    codes = {each["path"]: each["code"] for each in done["diagnostics"]}
    assert codes == {"schema.g": "apply_unsupported_change", "query.g.names": "apply_dependency_blocked"}
    assert cluster.ledger.state.statuses["schema.g"].status is Status.BLOCKED
    assert look(cluster.graph("h")).presence is Presence.GRAPH
    assert not cluster.json("apply")["state_written"]
    assert cluster.write({"g.pg": WIDER}).apply().is_converged


def test_rows_that_break_a_new_rule_fail_the_apply(cluster: Cluster) -> None:
    cluster.write({"g.pg": SCHEMA.replace("}", "@range(age, 0..10) }")})
    done = cluster.json("apply", code=1)
    assert not done["converged"]
    assert [each["code"] for each in done["diagnostics"]] == ["schema_apply_failed"]
    assert cluster.ledger.state.statuses["schema.g"].status is Status.ERROR
    assert not cluster.place.objects.list("recoveries")


def test_where_something_lies_no_graph_is_created(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, graphs=TWO).write({"h.pg": SCHEMA, "graphs/h.omni/note.txt": "mine"})
    omnigraph.init(cluster.graph(), SCHEMA).close()
    done = cluster.apply()
    assert not done.is_converged
    assert not done.is_failed
    assert [each.code for each in done.problems].count("graph_root_exists") == 2
    assert (tmp_path / "graphs/h.omni/note.txt").read_text() == "mine"


def test_a_graph_that_cannot_be_created_fails_alone(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, graphs=TWO).write({"h.pg": SCHEMA, "graphs/h.omni": "a file"})
    done = cluster.apply()
    assert not done.is_converged
    assert {change.resource for change, outcome in done.outcomes if outcome != "done"} == {"graph.h", "schema.h"}
    assert look(cluster.graph()).presence is Presence.GRAPH


def test_a_removal_waits_for_an_approval_that_fits(cluster: Cluster) -> None:
    cluster.edit(graphs=TWO).write({"h.pg": SCHEMA}).apply()
    cluster.edit(graphs={"h": TWO["h"]})
    done = cluster.json("apply")
    assert (done["converged"], done["approvals_required"]) == (False, ["graph.g"])
    assert cluster.ledger.state.statuses["graph.g"].status is Status.PENDING
    assert "graph.g" in cluster.ledger.state.resources
    assert cluster.json("approve", "graph.g", code=1)["code"] == "approval_actor_missing"
    assert cluster.json("approve", "graph.h", "--as", "bob", code=1)["code"] == "approval_not_needed"
    given = cluster.json("approve", "graph.g", "--as", "bob", "--reason", "moved")
    assert cluster.json("approve", "graph.g", "--as", "eve") == given
    cluster.write({"h.pg": WIDER})
    assert cluster.codes("plan") == ["approval_stale", "approval_required"]
    assert look(cluster.graph()).presence is Presence.GRAPH
    cluster.write({"h.pg": SCHEMA})
    assert [each["approval_id"] for each in cluster.json("status")["approvals"]] == [given["approval_id"]]
    assert cluster.apply().is_converged
    assert look(cluster.graph()).presence is Presence.ABSENT
    assert not (cluster.folder / "graphs/g.omni").exists()
    assert cluster.ledger.state.graphs == ["h"]
    kept = json.loads((cluster.folder / f"__cluster/approvals/{given['approval_id']}.json").read_bytes())
    assert kept["consumed_at"] is not None
    assert given["approval_id"] in cluster.ledger.state.approvals
    cluster.edit(graphs=TWO).apply()
    cluster.edit(graphs={"h": TWO["h"]})
    assert cluster.codes("plan") == ["approval_required"]  # an approval is used once


def test_a_damaged_approval_is_not_used(cluster: Cluster) -> None:
    cluster.edit(graphs={})
    given = cluster.json("approve", "graph.g", "--as", "bob")
    path = cluster.folder / f"__cluster/approvals/{given['approval_id']}.json"
    path.write_bytes(path.read_bytes().replace(b"graph.g", b"graph.x"))
    assert cluster.codes("apply") == ["cluster_empty", "approval_required", "approval_unreadable"]
    assert look(cluster.graph()).presence is Presence.GRAPH


def bound_to(cluster: Cluster) -> list[str]:
    return list(cluster.ledger.state.resources["policy.p"].applies_to or ())


def test_the_policy_of_a_graph_stays_as_long_as_the_graph(cluster: Cluster) -> None:
    bound = {"file": "reads.yaml", "applies_to": ["g", "h"]}
    cluster.edit(graphs=TWO, policies={"p": bound}).write({"h.pg": SCHEMA})
    assert cluster.apply().is_converged
    cluster.edit(graphs={"h": TWO["h"]}, policies={"p": bound | {"applies_to": ["h"]}})
    change = cluster.apply().plan.change_of("policy.p")
    assert change is not None
    assert (change.disposition, change.binding_change) == (Disposition.DEFERRED, True)
    assert bound_to(cluster) == ["g", "h"]
    cluster.run("approve", "graph.g", "--as", "bob")
    assert cluster.apply().is_converged
    assert bound_to(cluster) == ["h"]


def test_settings_are_in_the_ledger_and_secrets_are_not(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBED_KEY", "sk-123")
    provider = {"kind": "openai", "model": "m", "api_key": "${EMBED_KEY}"}
    bases = {"allow": [{"base": "s3://photos/", "scope": "server_safe"}]}
    graph = TWO["g"] | {"embedding_provider": "e", "external_blobs": bases}
    cluster.edit(providers={"embedding": {"e": provider}}, graphs={"g": graph})
    plan = cluster.json("plan")["changes"]
    assert [(each["resource"], each["metadata_change"]) for each in plan] == [
        ("provider.embedding.e", None),
        ("graph.g", "embedding_profile"),
    ]
    assert cluster.apply().is_converged
    text = (cluster.folder / "__cluster/state.json").read_text()
    assert "${EMBED_KEY}" in text
    assert "sk-123" not in text
    assert cluster.ledger.state.resources["graph.g"].external_blob_policy is not None


def test_stored_queries_come_and_go(cluster: Cluster) -> None:
    before = cluster.ledger.state.resources["query.g.names"].digest
    cluster.write({"queries/all.gq": QUERIES.replace("names", "people")})
    plan = cluster.apply().plan
    assert [(each.resource, each.operation) for each in plan.changes] == [
        ("query.g.people", Operation.CREATE),
        ("query.g.names", Operation.DELETE),
    ]
    assert cluster.place.objects.has(payload_key("query.g.names", before))  # old contents are kept
    assert "query.g.names" not in cluster.ledger.state.resources


def test_an_unlocked_cluster(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, state={"backend": "cluster", "lock": False})
    cluster.write({"__cluster/lock.json": "{}"})
    assert cluster.apply().is_converged


def test_a_cluster_elsewhere_on_the_disk(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path / "config", storage="../data")
    cluster.root = str(tmp_path / "data")
    assert cluster.apply().is_converged
    assert not (tmp_path / "config/__cluster").exists()
    assert cluster.json("status")["root"] == cluster.root
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["__cluster", "graphs"]


@pytest.mark.quick_on_s3
def test_a_cluster_in_a_bucket(s3_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_store.environment().items():
        monkeypatch.setenv(name, value)
    cluster = new_cluster(tmp_path, storage=s3_store.uri)
    cluster.root = s3_store.uri
    assert cluster.apply().is_converged
    assert not cluster.json("apply")["state_written"]
    assert cluster.write({"g.pg": WIDER}).apply().is_converged
    assert cluster.json("status")["lock"] is None
    cluster.edit(graphs={})
    cluster.run("approve", "graph.g", "--as", "bob")
    assert cluster.apply().is_converged
    assert look(cluster.graph()).presence is Presence.ABSENT
    assert not list(open_objects(parse_address(cluster.graph())).entries(""))
