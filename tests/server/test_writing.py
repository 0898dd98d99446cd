"""What can be written over HTTP, by whom, and on which condition."""

from __future__ import annotations

import gzip
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.server.running import ADD, SET_AGE, Served, serving


@pytest.fixture
def branch(served: Served, request: pytest.FixtureRequest) -> str:
    """A branch of the test's own."""
    name = f"tests/{request.node.name.replace('[', '-').replace(']', '')[:60]}"
    served.ask("/branches", {"name": name})
    return name


def test_a_mutation_is_one_commit_of_the_tokens_actor(served: Served, branch: str) -> None:
    done = served.ask("/mutate", {"query": ADD, "params": {"n": "cid", "a": 7}, "branch": branch})
    assert (done["affected_nodes"], done["actor_id"]) == (1, "ada")
    assert done["commit"]["actor_id"] == "ada"
    assert served.names(branch) == ["ada", "bob", "cid"]
    assert served.names() == ["ada", "bob"]


def test_an_actor_in_the_body_is_refused(served: Served, branch: str) -> None:
    body = {"query": ADD, "params": {"n": "cid"}, "branch": branch, "actor": "bob"}
    refused = served.request("POST", "/graphs/default/mutate", body)
    assert (refused.status, refused.json["code"], refused.json["argument"]) == (400, "bad_request", "actor")
    assert served.names(branch) == ["ada", "bob"]


def test_records_are_loaded_from_the_body(served: Served, branch: str) -> None:
    lines = b'{"type": "Person", "data": {"name": "dan"}}\n{"type": "Person", "data": {"name": "eve"}}\n'
    path = f"/graphs/default/load/ndjson?branch={branch}&mode=append&message=two"
    done = served.request("POST", path, content=lines, Content_Type="application/x-ndjson")
    assert done.status == 200, done.content
    assert done.json["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert done.json["commit"]["message"] == "two"
    packed = gzip.compress(b'{"type": "Person", "data": {"name": "fay"}}')
    header = {"Content_Type": "application/x-ndjson", "Content_Encoding": "gzip"}
    assert served.request("POST", path, content=packed, **header).status == 200
    as_text = served.ask("/load", {"data": '{"type": "Person", "data": {"name": "gus"}}', "branch": branch})
    assert as_text["mode"] == "merge"
    assert served.names(branch) == ["ada", "bob", "dan", "eve", "fay", "gus"]


def test_records_never_name_a_file_of_the_server(served: Served, branch: str) -> None:
    refused = served.request("POST", "/graphs/default/load", {"data": "/etc/passwd", "branch": branch})
    assert refused.status == 400
    assert refused.json["problems"][0]["source"] == "<data>"


def test_a_load_may_fork_the_branch_it_loads_into(served: Served) -> None:
    line = b'{"type": "Person", "data": {"name": "dan"}}'
    path = "/graphs/default/load/ndjson?branch=tests/forked&from=main"
    done = served.request("POST", path, content=line, Content_Type="application/x-ndjson").json
    assert (done["branch"], done["base_branch"], done["branch_created"]) == ("tests/forked", "main", True)


def test_a_branch_is_created_merged_and_deleted(served: Served, branch: str) -> None:
    made = served.ask("/branches", {"name": "tests/feature", "from": branch})
    assert (made["creator"], made["parent"]) == ("ada", branch)
    served.ask("/mutate", {"query": ADD, "params": {"n": "cid"}, "branch": "tests/feature"})
    merged = served.ask("/branches/merge", {"source": "tests/feature", "target": branch, "delete_branch": True})
    assert (merged["outcome"], merged["actor_id"], merged["branch_deleted"]) == ("fast_forward", "ada", True)
    assert served.names(branch) == ["ada", "bob", "cid"]
    names = {each["name"] for each in served.ask("/branches")["branches"]}
    assert branch in names
    assert "tests/feature" not in names
    gone = served.request("DELETE", f"/graphs/default/branches/{branch.replace('/', '%2F')}")
    assert gone.json["name"] == branch


def test_a_tag_is_given_and_taken(served: Served) -> None:
    made = served.ask("/tags", {"name": "v1"})
    assert made["creator"] == "ada"
    assert served.ask("/snapshot?snapshot=v1")["graph_commit_id"] == made["graph_commit_id"]
    assert served.request("DELETE", "/graphs/default/tags/v1").json == {"name": "v1"}
    assert served.ask("/tags") == {"tags": []}


def test_the_schema_is_planned_and_applied(served: Served, branch: str) -> None:
    more = served.ask("/schema")["schema_source"] + "\nnode Place { code: String @key }"
    body = {"schema_source": more, "branch": branch}
    planned = served.ask("/schema/plan", body)
    applied = served.ask("/schema/apply", body)
    assert planned["steps"] == applied["steps"]
    assert applied["commit"]["kind"] == "schema_apply"
    assert "Place" in served.ask(f"/schema?branch={branch}")["schema_source"]


def test_a_condition_that_no_longer_holds_is_a_412(served: Served, branch: str) -> None:
    head = served.ask(f"/snapshot?branch={branch}")["graph_commit_id"]
    body = {"query": ADD, "params": {"n": "cid"}, "branch": branch}
    done = served.ask("/mutate/if-graph-commit", body, Omnigraph_If_Graph_Commit=head)
    again = {"query": ADD, "params": {"n": "dan"}, "branch": branch}
    for path in ("/mutate", "/mutate/if-graph-commit"):
        lost = served.request("POST", f"/graphs/default{path}", again, Omnigraph_If_Graph_Commit=head)
        expected = {"expected": head, "actual": done["commit"]["graph_commit_id"]}
        assert (lost.status, lost.json["code"]) == (412, "precondition_failed")
        assert lost.json["precondition_failure"] == expected
    missing = served.request("POST", "/graphs/default/mutate/if-graph-commit", again)
    assert (missing.status, missing.json["argument"]) == (400, "Omnigraph-If-Graph-Commit")


def test_concurrent_writes_are_all_there_and_conflicts_name_the_table(served: Served, branch: str) -> None:
    """Inserts never fail each other. Of several updates of one row some may lose, with a 409 that says to whom."""

    def insert(number: int) -> int:
        body = {"query": ADD, "params": {"n": f"n{number}"}, "branch": branch}
        return served.request("POST", "/graphs/default/mutate", body).status

    def update(age: int) -> tuple[int, object]:
        body = {"query": SET_AGE, "params": {"n": "ada", "a": age}, "branch": branch}
        found = served.request("POST", "/graphs/default/mutate", body)
        return found.status, found.json.get("manifest_conflict")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(insert, range(8))) == [200] * 8
        ends = list(pool.map(update, range(8)))
    assert {f"n{number}" for number in range(8)} <= set(served.names(branch))
    assert {status for status, _ in ends} <= {200, 409}
    assert any(status == 200 for status, _ in ends)
    for status, conflict in ends:
        if status == 409:
            assert isinstance(conflict, dict)
            assert conflict["table_key"] == "node:Person"
            assert conflict["actual"] > conflict["expected"]


