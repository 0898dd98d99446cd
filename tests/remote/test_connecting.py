"""Connecting to a server: which graph, with which token, and what happens if nobody answers."""

from __future__ import annotations

import asyncio
import io
import pickle
from pathlib import Path

import pytest
from tests.server.running import ADD, NAMES, TOKENS, make_graph, serving

import omnigraph
from omnigraph import AsyncGraph, Graph, Outcome, RemoteGraph
from omnigraph.errors import (
    ExportRefused,
    GraphClosed,
    GraphNotServed,
    InvalidAddress,
    InvalidArgument,
    RequestError,
    ServerUnavailable,
    Unauthorized,
)
from omnigraph.remote.handle import DIRECT


def test_it_has_every_method_of_a_graph_or_says_why_not() -> None:
    own = {name for name in dir(Graph) if not name.startswith("_")}
    assert own - set(dir(RemoteGraph)) == set(DIRECT)


def test_a_graph_is_named_by_the_url_or_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two"):
        make_graph(tmp_path / f"{name}.omni")
    token = TOKENS["bob"]
    with serving(tmp_path) as server:
        assert omnigraph.connect(f"{server.url}/graphs/one", token=token).address == f"{server.url}/graphs/one"
        two = omnigraph.connect(f"{server.url}/", token=token, graph="two")
        done = two.mutate(ADD, {"n": "cid"})
        assert (done.actor_id, repr(two)) == ("bob", f"RemoteGraph('{server.url}/graphs/two', branch='main')")
        assert token not in repr(two._transport)
        with pytest.raises(InvalidArgument, match="has one, two; name one"):
            omnigraph.connect(server.url, token=token)
        with pytest.raises(InvalidArgument, match="the URL names graph 'one'"):
            omnigraph.connect(f"{server.url}/graphs/one", token=token, graph="two")
        with pytest.raises(GraphNotServed):
            omnigraph.connect(server.url, token=token, graph="three").branches()
        with pytest.raises(Unauthorized):
            omnigraph.connect(server.url)
        monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", token)
        with omnigraph.connect(server.url, graph="two") as graph:
            assert len(graph.query(NAMES)) == 3
            again = pickle.loads(pickle.dumps(graph))
            assert len(again.query(NAMES)) == 3
        with pytest.raises(GraphClosed):
            graph.query(NAMES)


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "http://", "localhost:8080", "http://u:p@host", "http://host?x=1", "http://host#x"]
)
def test_what_is_no_server(url: str) -> None:
    with pytest.raises(InvalidAddress):
        omnigraph.connect(url, graph="g")


def test_a_write_that_is_not_answered_may_have_been_made(graph_place: Path) -> None:
    with serving(graph_place, is_open=True, failpoint="write.after_publish") as server:
        graph = omnigraph.connect(server.url)
        with pytest.raises(ServerUnavailable) as lost:
            graph.mutate(ADD, {"n": "cid"}, idempotency_key="k")
        assert lost.value.outcome is Outcome.UNKNOWN
        with pytest.raises(ServerUnavailable) as refused:
            graph.query(NAMES)
        assert refused.value.outcome is Outcome.NOTHING_WRITTEN
        assert str(refused.value).startswith(f"the server at {server.url}/graphs/default did not answer: ")
    with serving(graph_place, is_open=True) as server:
        graph = omnigraph.connect(server.url)
        done = graph.mutate(ADD, {"n": "cid"}, idempotency_key="k")
        assert (done.query_name, done.affected_nodes) == ("add", 1)
        assert [row["name"] for row in graph.query(NAMES)] == ["ada", "bob", "cid"]


def test_what_only_the_store_itself_can_do(graph_place: Path, tmp_path: Path) -> None:
    with serving(graph_place, is_open=True) as server, omnigraph.connect(server.url) as graph:
        with pytest.raises(RequestError, match="'optimize' works on the store itself"):
            graph.optimize()
        with pytest.raises(InvalidArgument, match="leave it out"):
            graph.mutate(ADD, {"n": "x"}, actor="eve")
        with pytest.raises(InvalidArgument, match="leave it out"):
            graph.query(NAMES, engine="spark")
        with pytest.raises(TypeError, match="no keyword 'colour'"):
            graph.query(NAMES, colour="red")
        done = graph.export(tmp_path / "out.jsonl")
        assert (tmp_path / "out.jsonl").stat().st_size == done.bytes
        with pytest.raises(ExportRefused, match="it exists; force replaces it"):
            graph.export(tmp_path / "out.jsonl")
        graph.export(tmp_path / "out.jsonl", force=True)
        assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["out.jsonl"]
        with pytest.raises(ExportRefused):
            graph.export(io.BytesIO(), format="parquet")


def test_a_remote_graph_can_be_awaited(graph_place: Path) -> None:
    async def main(url: str) -> list[str]:
        async with await AsyncGraph.connect(url) as graph:
            await graph.mutate(ADD, {"n": "cid"})
            dev = (await graph.create_branch("dev")).name
            found = await (await graph.branch(dev)).query(NAMES)
            assert [page.caught_up async for page in graph.change_pages()] == [True]
            return [row["name"] for row in found]

    with serving(graph_place, is_open=True) as server:
        assert asyncio.run(main(server.url)) == ["ada", "bob", "cid"]
