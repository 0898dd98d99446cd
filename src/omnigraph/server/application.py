"""The way of a request through the server: token, graph, admission, body, engine, answer."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from functools import cached_property, partial
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route as StarletteRoute

from omnigraph.errors import InvalidArgument, MediaUnsupported, OmniError, RangeUnsatisfiable, TooManyRequests
from omnigraph.graph import Graph, reservations
from omnigraph.history.feed.pages import ChangePage
from omnigraph.messages.failures import CODES, failure_body, status_of
from omnigraph.messages.values import MEDIA_TYPE as VALUES
from omnigraph.messages.values import encode_value
from omnigraph.read.limits import Cancellation
from omnigraph.server.admission import Admission
from omnigraph.server.answers.calls import (
    BYTES,
    JSON,
    NDJSON,
    Answer,
    Call,
    Followed,
    Found,
    Rendered,
    Streamed,
    Text,
)
from omnigraph.server.answers.stored import Stored
from omnigraph.server.graphs import ServedGraphs
from omnigraph.server.observing.logs import Log, write_log
from omnigraph.server.observing.metrics import Metrics
from omnigraph.server.observing.requests import BEGUN, Observed, request_id_of
from omnigraph.server.observing.traces import Traces
from omnigraph.server.permits import Permits
from omnigraph.server.policies import ServerPolicies
from omnigraph.server.routes.actions import asked
from omnigraph.server.routes.openapi import openapi_document
from omnigraph.server.routes.parameters import Place, parse_body, parse_query, require_all
from omnigraph.server.routes.route import IDEMPOTENCY_KEY, Access, Route
from omnigraph.server.routes.table import ROUTES
from omnigraph.server.settings import ServerSettings
from omnigraph.server.threads import Threads
from omnigraph.server.tokens import Tokens
from omnigraph.server.transfer.bodies import (
    accepted,
    announced,
    codec_for,
    media_type,
    packed,
    read_body,
    unpacked,
)
from omnigraph.server.transfer.events import MEDIA_TYPE as EVENTS
from omnigraph.server.transfer.events import events
from omnigraph.server.transfer.spool import Content, spooled_body
from omnigraph.server.transfer.streams import CallerGone, Stream
from omnigraph.server.workers import metrics_folder

R = TypeVar("R")
_UNCACHED: Final = {"Cache-Control": "no-store"}
_SWEEP_SECONDS: Final = 3_600
_SLASHED: Final = {"branch": "{branch:path}", "tag": "{tag:path}", "commit": "{commit:path}"}
"""Names that may have slashes in them."""


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
        self._reads = Threads("read", self.settings.read_threads)
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
        routes = [
            StarletteRoute(
                _template(route), partial(self._endpoint, route), methods=[route.method], name=route.name
            )
            for route in ROUTES
        ]
        handlers: dict[Any, Callable[[Request, Exception], Awaitable[Response]]] = {
            HTTPException: _refused,
            OmniError: _failed,
            CallerGone: _nobody_left,
            Exception: _crashed,
        }
        inner = Starlette(routes=routes, exception_handlers=handlers, lifespan=self._lifespan)
        inner.router.redirect_slashes = False
        return Observed(inner, self.metrics, self.log, self._traces)

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

    async def _endpoint(self, route: Route, request: Request) -> Response:
        """Answer one request."""
        request.scope["omnigraph.route"] = route.path
        actor = None
        if route.access is not Access.OPEN and self._tokens is not None:
            actor = self._tokens.actor(request.headers.getlist("authorization"))
        request.scope["omnigraph.actor"] = actor
        form = accepted(request.headers.get("accept"), _forms(route))
        values = self._values(route, request)
        limit = self.settings.load_bytes if route.is_large else self.settings.body_bytes
        size = announced(request, limit)
        is_write = route.access is Access.WRITE or self._invokes_mutation(route, values)
        if self._permits is not None and route.action is not None and actor is not None:
            self._permits.require(asked(route, actor, values), values)
        async with AsyncExitStack() as spool:
            spool.enter_context(self._admission.write(actor, size) if is_write else nullcontext())
            content = await spool.enter_async_context(self._content(route, request, limit))
            stop = Cancellation()
            prepare = partial(_call, self, route, actor, values, form, content, stop)
            codec = codec_for(request.headers.get("accept-encoding"))
            if not route.runs_in_thread:
                return self._response(_render(route.run(prepare()), form, codec))
            work = partial(_answered, route, prepare, form, codec)
            if is_write:
                request.scope[BEGUN] = True
                answer = await self._writes.run(work)
            else:
                answer = await _unless_gone(request, self._reads.run(work, stop))
            if isinstance(answer, Streamed):
                return await self._streamed(answer, codec, stop)
            if isinstance(answer, Followed) and request.method == "HEAD":
                return Response(media_type=EVENTS, headers=_UNCACHED)
            if isinstance(answer, Followed):
                return StreamingResponse(await self._followed(answer), media_type=EVENTS, headers=_UNCACHED)
            return self._response(answer)

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

    def _values(self, route: Route, request: Request) -> dict[str, Any]:
        """The values of a request's path, query string and headers. The graph is looked for first."""
        values: dict[str, Any] = {}
        if route.is_about_a_graph:
            self._served.find(request.path_params["graph"])
        for each in route.parameters:
            if each.place is Place.PATH:
                values[each.key] = each.checked(request.path_params[each.name])
            elif each.place is Place.HEADER and each.name in request.headers:
                values[each.key] = each.parsed(request.headers.getlist(each.name))
        if route.access is Access.WRITE and IDEMPOTENCY_KEY in request.headers and not route.takes_keys:
            raise InvalidArgument(IDEMPOTENCY_KEY, "this route takes none: what is deleted is deleted once")
        return values | parse_query(route.parameters, request.query_params.multi_items())

    @asynccontextmanager
    async def _content(self, route: Route, request: Request, limit: int) -> AsyncIterator[Content]:
        """The body of a request, in the form that the route takes; records are in a file, not in memory."""
        given = media_type(request.headers.get("content-type"))
        if route.takes == NDJSON and given == NDJSON:
            async with spooled_body(request, limit, self.settings.body_seconds) as spooled:
                yield spooled
            return
        content = await read_body(request, limit, self.settings.body_seconds)
        if route.takes is None and content:
            raise InvalidArgument("body", "this route takes none")
        if route.takes not in (None, BYTES) and content and given != route.takes:
            raise MediaUnsupported(given[:80] or "no content type", [route.takes])
        encoding = request.headers.get("content-encoding")
        if encoding is not None and route.takes is not None:
            content = await self._reads.run(partial(unpacked, content, encoding, limit))
        yield content

    async def _streamed(self, answer: Streamed, codec: str | None, stop: Cancellation) -> Response:
        self._admission.begin_stream()
        codec = None if answer.as_is else codec
        stream = Stream(answer.write, codec, self._streams, self.settings.body_seconds, stop)
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

    def _response(self, answer: Rendered) -> Response:
        return Response(answer.content, answer.status, dict(answer.headers), answer.media_type)


