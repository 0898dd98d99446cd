"""`AsyncGraph`: the methods of a graph for programs with an event loop. The engine runs in threads."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar, Unpack, cast, overload

from omnigraph.embed.client import EmbeddingClient
from omnigraph.graph import Graph
from omnigraph.history.feed.pages import ChangePage
from omnigraph.keywords import ChangeKeywords
from omnigraph.opening import init, open  # noqa: A004  the public name
from omnigraph.policy.policy import Policy
from omnigraph.read.limits import Cancellation
from omnigraph.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")
_CANCELLATION: Final = "cancellation"


class _InThread(Generic[P, R]):
    """A method of `Graph`, awaited: it runs in a thread of the graph's pool, and the event loop goes on.

    If the awaiting task is cancelled, a method that can be stopped is stopped; any other runs to its end, because
    a write that has begun has to.
    """

    def __init__(self, method: Callable[Concatenate[Graph, P], R]) -> None:
        self._method = method
        self._can_be_stopped = _CANCELLATION in inspect.signature(method).parameters
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type[AsyncGraph]) -> Self: ...
    @overload
    def __get__(self, instance: AsyncGraph, owner: type[AsyncGraph]) -> Callable[P, Coroutine[Any, Any, R]]: ...
    def __get__(
        self, instance: AsyncGraph | None, owner: type[AsyncGraph]
    ) -> Self | Callable[P, Coroutine[Any, Any, R]]:
        if instance is None:
            return self
        graph = instance

        @functools.wraps(self._method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            stop: Cancellation | None = None
            if self._can_be_stopped and isinstance(graph.graph, Graph):
                given = kwargs.get(_CANCELLATION)
                stop = given if isinstance(given, Cancellation) else Cancellation()
                kwargs[_CANCELLATION] = stop
            method: Callable[P, R] = getattr(graph.graph, self._method.__name__)
            return await graph._in_thread(functools.partial(method, *args, **kwargs), stop)

        return call


class AsyncGraph:
    """A graph whose methods are awaited. Those that only look at what is in memory are not."""

    def __init__(self, graph: Graph, *, threads: int | None = None) -> None:
        self.graph = graph
        self._pool = ThreadPoolExecutor(threads or min(32, (os.cpu_count() or 1) + 4), "omnigraph")
        self._is_view = False

    @classmethod
    async def open(
        cls,
        uri: str | os.PathLike[str],
        *,
        read_only: bool = False,
        actor: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        embedder: EmbeddingClient | None = None,
        cache_bytes: int | None = None,
        settings: Settings | None = None,
        policy: Policy | str | os.PathLike[str] | None = None,
        threads: int | None = None,
    ) -> AsyncGraph:
        """Open a graph as `omnigraph.open` does. ``threads`` is how many of its methods run at the same time."""
        graph = await asyncio.to_thread(
            open,
            uri,
            read_only=read_only,
            actor=actor,
            storage_options=storage_options,
            embedder=embedder,
            cache_bytes=cache_bytes,
            settings=settings,
            policy=policy,
        )
        return cls(graph, threads=threads)

    @classmethod
    async def connect(
        cls,
        url: str,
        *,
        token: str | None = None,
        graph: str | None = None,
        timeout: float = 300.0,
        certificates: str | None = None,
        threads: int | None = None,
    ) -> AsyncGraph:
        """Connect to a graph of a server as `omnigraph.connect` does."""
        from omnigraph.remote.connecting import connect

        found = await asyncio.to_thread(
            connect, url, token=token, graph=graph, timeout=timeout, certificates=certificates
        )
        return cls(cast(Graph, found), threads=threads)

    @classmethod
    async def init(
        cls,
        uri: str | os.PathLike[str],
        schema: str,
        *,
        actor: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        force: bool = False,
        settings: Settings | None = None,
        threads: int | None = None,
    ) -> AsyncGraph:
        """Create a graph as `omnigraph.init` does."""
        graph = await asyncio.to_thread(
            init,
            uri,
            schema,
            actor=actor,
            storage_options=storage_options,
            force=force,
            settings=settings,
        )
        return cls(graph, threads=threads)

    def __repr__(self) -> str:
        return f"Async{self.graph!r}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Wait for what runs, then close the graph."""
        await asyncio.to_thread(self.graph.close)
        if not self._is_view:
            await asyncio.to_thread(self._pool.shutdown)

    @property
    def is_closed(self) -> bool:
        """Was it, or the graph it is a view of, closed?"""
        return self.graph.is_closed

    @property
    def address(self) -> str:
        """Where the graph is."""
        return self.graph.address

    async def schema(self) -> str:
        """The accepted schema, as written."""
        return await self._in_thread(lambda: self.graph.schema)

    async def branch(self, name: str) -> AsyncGraph:
        """The same graph, with another default branch."""
        return self._view(await self._in_thread(lambda: self.graph.branch(name)))

    def as_actor(self, name: str) -> AsyncGraph:
        return self._view(self.graph.as_actor(name))

    as_actor.__doc__ = Graph.as_actor.__doc__

    def _view(self, graph: Graph) -> AsyncGraph:
        view = AsyncGraph.__new__(AsyncGraph)
        view.graph = graph
        view._pool, view._is_view = self._pool, True
        return view

    branches = _InThread(Graph.branches)
    damaged_branches = _InThread(Graph.damaged_branches)
    create_branch = _InThread(Graph.create_branch)
    delete_branch = _InThread(Graph.delete_branch)
    tags = _InThread(Graph.tags)
    damaged_tags = _InThread(Graph.damaged_tags)
    tag = _InThread(Graph.tag)
    delete_tag = _InThread(Graph.delete_tag)
    query = _InThread(Graph.query)
    entity = _InThread(Graph.entity)
    blob = _InThread(Graph.blob)
    put_blob = _InThread(Graph.put_blob)
    check = _InThread(Graph.check)
    explain = _InThread(Graph.explain)
    mutate = _InThread(Graph.mutate)
    load = _InThread(Graph.load)
    ingest = _InThread(Graph.ingest)
    export = _InThread(Graph.export)
    embed = _InThread(Graph.embed)
    plan_schema = _InThread(Graph.plan_schema)
    apply_schema = _InThread(Graph.apply_schema)
    apply_schema_to_all = _InThread(Graph.apply_schema_to_all)
    schema_source = _InThread(Graph.schema_source)
    schema_history = _InThread(Graph.schema_history)
    jobs = _InThread(Graph.jobs)
    clean_jobs = _InThread(Graph.clean_jobs)
    ensure_indices = _InThread(Graph.ensure_indices)
    optimize = _InThread(Graph.optimize)
    optimize_all = _InThread(Graph.optimize_all)
    maintain = _InThread(Graph.maintain)
    doctor = _InThread(Graph.doctor)
    repair = _InThread(Graph.repair)
    cleanup = _InThread(Graph.cleanup)
    repair_all = _InThread(Graph.repair_all)
    clone = _InThread(Graph.clone)
    backup = _InThread(Graph.backup)
    refresh = _InThread(Graph.refresh)
    recoveries = _InThread(Graph.recoveries)
    snapshot = _InThread(Graph.snapshot)
    merge = _InThread(Graph.merge)
    preview_merge = _InThread(Graph.preview_merge)
    apply_merge = _InThread(Graph.apply_merge)
    revert = _InThread(Graph.revert)
    cherry_pick = _InThread(Graph.cherry_pick)
    reset = _InThread(Graph.reset)
    diff = _InThread(Graph.diff)
    commit_changes = _InThread(Graph.commit_changes)
    changes = _InThread(Graph.changes)
    baseline = _InThread(Graph.baseline)
    commits = _InThread(Graph.commits)
    blame = _InThread(Graph.blame)
    log = _InThread(Graph.log)
    commit = _InThread(Graph.commit)
    spark = _InThread(Graph.spark)
    stream = _InThread(Graph.stream)

    async def change_pages(
        self, branch: str | None = None, **options: Unpack[ChangeKeywords]
    ) -> AsyncIterator[ChangePage]:
        pages = await self._in_thread(lambda: self.graph.change_pages(branch, **options))
        while (page := await self._in_thread(lambda: next(pages, None))) is not None:
            yield page

    change_pages.__doc__ = Graph.change_pages.__doc__

    async def _in_thread(self, work: Callable[[], R], stop: Cancellation | None = None) -> R:
        """Run work in the pool, with the context of the awaiting task."""
        context = contextvars.copy_context()
        running = asyncio.get_running_loop().run_in_executor(self._pool, context.run, work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if stop is not None:
                stop.cancel()
            running.add_done_callback(_ignore_outcome)
            raise


def _ignore_outcome(running: asyncio.Future[Any]) -> None:
    """Take note of an outcome that no task awaits any more, so that the loop does not complain."""
    if not running.cancelled():
        running.exception()
