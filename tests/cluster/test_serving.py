"""A server of a cluster: it serves what the ledger has, and nothing that the cluster has not applied."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.command import omnigraph as run
from tests.cluster.clusters import MORE, QUERIES, READS, SCHEMA, WIDER, Cluster, new_cluster
from tests.cluster.test_killed import apply_here
from tests.processes import PATIENCE, children, see_killed
from tests.server.running import TOKENS, Served

import omnigraph
from omnigraph.cluster.serving import read_servable
from omnigraph.cluster.state.ledger import write_ledger
from omnigraph.errors import ClusterRefused

NAMES = QUERIES
TWO = {"g": {"schema": "g.pg", "queries": "queries/"}, "h": {"schema": "h.pg"}}
BOTH = {
    "p": {"file": "reads.yaml", "applies_to": ["g"]},
    "c": {"file": "lists.yaml", "applies_to": ["cluster"]},
}


def serve_command(words: tuple[str, ...], environment: dict[str, str]) -> None:
    """In a child: be `omnigraph serve`."""
    from omnigraph.cli.main import main

    os.environ |= environment
    sys.argv = ["omnigraph", "serve", "--port", "0", *words]
    main()


@contextmanager
def serving(*words: str, **environment: str) -> Iterator[Served]:
    """A server of a cluster, started by the command."""
    tokens = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps(TOKENS), **environment}
    with children((serve_command, words, tokens)) as (child,):
        address = child.hear().partition("=")[2]
        yield Served(f"http://{address}", child)


def refusal(cluster: Cluster, *words: str, code: int = 1) -> str:
    """Why a server does not start."""
    ran = run("serve", "--cluster", str(cluster.folder), "--unauthenticated", "--port", "0", *words)
    assert ran.code == code, ran.err
    return ran.err


def applied(folder: Path, **more: Any) -> Cluster:
    made = new_cluster(folder, **more).write({"h.pg": SCHEMA})
    assert made.apply().is_converged
    with omnigraph.open(made.graph()) as graph:
        graph.load('{"type": "Person", "data": {"name": "ada"}}', mode="merge")
    return made


def invoked(server: Served, name: str, graph: str = "g", actor: str = "ada") -> Any:
    return server.request("POST", f"/graphs/{graph}/queries/{name}", {}, actor=actor)


def test_a_server_of_a_cluster(tmp_path: Path) -> None:
    """Its graphs, stored queries and policies; schemas are the cluster's; a signal makes it read the ledger."""
    cluster = applied(tmp_path, graphs=TWO | {"h": {"schema": "h.pg"}}, policies=None)
    both = {"p": BOTH["p"] | {"applies_to": ["g", "h"]}, "c": BOTH["c"]}
    assert cluster.edit(policies=both).apply().is_converged
    with serving("--cluster", str(tmp_path)) as server:
        listed = server.request("GET", "/graphs").json["graphs"]
        assert [each["graph_id"] for each in listed] == ["g", "h"]
        assert server.request("GET", "/graphs", actor="bob").status == 403
        assert invoked(server, "names").json["rows"] == [{"name": "ada"}]
        assert invoked(server, "names", "h").status == 404
        assert invoked(server, "names", actor="bob").status == 404
        refused = server.request("POST", "/graphs/g/schema/apply", {"schema_source": WIDER})
        assert (refused.status, refused.json["code"]) == (409, "conflict")
        assert "omnigraph cluster apply" in refused.json["error"]
        cluster.write({"g.pg": WIDER, "queries/more.gq": MORE})
        cluster.write({"reads.yaml": READS.replace("actor: ada", "actor: [ada, bob]")})
        assert cluster.apply().is_converged
        assert invoked(server, "mails").status == 404
        os.kill(server.child.pid, signal.SIGHUP)
        wait_for(lambda: invoked(server, "mails", actor="bob").status == 200)
        assert invoked(server, "mails").json["rows"] == [{"mail": None}]
        server.stop()


