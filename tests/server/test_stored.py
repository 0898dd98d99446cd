"""Stored queries: checked when the server starts, listed with their parameters, invoked by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.server.running import ADD, NAMES, serving

import omnigraph
from omnigraph.errors import InvalidArgument, QueryError, QueryNotFound, RequestError
from omnigraph.server.answers.stored import read_stored


def test_stored_queries_are_listed_and_invoked(graph_place: Path, tmp_path: Path) -> None:
    (tmp_path / "people.gq").write_text(f"{NAMES}\n{ADD}")
    with serving(graph_place, is_open=True, queries=tmp_path) as server:
        listed = server.ask("/queries")["queries"]
        assert [(each["name"], each["mutation"]) for each in listed] == [("add", True), ("names", False)]
        assert [each["name"] for each in listed[0]["params"]] == ["n", "a"]
        assert [each["name"] for each in listed[1]["operation"]["result"]] == ["name"]
        with omnigraph.connect(server.url) as graph:
            assert graph.queries() == listed
            first = graph.invoke("names")
            assert (first.query_name, first["name"]) == ("names", ["ada", "bob"])
            done = graph.invoke_mutation("add", {"n": "cid"}, idempotency_key="k")
            assert graph.invoke_mutation("add", {"n": "cid"}, idempotency_key="k") == done
            assert (done.query_name, done.affected_nodes) == ("add", 1)
            assert graph.invoke("names", at=first.graph_commit_id)["name"] == ["ada", "bob"]
            for refused in (lambda: graph.invoke("add", {"n": "x"}), lambda: graph.invoke_mutation("names")):
                with pytest.raises(InvalidArgument, match="the stored query"):
                    refused()
            with pytest.raises(QueryNotFound):
                graph.invoke("nothing")
        late = server.request("POST", "/graphs/default/queries/add", {"params": {"n": "x"}, "snapshot": 1})
        assert (late.status, late.json["argument"]) == (400, "snapshot")


def test_stored_queries_have_conditions_if_they_write(graph_place: Path, tmp_path: Path) -> None:
    (tmp_path / "people.gq").write_text(f"{NAMES}\n{ADD}")
    with serving(graph_place, queries=tmp_path) as server:
        head, body = server.ask("/snapshot")["graph_commit_id"], {"params": {"n": "cid", "a": 1}}

        def invoked(path: str, **headers: Any) -> tuple[int, Any]:
            found = server.request("POST", f"/graphs/default/queries/{path}", body, **headers)
            return found.status, found.json.get("argument") or found.json.get("precondition_failure")

        assert invoked("add/if-graph-commit") == (400, "Omnigraph-If-Graph-Commit")
        assert invoked("add/if-graph-commit", Omnigraph_If_Graph_Commit=head) == (200, None)
        status, lost = invoked("add/if-graph-commit", Omnigraph_If_Graph_Commit=head)
        assert (status, lost["expected"]) == (412, head)
        assert invoked("names/if-graph-commit", Omnigraph_If_Graph_Commit=head) == (400, "expect_mutation")
        assert invoked("names", Omnigraph_If_Graph_Commit=head) == (400, "Omnigraph-If-Graph-Commit")


@pytest.mark.parametrize(
    ("files", "kind", "said"),
    [
        ({"a.gq": "query q() { match { $p: Persn } return { $p } }"}, QueryError, "Persn"),
        ({"a.gq": "query"}, QueryError, "a.gq"),
        ({"a.gq": NAMES, "b.gq": NAMES}, RequestError, "another stored query 'names'"),
        ({"a.gq": "\udcff"}, RequestError, "cannot be read"),
    ],
)
def test_stored_queries_that_cannot_be_served(
    files: dict[str, str], kind: type[Exception], said: str, graph_place: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_bytes(text.encode(errors="surrogateescape"))
    with omnigraph.open(graph_place, read_only=True) as graph:
        with pytest.raises(kind, match=said):
            read_stored(folder, {"default": graph})
        with pytest.raises(RequestError, match="no folder"):
            read_stored(tmp_path / "none", {"default": graph})
