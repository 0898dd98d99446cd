"""Traces: one OpenTelemetry span for each request, sent where the usual OTEL_ variables say.

The packages are an extra, `omnigraph[telemetry]`. Without an address to send spans to nothing is traced, and they
are not needed. A request that came with a `traceparent` is a part of its caller's trace. Spans have no queries and
no data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import omnigraph
from omnigraph.errors import MissingExtra

if TYPE_CHECKING:
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import Span

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
"""Variables that say where spans are sent."""
_DISABLED: Final = "OTEL_SDK_DISABLED"
_FAILED: Final = 500


class Traces:
    """Spans of requests, which an exporter sends in batches from a thread of its own."""

    def __init__(self, exporter: SpanExporter) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        known = {"service.name": "omnigraph", "service.version": omnigraph.__version__}
        self._provider = TracerProvider(resource=Resource.create(known))
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("omnigraph.server")

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """The span of one request, which is the current one while it is answered."""
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind

        with self._tracer.start_as_current_span(method, extract(headers), SpanKind.SERVER) as span:
            yield span

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def describe(span: Span, method: str, route: str, status: int, others: Mapping[str, Any]) -> None:
    """Tell a span what became of its request."""
    from opentelemetry.trace import StatusCode

    span.update_name(f"{method} {route}")
    span.set_attributes(
        {
            "http.request.method": method,
            "http.route": route,
            "http.response.status_code": status,
            **{f"omnigraph.{name}": value for name, value in others.items() if value is not None},
        }
    )
    if status >= _FAILED:
        span.set_status(StatusCode.ERROR)


def configured_traces(environment: Mapping[str, str]) -> Traces | None:
    """Traces to where the environment says; None if it says nothing. MissingExtra without the packages."""
    wanted = any(environment.get(name) for name in ENDPOINTS)
    if not wanted or environment.get(_DISABLED, "").lower() == "true":
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ModuleNotFoundError as error:
        raise MissingExtra(error.name or "opentelemetry", "telemetry", "traces of a server") from None
    return Traces(OTLPSpanExporter())