def wait_for(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_what_is_wrong_with_one_graph_leaves_out_that_graph(tmp_path: Path) -> None:
    cluster = applied(tmp_path, graphs=TWO)
    shutil.rmtree(cluster.graph("h"))
    with serving("--cluster", str(tmp_path)) as server:
        assert [each["graph_id"] for each in server.request("GET", "/graphs").json["graphs"]] == ["g"]
        assert server.request("GET", "/graphs/h/schema").status == 404
    assert "there is no graph at" in refusal(cluster, "--require-all-graphs")
    shutil.rmtree(cluster.graph("g"))
    assert "cluster_no_healthy_graphs" in refusal(cluster)


def test_a_server_does_not_start_without_a_ledger(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    assert "cluster_state_missing" in refusal(cluster)
    (tmp_path / "empty").mkdir()
    ran = run("serve", "--cluster", str(tmp_path / "empty"), "--unauthenticated")
    assert (ran.code, "cluster_state_missing" in ran.err) == (1, True)
    cluster.write({"__cluster/state.json": "{"})
    assert "cluster_state_unreadable" in refusal(cluster)


def test_a_server_does_not_start_with_a_wrong_shared_payload(tmp_path: Path) -> None:
    cluster = applied(tmp_path, policies={"p": BOTH["p"]})
    assert "has to know who calls" in refusal(cluster)
    (payload,) = (tmp_path / "__cluster/resources/policy/p").iterdir()
    payload.write_text("{version: 1, rules: []}")
    assert "catalog_payload_mismatch" in refusal(cluster)
    cluster.place.objects.put("recoveries/01.json", b"{nothing")
    assert "recovery_unattributable" in refusal(cluster)


def test_words_that_the_cluster_says_itself(tmp_path: Path) -> None:
    cluster = applied(tmp_path)
    assert "the cluster itself says" in refusal(cluster, "--queries", str(tmp_path), code=2)
    assert "it has g" in refusal(cluster, "--graph", "nobody")


def servable(cluster: Cluster, **environment: str) -> dict[str, str]:
    """The codes of what is wrong with each graph of a cluster."""
    found = read_servable(cluster.place, environment)
    return {name: each.code for name, each in found.unusable.items()}


def test_settings_of_graphs(tmp_path: Path) -> None:
    provider = {"kind": "openai", "model": "m", "api_key": "${EMBED_KEY}"}
    allowed = [
        {"base": "s3://photos/", "scope": "server_safe"},
        {"base": "file:///photos/", "scope": "embedded_only"},
    ]
    graph = {"schema": "g.pg", "embedding_provider": "e", "external_blobs": {"allow": allowed}}
    cluster = applied(tmp_path, graphs={"g": graph, "h": TWO["h"]}, providers={"embedding": {"e": provider}})
    assert servable(cluster) == {"g": "provider_secret_missing"}
    found = read_servable(cluster.place, {"EMBED_KEY": "sk-1"}).graphs
    embedder = found["g"].embedder
    assert embedder is not None
    assert embedder.model == "m"
    assert found["g"].settings.blobs.allow == ("s3://photos/",)
    assert (found["h"].embedder, found["h"].settings.blobs.allow) == (None, ())
    stored = cluster.ledger.state.as_json()["applied_revision"]["resources"]["graph.g"]["external_blob_policy"]
    stored["allow"].append({"base": "s3://secrets/", "scope": "server_safe"})
    path = tmp_path / "__cluster/state.json"
    whole = json.loads(path.read_bytes())
    del whole["checksum"]
    whole["applied_revision"]["resources"]["graph.g"]["external_blob_policy"] = stored
    path.write_text(json.dumps(whole))
    assert servable(cluster, EMBED_KEY="sk-1") == {"g": "external_blob_policy_digest_mismatch"}


def test_a_stored_query_that_does_not_fit_leaves_out_its_graph(tmp_path: Path) -> None:
    cluster = applied(tmp_path, graphs=TWO)
    with omnigraph.open(cluster.graph()) as graph:
        graph.apply_schema("node Thing { name: String @key }")
    assert "stored_query_broken" in refusal(cluster, "--require-all-graphs")
    assert "stored_query_broken" in refusal(cluster, "--graph", "g")


def test_a_graph_that_is_being_removed_is_not_served(tmp_path: Path) -> None:
    cluster = applied(tmp_path, graphs=TWO)
    cluster.edit(graphs={"h": TWO["h"]})
    cluster.run("approve", "graph.g", "--as", "bob")
    see_killed("cluster_apply.before_graph_delete", apply_here, str(tmp_path))
    assert servable(cluster) == {"g": "cluster_recovery_pending"}


def test_policies_are_bound_in_the_ledger(tmp_path: Path) -> None:
    cluster = applied(tmp_path, policies={"p": BOTH["p"]})
    ledgered = cluster.ledger
    bound = ledgered.state.resources["policy.p"]
    for resources, code in (
        ({"policy.p": replace(bound, applies_to=None)}, "policy_bindings_missing"),
        ({"policy.p": bound, "policy.q": bound}, "duplicate_policy_binding"),
    ):
        state = replace(ledgered.state, resources={**ledgered.state.resources, **resources})
        ledgered = write_ledger(cluster.place, ledgered, state)
        with pytest.raises(ClusterRefused) as refused:
            read_servable(cluster.place, {})
        assert refused.value.code == code


def test_no_graph_is_served_without_the_policy_it_is_to_have(tmp_path: Path) -> None:
    """Not after an apply of which only a part was possible, nor after an import, nor after a kill."""
    both = {"p": BOTH["p"] | {"applies_to": ["g", "h"]}}
    cluster = new_cluster(tmp_path / "a", graphs=TWO, policies=both)
    cluster.write({"h.pg": SCHEMA, "graphs/h.omni/note.txt": "mine"})
    assert not cluster.apply().is_converged
    assert policies(cluster) == {"g": "policy.p"}
    other = new_cluster(tmp_path / "b", policies={"p": BOTH["p"]})
    omnigraph.init(other.graph(), SCHEMA).close()
    assert other.json("import")["state_written"]
    assert policies(other) == {"g": "policy.p"}
    third = new_cluster(tmp_path / "c", policies={"p": BOTH["p"]})
    see_killed("cluster_apply.after_graph_create", apply_here, str(tmp_path / "c"))
    third.unlock()
    assert third.json("import")["recovered"]
    assert policies(third) == {"g": "policy.p"}


def policies(cluster: Cluster) -> dict[str, str | None]:
    found = read_servable(cluster.place, {}).graphs
    return {name: None if each.policy is None else each.policy.source for name, each in found.items()}


def test_an_empty_cluster_is_not_served(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path, graphs={})
    assert cluster.apply().is_converged
    assert "cluster_empty" in refusal(cluster)


def test_a_creation_that_was_killed_is_told(tmp_path: Path) -> None:
    cluster = new_cluster(tmp_path)
    see_killed("init.after_claim", apply_here, str(tmp_path))
    cluster.unlock()
    assert cluster.codes("apply") == ["graph_create_incomplete"]
    assert cluster.json("plan")["converged"]


def test_policies_and_queries_that_were_applied(tmp_path: Path) -> None:
    cluster = applied(tmp_path, policies=BOTH)
    named, of_g = ("--cluster", str(tmp_path)), ("--cluster", str(tmp_path), "--graph", "g")
    assert run("policy", "validate", *of_g).out.startswith("policy.p: ok, 1 rule,")
    assert run("policy", "validate", *named).out.startswith("policy.c: ok")
    asked = ("policy", "explain", "--actor", "ada", "--action", "graph_list")
    assert run(*asked, *named).out.startswith("allowed")
    assert "no policy applies to it" in run("policy", "validate", *named, "--graph", "h").err
    assert run("policy", "validate").code == 2
    (found,) = run("queries", "list", "--json", *of_g).json["queries"]
    assert (found["name"], found["mutation"]) == ("names", False)
    assert run("queries", "validate", *of_g).out == "1 query in 1 file: ok\n"
    with omnigraph.open(cluster.graph()) as graph:
        graph.apply_schema("node Thing { name: String @key }")
    assert run("queries", "validate", *of_g).code == 1
    assert run("queries", "validate").code == 2


def test_other_verbs_take_a_graph_of_a_cluster(tmp_path: Path) -> None:
    cluster = applied(tmp_path, graphs=TWO)
    named = ("--cluster", str(tmp_path))
    assert '"name": "ada"' in run("query", "--json", "-e", NAMES, *named, "--graph", "g").out
    asked = run("query", "--json", "-e", NAMES, *named)
    assert (asked.code, "it has g, h; name one with --graph" in asked.json["error"]) == (2, True)
    assert run("optimize", *named, "--graph", "i").code == 2
    cluster.edit(graphs={"g": TWO["g"]})
    cluster.run("approve", "graph.h", "--as", "bob")
    cluster.apply()
    assert run("optimize", *named).code == 0
    refused = run("schema", "apply", "--schema", str(tmp_path / "g.pg"), *named)
    assert (refused.code, "omnigraph cluster apply" in refused.err) == (1, True)