def _template(route: Route) -> str:
    """A route's path for Starlette."""
    path = route.path
    for name, slashed in _SLASHED.items():
        path = path.replace(f"{{{name}}}", slashed)
    return path


def _forms(route: Route) -> tuple[str, ...]:
    """The forms of a route's answer; JSON may also be Python values, for remote graphs of this program."""
    return (*route.gives, VALUES) if route.gives[0] == JSON else tuple(route.gives)


def _call(
    server: Server,
    route: Route,
    actor: str | None,
    values: dict[str, Any],
    form: str,
    content: Content,
    stop: Cancellation,
) -> Call:
    """The call that a request makes, with the values of a JSON body."""
    if route.takes == JSON:
        values = values | parse_body(route.parameters, bytes(content))
        content = b""
    require_all(route.parameters, values)
    return Call(server, actor, values, form, content, route.name, stop)


def _answered(
    route: Route, prepare: Callable[[], Call], form: str, codec: str | None
) -> Rendered | Streamed | Followed:
    """In a thread: read the body, do what is asked, and make bytes of the answer, unless it is streamed."""
    answer = route.run(prepare())
    return answer if isinstance(answer, Streamed | Followed) else _render(answer, form, codec)


def _render(answer: Answer, form: str, codec: str | None) -> Rendered:
    """An answer as bytes, packed if the caller takes it so."""
    match answer:
        case Rendered() if answer.as_is:
            return answer
        case Rendered(content, kind, status, headers):
            pass
        case Text(text, kind):
            content, status, headers = text.encode(), 200, {}
        case Found(value, as_json, status, headers):
            kind = VALUES if form == VALUES and value is not None else JSON
            shown = encode_value(value) if kind == VALUES else as_json()
            content = json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")
        case Streamed() | Followed():
            raise TypeError("a streamed answer is not made in memory")
    content, more = packed(content, codec)
    return Rendered(content, kind, status, {**headers, **more})


async def _unless_gone(request: Request, work: Awaitable[R]) -> R:
    """Await work, but stop it if the caller goes away meanwhile."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return await working
        working.cancel()
        raise CallerGone
    finally:
        leaving.cancel()


async def _failed(request: Request, error: Exception) -> Response:
    """The answer to a request that ended with an error of ours."""
    assert isinstance(error, OmniError)  # noqa: S101  the handler is for these
    status = status_of(error)
    headers = {}
    if isinstance(error, TooManyRequests):
        headers["Retry-After"] = str(error.retry_after)
    if isinstance(error, RangeUnsatisfiable):
        headers["Content-Range"] = f"bytes */{error.length}"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return _json_response(failure_body(error, request_id_of(request.scope)), status, headers)


async def _nobody_left(_: Request, __: Exception) -> Response:
    """The answer that no caller waits for; its status is for the log."""
    return Response(status_code=499)


async def _crashed(request: Request, _: Exception) -> Response:
    """The answer to a request that failed for a reason that is not the caller's to know; the log has it."""
    body = {
        "code": CODES[500],
        "error": "the server failed; its log has the reason",
        "outcome": "unknown",
        "request_id": request_id_of(request.scope),
    }
    return _json_response(body, 500, {})


async def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request that matches no route."""
    assert isinstance(error, HTTPException)  # noqa: S101  the handler is for these
    body = {
        "code": CODES.get(error.status_code, "bad_request"),
        "error": f"{request.method} {request.url.path[:200]}: {error.detail}; GET /openapi.json lists the routes",
        "outcome": "nothing_written",
        "request_id": request_id_of(request.scope),
    }
    return _json_response(body, error.status_code, dict(error.headers or {}))


def _json_response(body: Mapping[str, Any], status: int, headers: Mapping[str, str]) -> Response:
    content = json.dumps(body, ensure_ascii=False).encode(errors="backslashreplace")
    return Response(content, status, dict(headers), JSON)
