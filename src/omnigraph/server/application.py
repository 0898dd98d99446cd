"""The way of a request through the server: route, token, graph, admission, body, engine, reply."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from omnigraph.errors import InvalidArgument, MediaUnsupported, OmniError
from omnigraph.graph import Graph, reservations
from omnigraph.history.feed.pages import ChangePage
from omnigraph.read.limits import Cancellation
from omnigraph.server.admission import Admission
from omnigraph.server.answers.calls import BYTES, NDJSON, Followed, Rendered, Streamed
from omnigraph.server.answers.stored import Stored
from omnigraph.server.graphs import ServedGraphs
from omnigraph.server.observing.logs import Log, write_log
from omnigraph.server.observing.metrics import Metrics
from omnigraph.server.observing.requests import BEGUN, Observed, request_id_of
from omnigraph.server.observing.traces import Traces
from omnigraph.server.permits import Permits
from omnigraph.server.policies import ServerPolicies
from omnigraph.server.requests import Admitted, forms
from omnigraph.server.routes.actions import asked
from omnigraph.server.routes.finding import RouteFinder
from omnigraph.server.routes.openapi import openapi_document
from omnigraph.server.routes.parameters import Place, parse_query
from omnigraph.server.routes.route import IDEMPOTENCY_KEY, Access, Route
from omnigraph.server.routes.table import ROUTES
from omnigraph.server.settings import ServerSettings
from omnigraph.server.threads import Threads
from omnigraph.server.tokens import Tokens
from omnigraph.server.transfer.bodies import accepted, announced, codec_for, media_type, read_body, unpacked
from omnigraph.server.transfer.events import MEDIA_TYPE as EVENTS
from omnigraph.server.transfer.events import events
from omnigraph.server.transfer.heads import Head
from omnigraph.server.transfer.replies import LEFT, crashed, failed, send_reply, unrouted
from omnigraph.server.transfer.spool import Content, spooled_body
from omnigraph.server.transfer.streams import CallerGone, Stream
from omnigraph.server.workers import metrics_folder

R = TypeVar("R")
_UNCACHED: Final = {"Cache-Control": "no-store"}
_SWEEP_SECONDS: Final = 3_600
_WATCHED_AFTER: Final = 0.05
"""So many seconds a read may take before it is looked whether its caller still waits."""


class Server:
    """One server process: its open graphs, its threads, and what it has counted. ``tokens`` are None if everybody
    may do everything."""

    def __init__(
        self,
        served: ServedGraphs,
        tokens: Tokens | None,
        settings: ServerSettings | None = None,
        log: Log = write_log,
        stored: Stored | None = None,
        policies: ServerPolicies | None = None,
        traces: Traces | None = None,
        is_managed: bool = False,
    ) -> None:
        self.settings = settings or ServerSettings()
        self.metrics = Metrics(metrics_folder())
        self.is_stopping = False
        self.stored = stored or {}
        self.is_managed = is_managed
        """Does a cluster decide about the schemas of the graphs?"""
        self._served = served
        self._tokens = tokens
        self._traces = traces
        self._permits = None if policies is None else Permits(policies)
        self._views: dict[tuple[str, str], Graph] = {}
        self.log = log
        self._admission = Admission(self.settings)
        self._routes = RouteFinder(ROUTES)
        self._living = Starlette(lifespan=self._lifespan)
        is_remote = any(graph.address.startswith("s3://") for graph in served.graphs.values())
        short = self.settings.short_remote if is_remote else self.settings.short_local
        self._reads = Threads("read", self.settings.read_threads, self.settings.short_reads, short)
        self._writes = Threads("write", self.settings.write_threads)
        self._streams = ThreadPoolExecutor(self.settings.streams, "omnigraph-stream")

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The graphs that are served, by name."""
        return self._served.graphs

    def metrics_text(self) -> str:
        """What was counted, as Prometheus reads it."""
        return self.metrics.text()

    def openapi(self) -> dict[str, Any]:
        """What can be asked, as OpenAPI describes it."""
        return self._document

    @cached_property
    def _document(self) -> dict[str, Any]:
        return openapi_document(is_open=self._tokens is None)

    @cached_property
    def application(self) -> Observed:
        """The server as an ASGI application."""
        return Observed(self._reply, self.metrics, self.log, self._traces)

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.ensure_future(each) for each in (self._sweep(), self._save_metrics())]
        yield
        for each in tasks:
            each.cancel()
        await self.close()

    async def _save_metrics(self) -> None:
        """Keep what was counted where the other workers find it, every second."""
        while True:
            self.metrics.save()
            await asyncio.sleep(1)

    async def _sweep(self) -> None:
        """Remove old idempotency keys, now and every hour."""
        while True:
            for name, graph in self.graphs.items():
                try:
                    age = dt.timedelta(seconds=self.settings.key_seconds)
                    await self._writes.run(partial(reservations(graph).remove_older, age))
                except OmniError as error:
                    self.log("keys_not_removed", graph=name, reason=str(error))
            await asyncio.sleep(_SWEEP_SECONDS)

    async def close(self) -> None:
        """Stop reads, wait for writes, close the graphs."""
        self.is_stopping = True
        await self._reads.close()
        await self._writes.close()
        await asyncio.to_thread(self._streams.shutdown)
        self._served.close()
        if self._traces is not None:
            await asyncio.to_thread(self._traces.close)

    async def _reply(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or take part in the start and the end of the server."""
        if scope["type"] != "http":
            await self._living(scope, receive, send)
            return
        found = self._routes.find(scope["method"], scope["path"])
        reply: Rendered | StreamingResponse
        try:
            if found is None:
                allowed = self._routes.allowed(scope["path"])
                reply = unrouted(scope["method"], scope["path"], allowed, request_id_of(scope))
            else:
                route, scope["path_params"] = found
                reply = await self._answer(route, scope, receive)
        except OmniError as error:
            reply = failed(error, request_id_of(scope))
        except CallerGone:
            reply = LEFT
        except Exception:
            await send_reply(send, crashed(request_id_of(scope)))
            raise
        if isinstance(reply, Rendered):
            await send_reply(send, reply)
        else:
            await reply(scope, receive, send)

    async def _answer(self, route: Route, scope: Scope, receive: Receive) -> Rendered | StreamingResponse:
        """The reply to a request that has a route."""
        scope["omnigraph.route"] = route.path
        request = self._admitted(route, scope)
        with self._admission.write(request.actor, request.size) if request.is_write else nullcontext():
            answer = await self._worked(request, scope, receive)
        match answer:
            case Rendered():
                return answer
            case Streamed():
                return await self._streamed(answer, request)
            case Followed() if request.head.method == "HEAD":
                return Rendered(b"", EVENTS, headers=_UNCACHED)
            case Followed():
                return StreamingResponse(await self._followed(answer), media_type=EVENTS, headers=_UNCACHED)

    def _admitted(self, route: Route, scope: Scope) -> Admitted:
        """A request whose head is all right, and which the policy lets in as far as it can tell."""
        head = Head.of(scope)
        actor = None
        if route.access is not Access.OPEN and self._tokens is not None:
            actor = self._tokens.actor(head.all("authorization"))
        scope["omnigraph.actor"] = actor
        form = accepted(head.get("accept"), forms(route))
        values = self._values(route, head, scope["path_params"])
        limit = self.settings.load_bytes if route.is_large else self.settings.body_bytes
        size = announced(head, limit)
        is_write = route.access is Access.WRITE or self._invokes_mutation(route, values)
        if self._permits is not None and route.action is not None and actor is not None:
            self._permits.require(asked(route, actor, values), values)
        codec = codec_for(head.get("accept-encoding"))
        return Admitted(self, route, head, actor, values, form, codec, limit, size, is_write, Cancellation())

    async def _worked(self, request: Admitted, scope: Scope, receive: Receive) -> Rendered | Streamed | Followed:
        """Read the body of a request, and do what is asked. A write that has begun runs to its end."""
        route = request.route
        async with self._content(request, receive) as content:
            work = partial(request.answer, content)
            if not route.runs_in_thread:
                return work()
            if request.is_write:
                scope[BEGUN] = True
                return await self._writes.run(work)
            return await _unless_gone(self._reads.begin(work, request.stop), receive, request.stop)

    def graph_for(self, name: str, actor: str | None) -> Graph:
        """A graph as an actor may use it: with a policy it is a view of the actor's own."""
        graph = self._served.graphs[name]
        if self._permits is None or actor is None:
            return graph
        view = self._views.get((name, actor))
        if view is None:
            view = self._views[name, actor] = graph.as_actor(actor)
        return view

    def _invokes_mutation(self, route: Route, values: Mapping[str, Any]) -> bool:
        """Does a request invoke a stored query that writes?"""
        if route.access is not Access.INVOKE:
            return False
        found = self.stored.get(values["graph"], {}).get(values["query"])
        return found is not None and found.is_mutation

    def _values(self, route: Route, head: Head, named: Mapping[str, str]) -> dict[str, Any]:
        """The values of a request's path, query string and headers. The graph is looked for first."""
        values: dict[str, Any] = {}
        if route.is_about_a_graph:
            self._served.find(named["graph"])
        for each in route.parameters:
            if each.place is Place.PATH:
                values[each.key] = each.checked(named[each.name])
            elif each.place is Place.HEADER and (given := head.all(each.name)):
                values[each.key] = each.parsed(given)
        if route.access is Access.WRITE and head.all(IDEMPOTENCY_KEY) and not route.takes_keys:
            raise InvalidArgument(IDEMPOTENCY_KEY, "this route takes none: what is deleted is deleted once")
        return values | parse_query(route.parameters, head.pairs())

    def _content(self, request: Admitted, receive: Receive) -> AbstractAsyncContextManager[Content]:
        """The body of a request, in the form that the route takes; records are in a file, not in memory."""
        if request.route.takes == NDJSON and media_type(request.head.get("content-type")) == NDJSON:
            return spooled_body(request.head, receive, request.limit, self.settings.body_seconds)
        if not request.size:
            return nullcontext(b"")
        return self._held(request, receive)

    @asynccontextmanager
    async def _held(self, request: Admitted, receive: Receive) -> AsyncIterator[Content]:
        """A body in memory."""
        takes, limit = request.route.takes, request.limit
        content = await read_body(receive, limit, self.settings.body_seconds)
        if takes is None and content:
            raise InvalidArgument("body", "this route takes none")
        given = media_type(request.head.get("content-type"))
        if takes not in (None, BYTES) and content and given != takes:
            raise MediaUnsupported(given[:80] or "no content type", [takes])
        encoding = request.head.get("content-encoding")
        if encoding is not None and takes is not None:
            content = await self._reads.run(partial(unpacked, content, encoding, limit))
        yield content

    async def _streamed(self, answer: Streamed, request: Admitted) -> StreamingResponse:
        self._admission.begin_stream()
        codec = None if answer.as_is else request.codec
        stream = Stream(answer.write, codec, self._streams, self.settings.body_seconds, request.stop)
        pieces = await stream.start(self._admission.end_stream)
        headers = dict(answer.headers)
        if codec is not None:
            headers |= {"Content-Encoding": codec, "Vary": "Accept-Encoding"}
        return StreamingResponse(pieces, answer.status, headers, answer.media_type)

    async def _followed(self, answer: Followed) -> AsyncIterator[bytes]:
        """The events of a follower that is admitted, until it leaves or the server stops."""
        with self._admission.follower():
            pass  # one more is counted below, as long as it is sent events; here there has to be room for it

        async def poll(position: Mapping[str, Any]) -> ChangePage:
            return await self._reads.run(partial(answer.poll, position))

        async def sent() -> AsyncIterator[bytes]:
            with self._admission.follower():
                async for event in events(answer.first, poll, lambda: self.is_stopping):
                    yield event

        return sent()


async def _unless_gone(work: asyncio.Future[R], receive: Receive, stop: Cancellation) -> R:
    """What a read gives. It is stopped if its caller goes away meanwhile, which is looked at if it takes long."""
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        stop.cancel()
        if not work.done():
            work.set_exception(CallerGone())

    timer = asyncio.get_running_loop().call_later(
        _WATCHED_AFTER, lambda: watching.append(asyncio.ensure_future(watch()))
    )
    try:
        return await work
    except asyncio.CancelledError:
        stop.cancel()
        raise
    finally:
        timer.cancel()
        for task in watching:
            task.cancel()
