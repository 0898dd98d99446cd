"""Refresh, import and status: the ledger and what is really there; what differs and how it is mended."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from tests.cli.command import omnigraph as run
from tests.cluster.clusters import QUERIES, SCHEMA, WIDER, Cluster, new_cluster

import omnigraph
from omnigraph import failpoints
from omnigraph.cluster.codes import CODES
from omnigraph.cluster.observing import Presence, look
from omnigraph.cluster.state.catalog import payload_key
from omnigraph.errors import StorageUnavailable


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    made = new_cluster(tmp_path)
    assert made.apply().is_converged
    return made


def test_a_refresh_of_what_is_as_it_was(cluster: Cluster) -> None:
    first = cluster.json("refresh")
    assert first["observations"]["graph.g"]["presence"] == "graph"
    assert first["diagnostics"] == []
    assert not cluster.json("refresh")["state_written"]
    assert cluster.json("plan")["converged"]


def test_a_schema_that_others_changed_is_changed_back(cluster: Cluster) -> None:
    with omnigraph.open(cluster.graph()) as graph:
        graph.apply_schema(WIDER)
    assert cluster.json("plan")["converged"]  # the ledger has not seen it
    assert cluster.codes("refresh") == ["schema_drift"]
    assert cluster.json("status")["resource_statuses"]["schema.g"]["status"] == "drifted"
    assert [each["resource"] for each in cluster.json("plan")["changes"]] == ["schema.g"]
    assert cluster.apply().is_converged
    assert cluster.json("status")["resource_statuses"]["schema.g"]["status"] == "applied"
    assert cluster.codes("refresh") == []


def test_a_graph_that_is_gone_is_created_again(cluster: Cluster) -> None:
    shutil.rmtree(cluster.graph())
    assert cluster.write({"g.pg": WIDER}).codes("plan") == ["graph_unreadable"]
    assert cluster.codes("refresh") == ["graph_missing"]
    assert cluster.apply().is_converged
    assert look(cluster.graph()).presence is Presence.GRAPH


def test_what_the_catalog_has_lost_is_written_again(cluster: Cluster) -> None:
    key = payload_key("query.g.names", cluster.ledger.state.resources["query.g.names"].digest)
    for content, code in ((None, "catalog_payload_missing"), (b"query x() {}", "catalog_payload_mismatch")):
        if content is None:
            cluster.place.objects.delete(key)
        else:
            cluster.place.objects.put(key, content)
        assert cluster.codes("status", code=1) == [code]
        assert cluster.json("status", code=1)["resource_statuses"]["query.g.names"]["status"] == "drifted"
        assert cluster.codes("refresh") == [code]
        assert cluster.apply().is_converged
        assert cluster.codes("status") == []
    found = cluster.place.objects.get(key)
    assert found is not None
    assert found.content == QUERIES.encode()


def test_a_lost_ledger_is_made_again_of_what_is_there(cluster: Cluster) -> None:
    before = cluster.ledger.state.resources
    assert cluster.json("import", code=1)["code"] == "cluster_state_exists"
    cluster.place.objects.delete("state.json")
    for verb in ("status", "refresh"):
        assert cluster.json(verb, code=1)["code"] == "cluster_state_missing"
    assert cluster.json("import")["state_revision"] == 1
    assert cluster.ledger.state.resources == before
    assert cluster.json("plan")["converged"]


def test_a_graph_of_before_is_taken_in(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    with omnigraph.init(cluster.graph(), SCHEMA) as graph:
        graph.load('{"type": "Person", "data": {"name": "ada"}}', mode="merge")
    assert cluster.codes("apply") == ["graph_root_exists", *["apply_dependency_blocked"] * 2]
    assert cluster.json("refresh")["state_written"]
    assert cluster.apply().is_converged
    with omnigraph.open(cluster.graph(), read_only=True) as graph:
        assert list(graph.query(QUERIES)) == [{"name": "ada"}]


def test_a_damaged_ledger_is_not_replaced(cluster: Cluster) -> None:
    path = cluster.folder / "__cluster/state.json"
    for content in (
        b"{",
        b"[]",
        b'{"version": 2}',
        b'{"version": 1}',
        path.read_bytes().replace(b'"state_revision":1', b'"state_revision":2'),
    ):
        path.write_bytes(content)
        for verb in ("plan", "apply", "refresh", "import", "status"):
            assert cluster.json(verb, code=1)["code"] == "cluster_state_unreadable"
        assert path.read_bytes() == content


def test_a_removal_that_fails_is_tried_again(cluster: Cluster) -> None:
    cluster.edit(graphs={})
    cluster.run("approve", "graph.g", "--as", "bob")

    def fail() -> None:
        raise StorageUnavailable("the disk", "it is on fire")

    with failpoints.armed("cluster_apply.within_graph_delete", fail):
        assert cluster.codes("apply", code=1) == ["cluster_empty", "graph_delete_failed"]
    assert cluster.ledger.state.graphs == ["g"]
    done = cluster.apply()
    assert done.is_converged
    assert look(cluster.graph()).presence is Presence.ABSENT


def test_a_creation_that_fails_is_tried_again(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)

    def fail() -> None:
        raise StorageUnavailable("the disk", "it is on fire")

    with failpoints.armed("init.before_manifest", fail):
        assert cluster.codes("apply", code=1) == ["graph_create_failed", "apply_dependency_blocked"]
    assert cluster.ledger.state.resources == {}
    assert cluster.apply().is_converged


def test_a_graph_of_a_cluster_gets_its_schema_from_the_cluster(cluster: Cluster) -> None:
    for words in (("schema", "apply", "--schema", "g.pg"), ("init", "--schema", "g.pg")):
        for graph in ("graphs/g.omni", "graphs/new.omni"):
            ran = run(*words, "--store", graph, "--json", cwd=cluster.folder)
            assert (ran.code, "omnigraph cluster apply" in ran.json["error"]) == (1, True)
    assert look(cluster.graph("new")).presence is Presence.ABSENT
    assert run("init", "--schema", "g.pg", "other.omni", cwd=cluster.folder).code == 0
    assert run("schema", "apply", "--schema", "g.pg", "other.omni", cwd=cluster.folder).code == 0


def test_a_folder_of_graphs_without_a_ledger_is_no_cluster(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    assert run("init", "--schema", "g.pg", "graphs/g.omni", cwd=cluster.folder).code == 0
    assert run("schema", "apply", "--schema", "g.pg", "graphs/g.omni", cwd=cluster.folder).code == 0


def test_commands_take_no_graph(cluster: Cluster) -> None:
    for word in (("--server", "http://x"), ("--graph", "g"), ("--cluster", "."), ("--profile", "p")):
        ran = run("cluster", "status", *word, cwd=cluster.folder)
        assert (ran.code, "name its folder with --config" in ran.err) == (2, True)


def test_what_people_see(cluster: Cluster) -> None:
    assert cluster.run("apply").out == "converged, nothing written\n"
    for verb in ("apply", "refresh"):
        quiet = cluster.run(verb, "--quiet")
        assert (quiet.code, quiet.out, quiet.err) == (0, "", "")
    cluster.edit(graphs={})
    waiting = cluster.run("apply", "--quiet")
    assert (waiting.code, waiting.out) == (0, "")
    assert "warning: approval_required: graph.g: " in waiting.err
    assert cluster.run("approve", "graph.g", "--as", "bob", "--quiet").out == ""
    cluster.edit(graphs={"g": {"schema": "g.pg", "queries": "queries/"}})
    assert cluster.apply().is_converged
    assert cluster.run("plan").out == "no changes\n"
    rows = [line.split("\t")[:2] for line in cluster.run("status").out.splitlines()[1:-1]]
    assert rows[:3] == [["graph.g", "applied"], ["query.g.names", "applied"], ["schema.g", "applied"]]


def test_every_code_is_in_a_test() -> None:
    """A code that no test names fails here."""
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    named = set(re.findall(r'["=( ]([a-z]+(?:_[a-z]+)+)["= ,)]', texts))
    assert CODES.keys() - named == set()
    sources = "".join(
        path.read_text()
        for path in (Path(omnigraph.__file__).parent / "cluster").rglob("*.py")
        if path.name != "codes.py"
    )
    assert {code for code in CODES if f'"{code}"' not in sources} == set()
