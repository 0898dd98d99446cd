"""Idempotency keys: a write that is sent again is done once, whatever happened to the first."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import urllib3
from tests.sampling import sampled
from tests.server.running import ADD, SCHEMA, Reply, Served, serving

import omnigraph
from omnigraph.errors import CommitDone, InvalidArgument

NDJSON = "application/x-ndjson"
LINE = b'{"edge": "Knows", "from": "ada", "to": "bob", "data": {}}'
"""A record without an id: each time it is loaded there is one edge more."""


KILLED_AT = (
    "write.after_publish",
    "write.after_stage",
    "write.after_sidecar",
    "write.after_tables",
    "write.after_sidecar_delete",
)


def knows(server: Served) -> int:
    return sum(
        each["row_count"] for each in server.ask("/snapshot")["tables"] if each["table_key"] == "edge:Knows"
    )


def load(server: Served, key: str, **headers: str) -> Reply:
    return server.request(
        "POST", "/graphs/default/load/ndjson", content=LINE, Content_Type=NDJSON, Idempotency_Key=key, **headers
    )


def test_a_write_with_the_same_key_is_done_once(graph_place: Path) -> None:
    with serving(graph_place) as server:
        first, again = load(server, "order-17"), load(server, "order-17")
        assert first.status == again.status == 200
        assert again.json == first.json
        assert "idempotency-replayed" not in first.headers
        assert again.headers["idempotency-replayed"] == "true"
        assert knows(server) == 2
        other = load(server, "order-17", Authorization="Bearer token-of-bob")
        assert other.json["commit"]["actor_id"] == "bob"
        assert load(server, "order-18").status == 200
        assert knows(server) == 4


def test_the_same_key_for_another_write_is_refused(graph_place: Path) -> None:
    with serving(graph_place) as server:
        body: dict[str, Any] = {"query": ADD, "params": {"n": "cid"}}
        done = server.ask("/mutate", body, Idempotency_Key="k")
        assert server.ask("/mutate", body, Idempotency_Key="k") == done
        body["params"]["n"] = "dan"
        refused = server.request("POST", "/graphs/default/mutate", body, Idempotency_Key="k")
        assert (refused.status, refused.json["code"]) == (422, "key_reused")
        assert server.names() == ["ada", "bob", "cid"]
        long = server.request("POST", "/graphs/default/mutate", body, Idempotency_Key="k" * 257)
        assert long.status == 400


def test_a_write_that_failed_may_be_sent_again_with_its_key(graph_place: Path) -> None:
    with serving(graph_place) as server:
        body = {"query": ADD, "params": {"n": "cid"}, "branch": "dev"}
        assert server.request("POST", "/graphs/default/mutate", body, Idempotency_Key="k").status == 404
        server.ask("/branches", {"name": "dev"})
        server.ask("/mutate", body, Idempotency_Key="k")
        assert server.names("dev") == ["ada", "bob", "cid"]


@pytest.mark.long
def test_a_merge_is_done_once(graph_place: Path) -> None:
    with serving(graph_place) as server:
        server.ask("/branches", {"name": "dev"})
        server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}, "branch": "dev"})
        first = server.ask("/branches/merge", {"source": "dev"}, Idempotency_Key="k")
        again = server.ask("/branches/merge", {"source": "dev"}, Idempotency_Key="k")
        assert again == first
        assert first["outcome"] == "fast_forward"


def test_a_merge_with_the_same_key_deletes_its_source_once(graph_place: Path) -> None:
    """A branch that somebody has made anew since then has nothing to do with the merge, and stays."""
    merge = {"source": "dev", "delete_branch": True}
    with serving(graph_place) as server:
        server.ask("/branches", {"name": "dev"}, Idempotency_Key="b")
        server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}, "branch": "dev"})
        first = server.ask("/branches/merge", merge, Idempotency_Key="k")
        assert first["branch_deleted"] is True
        server.ask("/branches", {"name": "dev"})
        server.ask("/mutate", {"query": ADD, "params": {"n": "dan"}, "branch": "dev"})
        assert server.ask("/branches/merge", merge, Idempotency_Key="k") == first
        assert server.names("dev") == ["ada", "bob", "cid", "dan"]


def test_every_write_can_be_sent_again(graph_place: Path) -> None:
    with serving(graph_place) as server:
        added = server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}})["commit"]["graph_commit_id"]
        other = server.ask("/mutate", {"query": ADD, "params": {"n": "dan"}})["commit"]["graph_commit_id"]
        schema = server.ask("/schema")["schema_source"].replace("age: I32?", "age: I32?  nick: String?")
        writes: dict[str, dict[str, Any]] = {
            "/revert": {"commits": [added]},
            "/cherry-pick": {"commit": added},
            "/reset": {"commit": other},
            "/schema/apply": {"schema_source": schema},
            "/branches": {"name": "dev"},
            "/tags": {"name": "v1"},
        }
        for path, body in writes.items():
            url = f"/graphs/default{path}"
            first, again = (server.request("POST", url, body, Idempotency_Key=path) for _ in range(2))
            assert (first.status, again.status, again.json) == (200, 200, first.json), (path, again.content)
            assert again.headers["idempotency-replayed"] == "true"
        # One key is for one write, also if another one has the same values.
        twice = server.request(
            "POST", "/graphs/default/reset", writes["/cherry-pick"], Idempotency_Key="/cherry-pick"
        )
        assert twice.status == 422
        gone = server.request("DELETE", "/graphs/default/branches/dev", Idempotency_Key="x")
        assert (gone.status, gone.json["argument"]) == (400, "Idempotency-Key")
        assert len(server.ask("/branches")["branches"]) == 2


LOST: dict[str, tuple[str, dict[str, Any]]] = {
    "merge": ("/branches/merge", {"source": "dev", "delete_branch": True}),
    "reset": ("/reset", {"commit": "before"}),
    "revert": ("/revert", {"commits": ["newest"]}),
    "schema": ("/schema/apply", {"schema_source": SCHEMA.replace("since: I32?", "since: I32?  note: String?")}),
    "mutate": ("/mutate", {"query": ADD, "params": {"n": "eve"}}),
}


@pytest.mark.long
@pytest.mark.parametrize("name", LOST)
def test_a_write_whose_answer_was_lost_is_found_again(graph_place: Path, name: str) -> None:
    """The server dies when the commit is published. The same request, with its condition, is answered by it."""
    with omnigraph.open(graph_place) as graph:
        graph.tag("before")
        graph.mutate(ADD, {"n": "cid"})
        newest = graph.tag("newest").graph_commit_id
        graph.create_branch("dev")
        graph.mutate(ADD, {"n": "dan"}, branch="dev")
    path, body = LOST[name]
    headers: dict[str, Any] = {"Idempotency_Key": "k", "Omnigraph_If_Graph_Commit": newest}
    with serving(graph_place, failpoint="write.after_publish") as server:
        with pytest.raises(urllib3.exceptions.HTTPError):
            server.ask(path, body, **headers)
        server.child.join_killed()
    with serving(graph_place) as server:
        found = server.request("POST", f"/graphs/default{path}", body, **headers)
        assert found.status == 200, found.content
        assert found.headers["idempotency-replayed"] == "true"
        assert found.json["commit"]["parents"][0] == newest
        assert server.ask("/commits?limit=1")["commits"] == [found.json["commit"]]
        assert server.ask(path, body, **headers) == found.json
        assert found.json.get("branch_deleted", True)
        assert len(server.ask("/branches")["branches"]) == (1 if name == "merge" else 2)


def test_the_same_write_at_the_same_time_on_two_servers_is_done_once(graph_place: Path) -> None:
    with serving(graph_place) as one, serving(graph_place) as other, ThreadPoolExecutor(8) as pool:
        ends = list(pool.map(lambda number: load((one, other)[number % 2], "k"), range(8)))
        assert [end.status for end in ends] == [200] * 8
        assert len({end.json["commit"]["graph_commit_id"] for end in ends}) == 1
        assert knows(one) == knows(other) == 2


@pytest.mark.parametrize(
    ("path", "content", "media_type"),
    [
        ("/branches", b'{"name": "dev"}', "application/json"),
        ("/tags", b'{"name": "v1"}', "application/json"),
        ("/load/ndjson", LINE, NDJSON),
        ("/load/ndjson?branch=dev&from=main", LINE, NDJSON),
    ],
)
def test_the_same_request_at_the_same_time_gets_one_answer(
    graph_place: Path, path: str, content: bytes, media_type: str
) -> None:
    def send(server: Served) -> Reply:
        headers = {"Content_Type": media_type, "Idempotency_Key": "k"}
        return server.request("POST", f"/graphs/default{path}", content=content, **headers)

    with serving(graph_place) as one, serving(graph_place) as other, ThreadPoolExecutor(8) as pool:
        ends = [*pool.map(send, [one, other] * 4), send(one), send(other)]
        assert [(end.status, end.json) for end in ends] == [(200, ends[0].json)] * 10
        assert [end.headers.get("idempotency-replayed") for end in ends].count(None) == 1


@pytest.mark.parametrize(
    ("path", "name", "failpoint"),
    [
        ("/branches", "dev", "branch_create.after_ref"),
        *sampled([("/branches", "dev", "branch_create.after_native"), ("/tags", "v1", "tag_create.after_ref")], 0),
    ],
)
def test_a_branch_or_tag_whose_server_was_killed_is_made_once(
    graph_place: Path, path: str, name: str, failpoint: str
) -> None:
    with serving(graph_place, failpoint=failpoint) as server:
        with pytest.raises(urllib3.exceptions.HTTPError):
            server.ask(path, {"name": name}, Idempotency_Key="k")
        server.child.join_killed()
    with serving(graph_place) as server:
        server.ask("/mutate", {"query": ADD, "params": {"n": "cid"}})
        done = server.request("POST", f"/graphs/default{path}", {"name": name}, Idempotency_Key="k")
        assert (done.status, done.json["name"]) == (200, name), done.content
        assert ("idempotency-replayed" in done.headers) == failpoint.endswith("after_ref")
        assert server.ask(path, {"name": name}, Idempotency_Key="k") == done.json
        other = server.request("POST", f"/graphs/default{path}", {"name": name}, Idempotency_Key="another")
        assert (other.status, other.json["code"]) == (409, "conflict")


@pytest.mark.parametrize("failpoint", sampled(KILLED_AT, 1))
def test_a_write_whose_server_was_killed_is_done_once(graph_place: Path, failpoint: str) -> None:
    with serving(graph_place, failpoint=failpoint) as server:
        with pytest.raises(urllib3.exceptions.HTTPError):
            load(server, "k")
        server.child.join_killed()
    with serving(graph_place) as server:
        done = load(server, "k")
        assert done.status == 200, done.content
        assert done.json["edges"] == [{"name": "Knows", "entities_loaded": 1}]
        assert load(server, "k").json == done.json
        assert knows(server) == 2


def test_a_commit_id_of_the_callers_choice_is_used_once(graph_place: Path) -> None:
    wanted = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    with omnigraph.open(graph_place) as graph:
        done = graph.mutate(ADD, {"n": "cid"}, graph_commit_id=wanted)
        assert done.commit is not None
        assert done.commit.graph_commit_id == wanted
        for again in (
            lambda: graph.mutate(ADD, {"n": "dan"}, graph_commit_id=wanted),
            lambda: graph.load(LINE, mode="append", graph_commit_id=wanted),
        ):
            with pytest.raises(CommitDone):
                again()
        with pytest.raises(InvalidArgument, match="not a ULID"):
            graph.mutate(ADD, {"n": "dan"}, graph_commit_id="mine")