def test_records_arrive_in_a_file_and_not_in_memory(graph_place: Path) -> None:
    """A body that stops in the middle has taken no memory, and nothing of it is loaded."""
    line = json.dumps({"type": "Person", "data": {"name": "x" * 1_000}}).encode() + b"\n"
    piece = line * 1_000
    with (
        serving(graph_place, is_open=True, load_bytes=128 << 20) as server,
        socket.create_connection(("127.0.0.1", server.port), 60) as caller,
    ):
        server.names()
        before = _memory(server.child.pid)
        caller.sendall(
            b"POST /graphs/default/load/ndjson?mode=append HTTP/1.1\r\nHost: x\r\n"
            b"Content-Type: application/x-ndjson\r\nContent-Length: %d\r\n\r\n" % (100 * len(piece))
        )
        for _ in range(96):
            caller.sendall(piece)
        assert _memory(server.child.pid) - before < 32 << 20
        caller.shutdown(socket.SHUT_RDWR)
        caller.close()
        assert server.names() == ["ada", "bob"]


def test_a_body_of_many_pieces_is_loaded_whole(graph_place: Path) -> None:
    lines = [json.dumps({"type": "Person", "data": {"name": f"{n:05}" + "x" * 1_000}}) for n in range(4_000)]
    content = "\n".join(lines).encode()
    path, header = "/graphs/default/load/ndjson?mode=append", {"Content_Type": "application/x-ndjson"}
    with serving(graph_place, is_open=True, load_bytes=len(content)) as server:
        over = server.request("POST", path, content=content + b"\n", **header)
        assert (over.status, over.json["resource_limit"]["limit"]) == (413, len(content))
        bomb = gzip.compress(content + b"\n")
        assert server.request("POST", path, content=bomb, Content_Encoding="gzip", **header).status == 413
        half = gzip.compress(content)[:-100]
        assert server.request("POST", path, content=half, Content_Encoding="gzip", **header).status == 400
        assert server.names() == ["ada", "bob"]
        done = server.request("POST", path, content=content, Idempotency_Key="k", **header)
        assert done.json["nodes"] == [{"name": "Person", "entities_loaded": 4_000}]
        again = server.request("POST", path, content=content, Idempotency_Key="k", **header)
        assert again.headers["idempotency-replayed"] == "true"


def _memory(process: int) -> int:
    """How many bytes of memory a process holds for itself."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) << 10
