"""`AsyncGraph`: what `Graph` does, awaited."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from tests.stores import Store

import omnigraph
from omnigraph import AsyncGraph, Graph
from omnigraph.embed.client import Role, Vectors
from omnigraph.errors import GraphClosed, QueryError

SCHEMA = "node Person { name: String @key }\nedge Knows: Person -> Person"
ADD = "query add($n: String) { insert Person { name: $n } }"
NAMES = "query q() { match { $p: Person } return { $p.name as n } order { n asc } }"


def test_it_has_every_method_of_a_graph() -> None:
    """A method that is new in `Graph` is missing here until it is added."""
    own = {name for name in dir(Graph) if not name.startswith("_")}
    assert own - set(dir(AsyncGraph)) == {"catalog"}
    for name in own & set(dir(AsyncGraph)) - {"branch", "schema", "address", "close", "is_closed"}:
        assert inspect.getdoc(getattr(AsyncGraph, name)) == inspect.getdoc(getattr(Graph, name))


def test_a_day_in_its_life(local_store: Store) -> None:
    async def main() -> list[Any]:
        async with await AsyncGraph.init(local_store.uri, SCHEMA) as graph:
            await asyncio.gather(*(graph.mutate(ADD, {"n": f"p{n}"}) for n in range(4)))
            await graph.create_branch("dev")
            dev = await graph.branch("dev")
            await dev.mutate(ADD, {"n": "q"})
            await dev.close()
            loaded = await graph.load([{"type": "Person", "data": {"name": "r"}}], mode="append")
            found = [(await graph.query(NAMES))["n"], (await graph.query(NAMES, branch="dev"))["n"]]
            assert (await graph.entity("Person", "q", branch="dev"), loaded.nodes) == (
                {"id": "q", "name": "q"},
                {"Person": 1},
            )
            assert "Person" in await graph.schema()
        with pytest.raises((GraphClosed, RuntimeError)):
            await graph.branches()
        return found

    assert asyncio.run(main()) == [["p0", "p1", "p2", "p3", "r"], ["p0", "p1", "p2", "p3", "q"]]


def test_errors_are_those_of_the_graph(memory_store: Store) -> None:
    async def main() -> None:
        async with AsyncGraph(omnigraph.init(memory_store.uri, SCHEMA)) as graph:
            await graph.query("query q() { match { $p: Persn } return { $p.name } }")

    with pytest.raises(QueryError, match="Persn"):
        asyncio.run(main())


class SlowEmbedder:
    """An embedding client that is called, and answers when the test lets it."""

    model = "slow"

    def __init__(self) -> None:
        self.begun, self.go = threading.Event(), threading.Event()

    def embed(self, texts: Sequence[str], dimension: int, role: Role) -> Vectors:
        self.begun.set()
        assert self.go.wait(60)
        return np.ones((len(texts), dimension), np.float32)


def searchable(store: Store, embedder: SlowEmbedder) -> Graph:
    omnigraph.init(store.uri, "node Doc { slug: String @key  sense: Vector(2)? }")
    graph = omnigraph.open(store.uri, embedder=embedder)
    graph.load([{"type": "Doc", "data": {"slug": "a", "sense": [1, 0]}}], mode="append")
    return graph


SEARCH = 'query q() { match { $d: Doc } return { $d.slug as s } order { nearest($d.sense, "x") } limit 1 }'


def test_the_event_loop_goes_on(local_store: Store) -> None:
    """While a query waits in its thread, other tasks run: here the one that lets it go on."""
    embedder = SlowEmbedder()

    async def main() -> list[str]:
        async with AsyncGraph(searchable(local_store, embedder)) as graph:
            searching = asyncio.create_task(graph.query(SEARCH))
            while not embedder.begun.is_set():
                await asyncio.sleep(0.01)
            assert len(await graph.branches()) == 1
            embedder.go.set()
            return (await searching)["s"]

    assert asyncio.run(main()) == ["a"]


def test_a_cancelled_task_stops_its_query(local_store: Store) -> None:
    embedder = SlowEmbedder()
    stop = omnigraph.Cancellation()

    async def main() -> None:
        async with AsyncGraph(searchable(local_store, embedder)) as graph:
            searching = asyncio.create_task(graph.query(SEARCH, cancellation=stop))
            while not embedder.begun.is_set():
                await asyncio.sleep(0.01)
            searching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching
            assert stop.is_cancelled
            embedder.go.set()

    asyncio.run(main())
