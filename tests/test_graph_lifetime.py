"""A graph's lifetime: closed by hand or by `with`, and pickled to be opened elsewhere."""

from __future__ import annotations

import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest
from tests.stores import S3Server, Store

import omnigraph
from omnigraph.errors import GraphClosed, RequestError

SCHEMA = "node Person { name: String @key  age: I32? }"
ADD = "query add($n: String) { insert Person { name: $n } }"
NAMES = "query q() { match { $p: Person } return { $p.name as n } order { n asc } }"


def names(graph: omnigraph.Graph) -> list[str]:
    return graph.query(NAMES)["n"]


def new_graph(store: Store) -> omnigraph.Graph:
    graph = omnigraph.init(store.uri, SCHEMA, storage_options=store.options)
    graph.mutate(ADD, {"n": "Ada"})
    return graph


class TestClosing:
    def test_a_closed_graph_says_so(self, local_store: Store) -> None:
        with new_graph(local_store) as graph:
            assert names(graph) == ["Ada"]
        assert graph.is_closed
        for use in (graph.branches, graph.snapshot, lambda: names(graph), lambda: graph.mutate(ADD, {"n": "Bo"})):
            with pytest.raises(GraphClosed, match="was closed here; open it again"):
                use()
        graph.close()
        assert names(omnigraph.open(local_store.uri)) == ["Ada"]

    def test_it_lets_go_of_memory_and_handles(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        names(graph)
        assert graph._cache.usage().entries
        graph.close()
        assert not graph._cache.usage().entries
        assert not graph._opened.tables._handles._open

    def test_a_view_closes_alone_and_the_graph_with_its_views(self, memory_store: Store) -> None:
        graph = new_graph(memory_store)
        graph.create_branch("dev")
        with graph.branch("dev") as view:
            assert names(view) == ["Ada"]
        assert (view.is_closed, graph.is_closed) == (True, False)
        other = graph.branch("dev")
        graph.close()
        with pytest.raises(GraphClosed):
            names(other)


class TestPickling:
    def test_it_opens_where_it_arrives(self, local_store: Store) -> None:
        graph = omnigraph.open(new_graph(local_store).address, actor="bo", cache_bytes=1 << 20)
        graph.create_branch("dev")
        sent = pickle.loads(pickle.dumps(graph.branch("dev")))
        sent.mutate(ADD, {"n": "Bo"})
        assert (names(sent), names(graph)) == (["Ada", "Bo"], ["Ada"])
        assert sent.commits()[0].actor_id == "bo"
        assert (sent._cache.limit, repr(sent)) == (1 << 20, repr(graph.branch("dev")))

    def test_in_another_process(self, local_store: Store) -> None:
        graph = omnigraph.open(new_graph(local_store).address, read_only=True)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            assert pool.submit(names, graph).result(120) == ["Ada"]

    def test_with_the_credentials_of_its_store(self, s3_server: S3Server) -> None:
        graph = new_graph(s3_server.store())
        assert names(pickle.loads(pickle.dumps(graph))) == ["Ada"]

    def test_a_graph_in_memory_is_refused(self, memory_store: Store) -> None:
        with pytest.raises(RequestError, match="lives in the memory of one process"):
            pickle.dumps(new_graph(memory_store))

    def test_a_snapshot_travels_too(self, local_store: Store) -> None:
        graph = new_graph(local_store)
        before = pickle.loads(pickle.dumps(graph.snapshot()))
        graph.mutate(ADD, {"n": "Bo"})
        assert before == pickle.loads(pickle.dumps(before))
        assert graph.query(NAMES, at=before)["n"] == ["Ada"]


def test_nothing_is_lost_without_closing(local_store: Store) -> None:
    new_graph(local_store)
    code = f"import omnigraph; omnigraph.open({local_store.uri!r}).mutate({ADD!r}, {{'n': 'Bo'}})"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, capture_output=True)
    assert names(omnigraph.open(local_store.uri)) == ["Ada", "Bo"]
